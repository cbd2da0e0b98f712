"""MindSpeed on Megatron-LM core_v0.12.1 (Huawei Ascend)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.backends.backend import BackEnd, Files, Release
from planner.backends.mindspeed.flag_table import CORE_VERSION
from planner.backends.mindspeed.physics import MINDSPEED
from planner.backends.mindspeed.space import SPACE

if TYPE_CHECKING:
    from planner.backends.checking.validator import Validator


def _files() -> Files:
    from planner.backends.mindspeed.read import read_back
    from planner.backends.mindspeed.write import write

    return Files(write, read_back)


def _validators() -> tuple[Validator, ...]:
    from planner.backends.mindspeed import validator

    return (validator.VALIDATOR,)


BACKEND = BackEnd(
    name="mindspeed",
    title="MindSpeed",
    summary="MindSpeed on Megatron-LM core_v0.12.1, for Ascend",
    releases=(Release(CORE_VERSION, SPACE, MINDSPEED),),
    vendors=frozenset({"Huawei"}),
    files=_files,
    validators=_validators,
    not_started_by={
        "ray-train": (
            "Ray Train shows all devices of a node to each of its workers only for NVIDIA, and MindSpeed is for Ascend",
            "use --launcher ray or ascendjob",
        ),
    },
)
