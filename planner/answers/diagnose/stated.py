"""What a log states of its run against the plan: another run, another device, flags that are not the plan's.

A flag's seconds are those of the cost model: the prediction with the flag as it was logged, less that of the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from planner.answers.diagnose.changed import Changed
from planner.answers.diagnose.document import RunFinding
from planner.answers.diagnose.reading import Evidence, LogRun
from planner.plan.plan import Plan
from planner.strategy.fields import FIELD, value_words
from profiles.device_names import catalogue_device
from profiles.observations.records import Scalar

LAYOUT = ("tp", "cp", "pp", "vpp", "ep", "etp", "dp", "dp_replicate", "dp_shard", "micro_batch_size")
FLAGS = (
    "zero_stage", "sp", "recompute", "overlap_grad_reduce", "overlap_param_gather", "overlap_tp", "optimizer_offload",
)  # fmt: skip
_NEEDS = {
    "zero_stage": ("dp", "cp"), "overlap_grad_reduce": ("dp", "cp"), "overlap_param_gather": ("dp", "cp"),
    "sp": ("tp",), "overlap_tp": ("tp",),
}  # fmt: skip
"""Switches that change nothing unless one of these degrees is above one."""
_SIZES = {"num_layers": "layers", "hidden_size": "hidden width", "num_experts": "experts"}


@dataclass(frozen=True, slots=True)
class StatedRun:
    """What the logs state that the plan does not say: findings, and the prediction of the run as stated."""

    findings: tuple[RunFinding, ...] = ()
    same_run: bool = True
    as_run_step_s: float | None = None


def stated_run(plan: Plan, evidence: Evidence) -> StatedRun:
    """Compare the arguments of the first log that has any, and the devices of all files."""
    log = next((each for each in evidence.logs if _states(each)), None)
    device = _another_device(plan, evidence)
    findings = [device] if device else []
    as_run_s = None
    other = False
    if log is not None:
        logged = _logged(log, plan)
        changed = {name: value for name, value in logged.items() if value != _planned(plan)[name]}
        flags = {name: value for name, value in changed.items() if name in FLAGS}
        model = _other_model(plan, log)
        differs = [*model, *(_words(plan, name, changed[name]) for name in changed if name not in flags)]
        other = bool(differs)
        prediction = Changed(plan)
        if changed and not model:
            as_run_s = prediction.step_s(changed)
        if differs:
            findings.append(_another_run(plan, log, differs, prediction.more_s(as_run_s)))
        findings += [_flag(plan, log, name, value, prediction) for name, value in flags.items()]
    elif (ranks := _other_world(plan, evidence)) is not None:
        findings.append(ranks)
        other = True
    return StatedRun(tuple(findings), same_run=not other and device is None, as_run_step_s=as_run_s)


def _states(log: LogRun) -> bool:
    first = log.stated
    return bool(first.strategy or first.detail or first.global_batch_size or first.sequence_length)


def _planned(plan: Plan) -> dict[str, Any]:
    strategy, workload = plan.chosen(), plan.problem.workload
    own = {name: getattr(strategy, name) for name in (*LAYOUT, *FLAGS)}
    sizes = {"global_batch_size": workload.global_batch_size, "sequence_length": workload.sequence_length}
    return {**own, **sizes, "precision": workload.precision}


def _logged(log: LogRun, plan: Plan) -> dict[str, Any]:
    """The values that the log states, of those that change something."""
    stated, strategy = log.stated, plan.chosen()
    found: dict[str, Any] = {name: stated.strategy[name] for name in (*LAYOUT, *FLAGS) if name in stated.strategy}
    if "num_layers" in stated.detail:
        # A block of Megatron's arguments, which has None where the pipeline is not cut into virtual stages.
        found.setdefault("vpp", 1)
    if stated.num_devices and "dp" not in found and "dp_shard" not in found:
        groups = prod(int(found.get(name, getattr(strategy, name))) for name in ("tp", "cp", "pp"))
        found["dp"] = stated.num_devices // groups
    if "dp" in found:
        found = {name: value for name, value in found.items() if not name.startswith("dp_")}
    sizes = ("micro_batch_size", "global_batch_size", "sequence_length")
    found |= {name: value for name in sizes if (value := getattr(stated, name)) is not None}
    found |= _precision(stated.detail)
    for name, degrees in _NEEDS.items():
        if all(found.get(degree, getattr(strategy, degree)) == 1 for degree in degrees):
            found.pop(name, None)
    return found


def _precision(detail: Mapping[str, Scalar]) -> dict[str, str]:
    if detail.get("fp8") not in (None, False, ""):
        return {"precision": "fp8"}
    return {"precision": str(detail["dtype"])} if "dtype" in detail else {}


def _other_model(plan: Plan, log: LogRun) -> list[str]:
    model = plan.problem.model
    mine = {"num_layers": model.num_layers, "hidden_size": model.hidden_size, "num_experts": model.num_experts}
    detail = log.stated.detail
    return [
        f"{words}: {detail[name]}, the plan's model has {mine[name]}"
        for name, words in _SIZES.items()
        if name in detail and detail[name] != mine[name]
    ]


def _words(plan: Plan, name: str, value: object) -> str:
    return f"{name}: {value_words(value)}, the plan has {value_words(_planned(plan)[name])}"


def _another_run(plan: Plan, log: LogRun, differs: list[str], seconds: float | None) -> RunFinding:
    return RunFinding(
        kind="another-run",
        what="The log is of another run than the plan's: " + "; ".join(differs),
        seconds=seconds,
        evidence=(f"{log.name}: its arguments",),
        advice="What follows compares two different runs. Launch what `meshwright emit` writes for this plan, or make a"
        " plan of the run with `meshwright estimate`",
    )


def _other_world(plan: Plan, evidence: Evidence) -> RunFinding | None:
    """Traces of another number of ranks, where no log says more."""
    trace = next((each for each in evidence.traces if each.world_size), None)
    ranks = plan.chosen().world_size
    if trace is None or trace.world_size == ranks:
        return None
    return RunFinding(
        kind="another-run",
        what=f"The trace is of a run on {trace.world_size} devices, the plan is for {ranks}",
        seconds=None,
        evidence=(trace.file_name,),
        advice="What follows compares two different runs. Trace the run that this plan's files start",
    )


def _another_device(plan: Plan, evidence: Evidence) -> RunFinding | None:
    device = plan.problem.cluster.pools[0].device.name
    seen = [(log.name, log.device) for log in evidence.logs] + [
        (each.file_name, each.device) for each in evidence.traces
    ]
    for name, reported in seen:
        known = catalogue_device(reported) if reported else None
        if known is not None and known != device:
            return RunFinding(
                kind="another-device",
                what=f"The run was on {known}, the plan is for {device}",
                seconds=None,
                evidence=(f"{name}: {reported}",),
                advice="Plan for the cluster on which it runs: `meshwright plan --cluster`",
            )
    return None


def _flag(plan: Plan, log: LogRun, name: str, value: object, prediction: Changed) -> RunFinding:
    wanted = _planned(plan)[name]
    step_s = prediction.step_s({name: value})
    if step_s is None and value is False and name == "overlap_grad_reduce":
        # Back-ends gather under the forward pass only where they reduce under the backward pass.
        step_s = prediction.step_s({name: value, "overlap_param_gather": False})
    refused = "" if step_s is not None else f"; {plan.backend} refuses this combination, so it has no cost here"
    return RunFinding(
        kind="changed-flag",
        what=f"{name} is {value_words(value)}, the plan has {value_words(wanted)} ({FIELD[name].meaning}){refused}",
        seconds=prediction.more_s(step_s),
        evidence=(f"{log.name}: its arguments",),
        advice=f"Set it as the plan's files do: `meshwright emit` writes {name} = {value_words(wanted)}",
    )
