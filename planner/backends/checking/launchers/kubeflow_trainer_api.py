"""kubeflow-trainer-api: checks that Kubeflow Trainer's models take the TrainJob or JobSet and keep every key."""

from __future__ import annotations

from pathlib import Path

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.validator import Request, Validator
from planner.backends.launch.pods import MANIFEST

TRAINER_VERSION = "2.3.0"
_LAUNCHERS = ("kubernetes", "trainjob")


def request(folder: EmittedFolder) -> Request:
    """The manifest as it is."""
    return {"manifest": folder.files[MANIFEST]}


VALIDATOR = Validator(
    name="kubeflow-trainer-api",
    default_version=TRAINER_VERSION,
    worker=Path(__file__).with_name("kubeflow_trainer_api_worker.py"),
    applies=lambda folder: folder.launcher in _LAUNCHERS and MANIFEST in folder.files,
    request=request,
    packages=lambda version: (f"kubeflow-trainer-api=={version}", "PyYAML==6.0.3"),
    base_modules=("pydantic",),
)
