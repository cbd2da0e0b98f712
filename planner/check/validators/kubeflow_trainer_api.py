"""kubeflow-trainer-api: do the models of Kubeflow Trainer take the TrainJob or JobSet, and keep every key of it?"""

from __future__ import annotations

from planner.check.emitted import EmittedFolder
from planner.check.validator import Request, Validator
from planner.emit.launch.kubernetes import MANIFEST

TRAINER_VERSION = "2.3.0"
_LAUNCHERS = ("kubernetes", "trainjob")


def request(folder: EmittedFolder) -> Request:
    """The manifest as it is."""
    return {"manifest": folder.files[MANIFEST]}


VALIDATOR = Validator(
    name="kubeflow-trainer-api",
    default_version=TRAINER_VERSION,
    worker="kubeflow_trainer_api.py",
    applies=lambda folder: folder.launcher in _LAUNCHERS and MANIFEST in folder.files,
    request=request,
    packages=lambda version: (f"kubeflow-trainer-api=={version}", "PyYAML==6.0.3"),
    base_modules=("pydantic",),
)
