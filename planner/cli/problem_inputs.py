"""The problem that the flags describe: model, cluster, workload, constraints and objective, all checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.cli.backend_names import ANY
from planner.cli.key_values import key_values
from planner.cli.options import ObjectiveChoice, PreferChoice
from planner.cli.sample_size import sample_tokens
from planner.cli.workload_flags import WorkloadFlags
from planner.errors import DocumentInvalid
from planner.strategy.fields import Value

if TYPE_CHECKING:
    from planner.model.megatron_args import LaunchJob
    from planner.model.spec import ModelSpec
    from planner.question.problem import Constraints, Objective, Problem, Workload

LARGEST_COUNT = 10**12


@dataclass(frozen=True, slots=True)
class SpaceFlags:
    """What the command line says about constraints and objective."""

    pins: dict[str, Value]
    forbids: tuple[str, ...] = ()
    backends: tuple[str, ...] = (ANY,)
    memory_margin: float | None = None
    max_step_time_s: float | None = None
    min_tokens_per_s: float | None = None
    objective: ObjectiveChoice = ObjectiveChoice.STEP_TIME
    price: float | None = None
    fits: float | None = None
    prefer: PreferChoice = PreferChoice.FASTEST
    reliability: str | None = None


@dataclass(frozen=True, slots=True)
class ProblemFlags:
    """What the command line says about the whole question."""

    model: str
    cluster: str | None
    devices: int | None
    work: WorkloadFlags
    space: SpaceFlags
    profile: str = "none"
    calibration: str | None = None
    script: LaunchJob | None = None
    """What ``model`` says where it is a launch script that was read already."""


def build_problem(flags: ProblemFlags) -> Problem:
    """The problem that the flags describe.  Raises DocumentInvalid or NotFound."""
    from planner.operations.calibration_choice import chosen_calibration
    from planner.operations.launch_files import megatron_script
    from planner.operations.profile_choice import chosen_profile
    from planner.operations.question import asked_problem, cluster_of, model_of

    whole_number(flags.devices, "--devices")
    script = flags.script or megatron_script(flags.model)
    constraints, objective = read_constraints(flags.space), read_objective(flags.space)
    model = script.model if script else model_of(flags.model)
    asked = read_workload(flags.work, script.workload if script else {}, model)
    cluster = cluster_of(flags.cluster or "", flags.devices or (script.num_devices if script else None))
    profile = chosen_profile(flags.profile, cluster.pools[0].device)
    calibration = None if flags.calibration is None else chosen_calibration(flags.calibration)
    return asked_problem(model, cluster, asked, constraints, objective, profile, calibration)


def read_workload(
    flags: WorkloadFlags, script: Mapping[str, Any] | None = None, model: ModelSpec | None = None
) -> Workload:
    """What a launch script says, overlaid with the workload file, overlaid with flags.

    ``model``: whose samples ``--sample`` counts.  Raises DocumentInvalid.
    """
    from planner.operations.reading import read_yaml
    from planner.question.problem import Workload
    from profiles.validation import read_document

    if flags.sample is not None and flags.sequence_length is None and model is None:
        hint = "add --sequence-length with the tokens that `meshwright models show M --sample FxHxW` gives"
        raise DocumentInvalid("how many tokens a sample makes is not known here", where="--sample", hint=hint)
    whole_number(flags.global_batch_size, "--global-batch-size")
    whole_number(flags.sequence_length, "--sequence-length")
    sizes = {"global_batch_size": flags.global_batch_size, "sequence_length": flags.sequence_length}
    overrides = {**{key: value for key, value in sizes.items() if value is not None}, **flags.said()}
    if flags.file is not None:
        data = read_yaml(flags.file)
        if isinstance(data, dict):
            data = _with_sample({**(script or {}), **data, **overrides}, flags, model)
        return read_document(Workload, data, str(flags.file))
    overrides = _with_sample({**(script or {}), **overrides}, flags, model)
    missing = [f"--{key.replace('_', '-')}" for key in ("global_batch_size", "sequence_length") if key not in overrides]
    if missing:
        raise DocumentInvalid(
            "the workload is not described",
            where=" ".join(missing),
            hint=f"give --workload FILE, or {' and '.join(missing)}",
        )
    return read_document(Workload, overrides, "the workload's flags")


def _with_sample(said: dict[str, Any], flags: WorkloadFlags, model: ModelSpec | None) -> dict[str, Any]:
    """With the sequence that a sample makes beside the text that is said, where none is.  Raises DocumentInvalid."""
    sample, given = said.get("sample"), flags.sequence_length if flags.sample else said.get("sequence_length")
    if sample is None or model is None or given is not None:
        return said
    text = said.get("source_length")
    tokens = sample_tokens(model, sample, text if isinstance(text, int) and text > 0 else None)
    return {**said, "sequence_length": tokens}


def read_constraints(space: SpaceFlags) -> Constraints:
    """Pins, forbids, back-ends and limits.  Raises DocumentInvalid."""
    from planner.question.problem import Constraints

    if space.memory_margin is not None and not 0 <= space.memory_margin < 1:
        raise DocumentInvalid(
            f"the memory margin is a part of the memory, not {space.memory_margin}",
            where="--memory-margin",
            hint="give a number from 0 up to, not including, 1",
        )
    chance(space.fits)
    positive(space.max_step_time_s, "--max-step-time")
    positive(space.min_tokens_per_s, "--min-tokens-per-s")
    if space.objective is ObjectiveChoice.DEVICES and space.max_step_time_s is None and space.min_tokens_per_s is None:
        raise DocumentInvalid(
            "the fewest devices for which speed?",
            where="--objective devices",
            hint="add --max-step-time SECONDS or --min-tokens-per-s X",
        )
    extra: dict[str, Any] = {}
    if space.memory_margin is not None:
        extra["memory_margin_fraction"] = space.memory_margin
    if space.fits is not None:
        extra["fits"] = space.fits
    return Constraints(
        pins=space.pins,
        forbids=space.forbids,
        backends=space.backends,
        max_step_time_s=space.max_step_time_s,
        min_tokens_per_s=space.min_tokens_per_s,
        **extra,
    )


def chance(fits: float | None) -> None:
    """Raises DocumentInvalid for what is no chance."""
    if fits is not None and not 0 < fits < 1:
        raise DocumentInvalid(
            f"the chance to fit lies between 0 and 1, not at {fits}",
            where="--fits",
            hint="give a number such as 0.95, or 0.99 where an out-of-memory costs much",
        )


def read_objective(space: SpaceFlags) -> Objective:
    """What is minimised and preferred.  Raises DocumentInvalid for a price that is no price."""
    from planner.question.problem import Objective
    from profiles.validation import read_document

    positive(space.price, "--price")
    if space.price is not None and space.objective is not ObjectiveChoice.COST:
        raise DocumentInvalid(
            "a price matters only to the cost objective", where="--price", hint="add --objective cost, or drop --price"
        )
    wanted = space.objective is ObjectiveChoice.TOKENS_PER_DAY
    if wanted != (space.reliability is not None):
        raise DocumentInvalid(
            "tokens a day and --reliability belong together",
            where="--objective --reliability",
            hint="--objective tokens_per_day --reliability storage_bandwidth_bytes_per_s=2e12,repair_hours=48",
        )
    said = {"minimize": space.objective.value, "price_per_device_hour": space.price, "prefer": space.prefer.value}
    return read_document(Objective, said | _said_reliability(space.reliability), "objective")


def _said_reliability(text: str | None) -> dict[str, Any]:
    """``repair_hours=48,asynchronous=true`` as the part of an objective.  Raises DocumentInvalid."""
    if text is None:
        return {}
    said = key_values(text.split(","), "--reliability", "write it as repair_hours=48,asynchronous=true")
    return {"reliability": {name: _plain(value) for name, value in said.items()}}


def _plain(text: str) -> float | bool | str:
    """A number or a yes or no where it is one."""
    try:
        return {"true": True, "false": False}[text] if text in ("true", "false") else float(text)
    except ValueError:
        return text


def whole_number(value: int | None, where: str) -> None:
    """Refuse counts below one and absurd ones."""
    if value is not None and not 1 <= value <= LARGEST_COUNT:
        raise DocumentInvalid(
            f"{value} is out of range", where=where, hint=f"give a whole number from 1 to {LARGEST_COUNT}"
        )


def positive(value: float | None, where: str) -> None:
    """Refuse NaN, infinity, zero and negative numbers."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise DocumentInvalid(f"{value} is not a positive number", where=where, hint="give a finite number above 0")
