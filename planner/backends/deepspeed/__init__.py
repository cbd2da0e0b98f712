"""DeepSpeed 0.19.8.

Devices: its README lists NVIDIA, AMD, Intel Gaudi and Max, Huawei Ascend; the emitted script asks DeepSpeed for the
accelerator (``accelerator/real_accelerator.py``).  Only NVIDIA runs have been compared with predictions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.backends.backend import BackEnd, Files, Release
from planner.backends.deepspeed.physics import DEEPSPEED
from planner.backends.deepspeed.resume import RESUMING
from planner.backends.deepspeed.space import SPACE
from planner.backends.deepspeed.version import DEEPSPEED_VERSION

if TYPE_CHECKING:
    from planner.backends.checking.validator import Validator
    from planner.backends.ranks.runner import Runner


def _files() -> Files:
    from planner.backends.deepspeed.read import read_back
    from planner.backends.deepspeed.write import write

    return Files(write, read_back)


def _validators() -> tuple[Validator, ...]:
    from planner.backends.deepspeed import validator

    return (validator.VALIDATOR,)


def _tiny_run() -> Runner:
    from planner.backends.deepspeed.tiny_run import RUNNER

    return RUNNER


BACKEND = BackEnd(
    name="deepspeed",
    title="DeepSpeed",
    summary="DeepSpeed's engine around Hugging Face models: ZeRO, its pipeline, AutoTP, AutoEP, Ulysses",
    releases=(Release(DEEPSPEED_VERSION, SPACE, DEEPSPEED),),
    vendors=frozenset({"NVIDIA", "AMD", "Intel", "Huawei"}),
    files=_files,
    validators=_validators,
    tiny_run=_tiny_run,
    resuming=RESUMING,
)
