"""MaxText 0.2.5 on JAX."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.backends.backend import BackEnd, Files, Release
from planner.backends.maxtext.physics import MAXTEXT
from planner.backends.maxtext.resume import RESUMING
from planner.backends.maxtext.space import SPACE
from planner.backends.maxtext.version import MAXTEXT_VERSION

if TYPE_CHECKING:
    from planner.backends.checking.validator import Validator
    from planner.backends.ranks.runner import Runner


def _files() -> Files:
    from planner.backends.maxtext.read import read_back
    from planner.backends.maxtext.write import write

    return Files(write, read_back)


def _validators() -> tuple[Validator, ...]:
    from planner.backends.maxtext import step_validator, validator

    return (
        validator.VALIDATOR,
        step_validator.VALIDATOR,
    )


def _tiny_run() -> Runner:
    from planner.backends.maxtext.tiny_run import RUNNER

    return RUNNER


_TORCH_ONLY = "it hands the job to torch's process group, and MaxText is JAX"

BACKEND = BackEnd(
    name="maxtext",
    title="MaxText",
    summary="MaxText on JAX, for TPU and GPU clusters",
    releases=(Release(MAXTEXT_VERSION, SPACE, MAXTEXT),),
    vendors=frozenset({"NVIDIA", "AMD", "Google"}),
    files=_files,
    validators=_validators,
    tiny_run=_tiny_run,
    not_started_by={
        "trainjob": (
            "the runtime torch-distributed starts torch jobs, and MaxText is JAX",
            "use --launcher kubernetes, a JobSet, which is what MaxText's own jobs are",
        ),
        "pytorchjob": (_TORCH_ONLY, "use --launcher kubernetes"),
        "ray-train": (_TORCH_ONLY, "use --launcher ray"),
        "ascendjob": ("MaxText runs on TPU and GPU, not on Ascend", "use --backend mindspeed"),
    },
    resuming=RESUMING,
)
