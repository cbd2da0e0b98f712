"""kubeflow-training: do the models of the Kubeflow training operator take the PyTorchJob?"""

from __future__ import annotations

from planner.check.emitted import EmittedFolder
from planner.check.validator import Request, Validator
from planner.emit.launch.pytorchjob import MANIFEST

TRAINING_VERSION = "1.9.4"


def request(folder: EmittedFolder) -> Request:
    """The manifest as it is."""
    return {"manifest": folder.files[MANIFEST]}


VALIDATOR = Validator(
    name="kubeflow-training",
    default_version=TRAINING_VERSION,
    worker="kubeflow_training.py",
    applies=lambda folder: folder.launcher == "pytorchjob" and MANIFEST in folder.files,
    request=request,
    packages=lambda version: (f"kubeflow-training=={version}", "six==1.17.0", "urllib3==2.8.0", "PyYAML==6.0.3"),
)
