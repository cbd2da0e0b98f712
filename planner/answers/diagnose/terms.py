"""Predicted beside measured: the terms of the step, computing by operator class, the ranks, the memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import fmean

from planner.answers.diagnose.attribution import AXES, StepParts, TracedRank, optimizer_s
from planner.answers.diagnose.axes import PlanAxes
from planner.answers.diagnose.document import MemoryRow, OperatorRow, RankRow, TermRow
from planner.answers.diagnose.reading import LogRun
from planner.backends.asked import physics_of
from planner.plan.plan import Plan
from planner.predict.cost.hardware import problem_hardware
from planner.predict.coverage.coverage import coverage
from planner.predict.step_terms import term_words
from profiles.importers.kineto.activities import OPTIMIZER

COMPUTE = ("compute", "recompute")
PIPELINE = ("pp_bubble", "pp_send")
_WORDS = {
    "pp": "pipeline: waiting and sends",
    "other": "communication of no axis of the plan",
    "idle": "gaps: waiting for the host",
}
SAME_CLASS = {
    "rope": "rotary",
    "residual": "elementwise",
    "permute": "other",
    "router": "matmul",
    "bias": "elementwise",
}
"""Classes of the cost model -> those that a trace tells apart."""


def term_rows(plan: Plan, ranks: Sequence[TracedRank]) -> tuple[TermRow, ...]:
    """All terms of the plan, and those that were measured."""
    steps = [parts for each in ranks for parts in each.steps if each.trace.activities]
    waits = any(call.waited_s is not None for parts in steps for call in parts.calls)
    told = plan.breakdown_s

    def row(term: str, keys: Sequence[str], measured: Callable[[StepParts], float], axis: str = "") -> TermRow | None:
        predicted = [told[key] for key in keys if key in told]
        found = fmean(measured(parts) for parts in steps) if steps else None
        hidden = fmean(parts.hidden_s[axis] for parts in steps) if axis and steps else None
        if not (sum(predicted) or found or hidden):
            return None
        return TermRow(
            term=term,
            words=_WORDS.get(term, term_words(term)),
            predicted_s=sum(predicted) if predicted else None,
            measured_s=found,
            hidden_s=hidden,
            waiting_s=fmean(parts.waited_s(axis) for parts in steps) if axis and waits else None,
        )

    rows = [row("compute", COMPUTE, lambda parts: sum(parts.compute_s.values()) - optimizer_s(parts))]
    for axis in AXES:
        keys = PIPELINE if axis == "pp" else (axis,)
        rows.append(row(axis, keys, lambda parts, axis=axis: parts.exposed_s[axis], axis))  # type: ignore[misc]
    rows += [
        row("optimizer", ("optimizer",), optimizer_s),
        row("offload", ("offload",), lambda parts: parts.copies_s),
        row("idle", ("host",), lambda parts: parts.idle_s),
    ]
    return tuple(each for each in rows if each is not None)


def operator_rows(plan: Plan, ranks: Sequence[TracedRank]) -> tuple[OperatorRow, ...]:
    """Computing by operator class, the most measured first; empty without traces."""
    steps = [parts for each in ranks for parts in each.steps if parts.compute_s]
    if not steps:
        return ()
    measured = defaultdict[str, float](float)
    for parts in steps:
        for name, value in parts.compute_s.items():
            measured[name] += value / len(steps)
    hardware = problem_hardware(plan.problem, physics_of(plan))
    predicted = defaultdict[str, float](float)
    for each in coverage(plan.problem, hardware, plan.chosen(), plan.breakdown_s).leanings:
        if each.term == "compute":
            name = each.operator.split(" ")[0]
            predicted[SAME_CLASS.get(name, name)] += each.seconds
    if "grouped_matmul" not in measured:
        # Experts one after the other are plain products.
        predicted["matmul"] += predicted.pop("grouped_matmul", 0.0)
    predicted[OPTIMIZER] = plan.breakdown_s.get("optimizer", 0.0)
    rows = [
        OperatorRow(operator=name, predicted_s=predicted.get(name), measured_s=measured.get(name))
        for name in {**measured, **predicted}
        if predicted.get(name) or measured.get(name)
    ]
    return tuple(sorted(rows, key=lambda each: -max(each.measured_s or 0.0, each.predicted_s or 0.0)))


def rank_rows(ranks: Sequence[TracedRank]) -> tuple[RankRow, ...]:
    """The means of each rank's steps."""
    return tuple(
        RankRow(
            rank=each.rank,
            stage=each.stage,
            step_s=fmean(parts.step_s for parts in each.steps),
            own_s=fmean(parts.own_s for parts in each.steps),
            communication_s=fmean(parts.communication_s for parts in each.steps),
            waiting_s=fmean(parts.waited_s() for parts in each.steps)
            if any(call.waited_s is not None for parts in each.steps for call in parts.calls)
            else None,
            idle_s=fmean(parts.idle_s for parts in each.steps),
        )
        for each in ranks
        if each.trace.activities
    )


def memory_rows(
    plan: Plan, axes: PlanAxes, logs: Sequence[LogRun], ranks: Sequence[TracedRank]
) -> tuple[MemoryRow, ...]:
    """The largest reading of each rank beside its stage's prediction; stages without a reading stand alone."""
    readings: dict[int, tuple[int, str]] = {}

    def take(rank: int | None, reserved: int | None, allocated: int | None) -> None:
        value, meaning = (reserved, "reserved") if reserved else (allocated, "allocated")
        if value and value > readings.get(rank or 0, (0, ""))[0]:
            readings[rank or 0] = (value, meaning)

    for log in logs:
        for each in log.memory:
            take(each.rank, each.peak_reserved_bytes or each.reserved_bytes, each.peak_allocated_bytes)
    for rank in ranks:
        for parts in rank.steps:
            take(rank.rank, parts.step.peak_reserved_bytes, parts.step.peak_allocated_bytes)
    predicted = {stage.stage: stage.peak_memory_bytes.total for stage in plan.stages}
    rows = []
    for number, (value, meaning) in sorted(readings.items()):
        stage = axes.stage(number)
        if stage in predicted:
            found = {"measured_bytes": value, "meaning": meaning}
            rows.append(MemoryRow(stage=stage, rank=number, predicted_bytes=predicted[stage], **found))  # type: ignore[arg-type]
    seen = {row.stage for row in rows}
    alone = [
        MemoryRow(stage=stage, rank=None, predicted_bytes=value, measured_bytes=None)
        for stage, value in predicted.items()
        if stage not in seen
    ]
    return tuple(sorted([*rows, *alone], key=lambda row: (row.stage, row.rank or 0)))
