"""torchtitan 0.3.0, and the TOML of 0.2.2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.backends.backend import BackEnd, Files, Release
from planner.backends.torchtitan.physics import TORCHTITAN_COMPILED
from planner.backends.torchtitan.resume import RESUMING
from planner.backends.torchtitan.space import SPACE, TOML_SPACE
from planner.backends.torchtitan.version import TOML_VERSION, TORCHTITAN_VERSION

if TYPE_CHECKING:
    from planner.backends.checking.validator import Validator
    from planner.backends.ranks.runner import Runner


def _files() -> Files:
    from planner.backends.torchtitan.read import read_back
    from planner.backends.torchtitan.write import write

    return Files(write, read_back)


def _validators() -> tuple[Validator, ...]:
    from planner.backends.torchtitan import validator

    return (validator.VALIDATOR,)


def _tiny_run() -> Runner:
    from planner.backends.torchtitan.tiny_run import RUNNER

    return RUNNER


BACKEND = BackEnd(
    name="torchtitan",
    title="torchtitan",
    summary="torchtitan: FSDP2, DTensor and torch's pipelines",
    releases=(
        Release(TORCHTITAN_VERSION, SPACE, TORCHTITAN_COMPILED),
        Release(TOML_VERSION, TOML_SPACE, TORCHTITAN_COMPILED),
    ),
    vendors=frozenset({"NVIDIA", "AMD"}),
    files=_files,
    validators=_validators,
    tiny_run=_tiny_run,
    resuming=RESUMING,
)
