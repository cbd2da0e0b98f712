"""One line of plain data for each cell of a sweep, with the same columns whatever its outcome."""

from __future__ import annotations

import json
from dataclasses import replace

from api.sweeps.resolved import ResolvedSweep
from api.wire.jobs import ENDED, JobRecord
from api.wire.problem_details import ProblemDetails
from planner.answers.sweep.answer import Answer, AnswerKind, missing, planned, refused
from planner.answers.sweep.grid import Cell
from planner.answers.sweep.table import line
from planner.errors import BudgetSpent
from planner.plan.plan import Plan
from planner.store.records import SweepCell
from planner.store.sweeps import RUNNING, WAITING
from profiles.document import canonical_json

CLIENT_ERRORS = range(400, 500)


def first_cells(sweep: ResolvedSweep) -> tuple[SweepCell, ...]:
    """The cells of a new sweep: those that are no question are answered, the others wait."""
    return tuple(
        unanswered(cell, WAITING) if cell.problem is not None else answered(refused(cell), sweep)
        for cell in sweep.cells()
    )


def unanswered(cell: Cell, state: str, job_id: str | None = None) -> SweepCell:
    """A cell of which nothing is known yet."""
    data = {**line(replace(missing(cell), what=None)), "outcome": state}
    return SweepCell(cell.index, state, canonical_json(data), job_id)


def answered(answer: Answer, sweep: ResolvedSweep, job_id: str | None = None) -> SweepCell:
    """A cell of which everything is known."""
    data = line(answer, sweep.price_per_device_hour)
    return SweepCell(answer.cell.index, answer.kind, canonical_json(data), job_id)


def given_up(cell: SweepCell, why: str) -> SweepCell:
    """A cell that can never be answered, whatever was known of it."""
    data = {**json.loads(cell.line), "outcome": "failed", "reason": why}
    return replace(cell, state="failed", line=canonical_json(data))


def after_job(cell: Cell, job: JobRecord, plan: Plan | None, sweep: ResolvedSweep) -> SweepCell:
    """What a job says of a cell; ``plan``: its plan, where it has one."""
    if job.status not in ENDED:
        return unanswered(cell, RUNNING if job.status == "running" else WAITING, job.id)
    wall_s = None
    if job.started_at is not None and job.finished_at is not None:
        wall_s = max((job.finished_at - job.started_at).total_seconds(), 0.0)
    if plan is not None:
        return answered(planned(cell, plan, source="searched", wall_s=wall_s), sweep, job.id)
    if job.status == "cancelled":
        return answered(replace(missing(cell), what="its job was cancelled before it had a plan"), sweep, job.id)
    return answered(_without_plan(cell, job, wall_s), sweep, job.id)


def _without_plan(cell: Cell, job: JobRecord, wall_s: float | None) -> Answer:
    problem = job.error
    if problem is None:
        return Answer(cell, "failed", what=f"job {job.id} ended without a result")
    first = problem.errors[0] if problem.errors else None
    infeasible = job.result_kind == "infeasible"
    return Answer(
        cell,
        "infeasible" if infeasible else _kind(problem),
        source="searched",
        wall_s=wall_s,
        what=problem.detail,
        where=None if first is None else first.pointer or None,
        hint=None if first is None else first.hint,
        binding=problem.binding,
        # As ``NoFeasiblePlan`` joins them.
        relaxations=tuple(first.hint.split("; or ")) if infeasible and first and first.hint else (),
    )


def _kind(problem: ProblemDetails) -> AnswerKind:
    if problem.slug == BudgetSpent.slug:
        return "undecided"
    return "refused" if problem.status in CLIENT_ERRORS else "failed"
