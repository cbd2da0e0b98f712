"""What is known about a cell at the end: its figures, or why there are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from planner.answers.sweep.grid import Cell
from planner.answers.sweep.task import Outcome, OutcomeKind
from planner.plan.plan import Plan

AnswerKind = OutcomeKind | Literal["missing"]
Source = Literal["stored", "searched"]

FITS: dict[AnswerKind, bool | None] = {"planned": True, "infeasible": False}
"""Unknown for every other kind."""
NOT_REACHED = "not reached: the sweep ended before"


@dataclass(frozen=True, slots=True)
class Figures:
    """What a table shows of a plan; whole plans of thousands of cells would fill the memory."""

    plan_id: str
    backend: str
    release: str
    status: str
    num_devices: int
    step_time_s: float
    step_time_interval_s: tuple[float, float]
    tokens_per_s: float
    tokens_per_s_per_device: float
    model_flops_utilization: float
    peak_memory_bytes: int
    memory_limit_bytes: int
    fits_probability: float | None
    lower_bound_s: float | None
    gap: float | None
    price_per_device_hour: float | None
    strategy: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """One cell, answered or not."""

    cell: Cell
    kind: AnswerKind
    figures: Figures | None = None
    source: Source | None = None
    wall_s: float | None = None
    what: str | None = None
    where: str | None = None
    hint: str | None = None
    binding: str | None = None
    relaxations: tuple[str, ...] = ()
    worker: str = ""


def planned(cell: Cell, plan: Plan, *, source: Source, wall_s: float | None = None, worker: str = "") -> Answer:
    """A cell with its plan."""
    figures = Figures(
        plan_id=plan.plan_id,
        backend=plan.backend,
        release=plan.release,
        status=plan.status,
        num_devices=plan.chosen().world_size,
        step_time_s=plan.step_time_s,
        step_time_interval_s=plan.step_time_interval_s,
        tokens_per_s=plan.tokens_per_s,
        tokens_per_s_per_device=plan.tokens_per_s_per_device,
        model_flops_utilization=plan.model_flops_utilization,
        peak_memory_bytes=plan.peak_memory_bytes,
        memory_limit_bytes=plan.memory_limit_bytes,
        fits_probability=plan.fits_probability,
        lower_bound_s=plan.lower_bound_s,
        gap=plan.gap,
        price_per_device_hour=plan.problem.cluster.price_per_device_hour,
        strategy=plan.strategy,
    )
    return Answer(cell, "planned", figures=figures, source=source, wall_s=wall_s, worker=worker)


def without_plan(cell: Cell, outcome: Outcome) -> Answer:
    """A cell whose search gave a reason instead."""
    return Answer(
        cell,
        outcome.kind,
        source="searched",
        wall_s=outcome.wall_s,
        what=outcome.what,
        where=outcome.where,
        hint=outcome.hint,
        binding=outcome.binding,
        relaxations=outcome.relaxations,
        worker=outcome.worker,
    )


def refused(cell: Cell) -> Answer:
    """A combination that is no question."""
    error = cell.refusal
    return Answer(
        cell,
        "refused",
        what=None if error is None else error.what,
        where=None if error is None else error.where,
        hint=None if error is None else error.hint,
    )


def missing(cell: Cell) -> Answer:
    """A cell that an interrupted sweep did not reach."""
    return Answer(cell, "missing", what=NOT_REACHED)
