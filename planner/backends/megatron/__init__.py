"""Megatron-LM: megatron-core 0.19.2, and the generations of 2021 and of 2022 to early 2023, which predict only.

Devices: NVIDIA ("Megatron requires CUDA", training/initialize.py:66); AMD has a fork of its own, Ascend ``mindspeed``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.backends.backend import BackEnd, Files, Release
from planner.backends.megatron.physics import MEGATRON_2021, MEGATRON_CORE
from planner.backends.megatron.resume import RESUMING
from planner.backends.megatron.space import SPACE
from planner.backends.megatron.space_2021 import SPACE_2021
from planner.backends.megatron.space_2023 import SPACE_2023
from planner.backends.megatron.version import MEGATRON_CORE_VERSION

if TYPE_CHECKING:
    from planner.backends.checking.validator import Validator
    from planner.backends.ranks.runner import Runner


def _files() -> Files:
    from planner.backends.megatron.read import read_back
    from planner.backends.megatron.write import write

    return Files(write, read_back)


def _validators() -> tuple[Validator, ...]:
    from planner.backends.megatron import validator

    return (validator.VALIDATOR,)


def _tiny_run() -> Runner:
    from planner.backends.megatron.tiny_run import RUNNER

    return RUNNER


BACKEND = BackEnd(
    name="megatron",
    title="Megatron-LM",
    summary="Megatron-LM on megatron-core: fused kernels, tuned overlap",
    releases=(
        Release(MEGATRON_CORE_VERSION, SPACE, MEGATRON_CORE),
        Release("2.5", SPACE_2021, MEGATRON_2021, predicts_only=True),
        Release("23.04", SPACE_2023, MEGATRON_2021, predicts_only=True),
    ),
    vendors=frozenset({"NVIDIA"}),
    files=_files,
    validators=_validators,
    tiny_run=_tiny_run,
    resuming=RESUMING,
)
