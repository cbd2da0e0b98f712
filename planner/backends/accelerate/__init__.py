"""Hugging Face Accelerate 1.15.0.

One of four ways, by the strategy: FSDP2 with a ``ParallelismConfig`` (ZeRO-2, ZeRO-3, hybrid sharding, tp, cp),
DeepSpeed with our ``ds_config.json`` (ZeRO-1, optimizer offload), DDP (no ZeRO), one process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.backends.accelerate.physics import ACCELERATE
from planner.backends.accelerate.resume import RESUMING
from planner.backends.accelerate.space import SPACE
from planner.backends.accelerate.version import ACCELERATE_VERSION
from planner.backends.backend import BackEnd, Files, Release

if TYPE_CHECKING:
    from planner.backends.checking.validator import Validator
    from planner.backends.ranks.runner import Runner


def _files() -> Files:
    from planner.backends.accelerate.read import read_back
    from planner.backends.accelerate.write import write

    return Files(write, read_back)


def _validators() -> tuple[Validator, ...]:
    from planner.backends.accelerate import validator

    return (validator.VALIDATOR,)


def _tiny_run() -> Runner:
    from planner.backends.accelerate.tiny_run import RUNNER

    return RUNNER


BACKEND = BackEnd(
    name="accelerate",
    title="Accelerate",
    summary="Hugging Face Accelerate: FSDP2, DeepSpeed or DDP around Hugging Face models",
    releases=(Release(ACCELERATE_VERSION, SPACE, ACCELERATE),),
    vendors=frozenset({"NVIDIA", "AMD"}),
    files=_files,
    validators=_validators,
    tiny_run=_tiny_run,
    resuming=RESUMING,
)
