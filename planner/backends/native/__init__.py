"""Native PyTorch: the trainer ``planner.backends.native.trainer``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.backends.backend import BackEnd, Files, Release
from planner.backends.native.capabilities import TORCH_VERSION
from planner.backends.native.physics import NATIVE
from planner.backends.native.resume import RESUMING
from planner.backends.native.space import SPACE

if TYPE_CHECKING:
    from planner.backends.checking.validator import Validator
    from planner.backends.ranks.runner import Runner


def _files() -> Files:
    from planner.backends.native.read import read_back
    from planner.backends.native.write import write

    return Files(write, read_back)


def _validators() -> tuple[Validator, ...]:
    from planner.backends.native import validator

    return (validator.VALIDATOR,)


def _tiny_run() -> Runner:
    from planner.backends.native.tiny_run import RUNNER

    return RUNNER


BACKEND = BackEnd(
    name="native",
    title="native PyTorch",
    summary="Meshwright's own trainer (``backends/native/trainer``): eager FSDP2, DTensor and torch's pipelines",
    releases=(Release(TORCH_VERSION, SPACE, NATIVE),),
    vendors=frozenset({"NVIDIA", "AMD"}),
    files=_files,
    validators=_validators,
    tiny_run=_tiny_run,
    unequal_devices=True,
    resuming=RESUMING,
)
