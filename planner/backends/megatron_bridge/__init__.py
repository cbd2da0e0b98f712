"""Megatron-Bridge 0.6.2: runs megatron-core, so its space lies inside Megatron-LM's; 0.5.1 and before predict only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.backends.backend import BackEnd, Files, Release
from planner.backends.megatron.physics import MEGATRON_CORE
from planner.backends.megatron_bridge.physics import RECIPES
from planner.backends.megatron_bridge.resume import RESUMING
from planner.backends.megatron_bridge.space import PREDICTED_SPACE, SPACE
from planner.backends.megatron_bridge.version import BRIDGE_VERSION

if TYPE_CHECKING:
    from planner.backends.checking.validator import Validator


def _files() -> Files:
    from planner.backends.megatron_bridge.read import read_back
    from planner.backends.megatron_bridge.write import write

    return Files(write, read_back)


def _validators() -> tuple[Validator, ...]:
    from planner.backends.megatron_bridge import validator

    return (validator.VALIDATOR,)


BACKEND = BackEnd(
    name="megatron-bridge",
    title="Megatron-Bridge",
    summary="what NeMo trains language models with: megatron-core under Bridge's own names and rules",
    releases=(
        Release(BRIDGE_VERSION, SPACE, MEGATRON_CORE),
        Release("0.5.1", PREDICTED_SPACE, RECIPES, predicts_only=True),
    ),
    vendors=frozenset({"NVIDIA"}),
    files=_files,
    validators=_validators,
    inside="megatron",
    resuming=RESUMING,
)
