"""torch, native back-end: checks that process groups, DTensor, FSDP2 and pipeline schedules take the plan."""

from __future__ import annotations

from pathlib import Path

import planner
from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.validator import Request, Validator
from planner.backends.emission.emission import PLAN_JSON
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, read_world_size
from planner.backends.native.capabilities import TORCH_VERSION


def request(folder: EmittedFolder) -> Request:
    """The plan that the trainer reads, and the ranks that the launch script starts."""
    return {"plan": folder.files[PLAN_JSON], "world_size": read_world_size(folder.files[LAUNCH_SCRIPT])}


VALIDATOR = Validator(
    name="torch",
    default_version=TORCH_VERSION,
    worker=Path(__file__).with_name("validator_worker.py"),
    applies=lambda folder: folder.backend == "native" and PLAN_JSON in folder.files and LAUNCH_SCRIPT in folder.files,
    request=request,
    base_modules=("torch",),
    of_interpreter="torch",
    # The back-end is our own trainer, so its worker imports it: this one, not another that is installed.
    environment=lambda overlay: {"PYTHONPATH": str(Path(planner.__file__ or "").parents[1])},
)
