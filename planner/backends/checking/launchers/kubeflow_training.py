"""kubeflow-training: checks that the models of the Kubeflow training operator take the PyTorchJob."""

from __future__ import annotations

from pathlib import Path

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.validator import Request, Validator
from planner.backends.launch.pods import MANIFEST

TRAINING_VERSION = "1.9.4"


def request(folder: EmittedFolder) -> Request:
    """The manifest as it is."""
    return {"manifest": folder.files[MANIFEST]}


VALIDATOR = Validator(
    name="kubeflow-training",
    default_version=TRAINING_VERSION,
    worker=Path(__file__).with_name("kubeflow_training_worker.py"),
    applies=lambda folder: folder.launcher == "pytorchjob" and MANIFEST in folder.files,
    request=request,
    packages=lambda version: (f"kubeflow-training=={version}", "six==1.17.0", "urllib3==2.8.0", "PyYAML==6.0.3"),
)
