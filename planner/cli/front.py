"""The Pareto front of step time and device time over device counts, printed and kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.cli.output import OutputFormat, write_answer
from planner.cli.planning import announce
from planner.cli.progress import search_progress
from planner.errors import Conflict, NoFeasiblePlan

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.question.problem import Problem
    from planner.search.device_counts import FrontPoint
    from planner.search.options import SearchOptions


def answer_front(
    problem: Problem, search: SearchOptions, *, keep: bool, database: str | None, quiet: bool, output: OutputFormat
) -> None:
    """Plan for every device count of the cluster, keep the plans, print the front.  Raises NoFeasiblePlan."""
    from planner.search.device_counts import pareto_front
    from planner.search.find import plan_on_all_devices, preferring

    announce(problem, quiet)
    with search_progress(quiet=quiet) as progress:
        # A front compares the fastest plans of its device counts.
        points = pareto_front(preferring("fastest", problem), search, progress, plan_on_all_devices)
    if not points:
        raise NoFeasiblePlan(
            f"{problem.model.name} fits on no part of {problem.cluster.name}",
            binding="device memory",
            relaxations=("plan on all devices without --pareto for the reason and what would help",),
        )
    if keep:
        _keep(points, database)
    write_answer({"front": [_data(point) for point in points]}, output, lambda: _table(points))


def front_alone(emitted: tuple[str, ...], files: tuple[Path | None, ...]) -> None:
    """Refuse options that speak of one plan.  Raises Conflict."""
    if emitted or any(path is not None for path in files):
        raise Conflict(
            "--pareto gives many plans, but --emit, --plan-out and --trace write one",
            where="--pareto",
            hint="print the front first, then: meshwright emit PLAN --out DIR",
        )


def _keep(points: list[FrontPoint], database: str | None) -> None:
    from planner.store import open_store

    with open_store(database) as store:
        for point in points:
            store.save_plan(point.plan)


def _data(point: FrontPoint) -> dict[str, Any]:
    plan = point.plan
    return {
        "num_devices": point.num_devices,
        "efficient": point.efficient,
        "plan_id": plan.plan_id,
        "backend": plan.backend,
        "release": plan.release,
        "status": plan.status,
        "step_time_s": plan.step_time_s,
        "step_time_interval_s": list(plan.step_time_interval_s),
        "tokens_per_s": plan.tokens_per_s,
        "tokens_per_s_per_device": plan.tokens_per_s_per_device,
        "model_flops_utilization": plan.model_flops_utilization,
        "device_seconds_per_step": point.num_devices * plan.step_time_s,
        "cost_per_step": plan.cost_per_step,
        "peak_memory_bytes": plan.peak_memory_bytes,
        "strategy": plan.strategy,
    }


def _table(points: list[FrontPoint]) -> Iterator[RenderableType]:
    from planner.answers.views.words import digits, money, percent, seconds, short_id
    from planner.backends.emission.describe import plan_strategy_words
    from planner.cli.render.tables import heading, table

    priced = any(point.plan.cost_per_step is not None for point in points)
    yield heading("Devices against time (front = no other count is both faster and cheaper a step)")
    rows = [
        (
            f"{point.num_devices:,}",
            "yes" if point.efficient else "",
            seconds(point.plan.step_time_s),
            digits(point.num_devices * point.plan.step_time_s),
            percent(point.plan.model_flops_utilization),
            *([money(point.plan.cost_per_step or 0.0)] if priced else []),
            short_id(point.plan.plan_id),
            point.plan.backend,
            plan_strategy_words(point.plan),
        )
        for point in points
    ]
    head = (
        ">devices",
        "front",
        ">step",
        ">device s a step",
        ">MFU",
        *([">cost a step"] if priced else []),
        "plan",
        "back-end",
        "strategy",
    )
    yield table("", head, rows)
