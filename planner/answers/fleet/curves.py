"""The speeds of every job on every pool: a curve of ``planner.answers.throughput`` each, equal jobs asked once.

Rows that a former answer has are taken from it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.answers.fleet.answer import FleetCurve, FleetRow
from planner.answers.replan.layout import state_layout
from planner.answers.throughput.curve import ThroughputPoint, throughput_curve
from planner.plan.plan import Plan
from planner.question.problem import Problem

Curves = Mapping[str, Mapping[int, FleetRow]]
"""Key of a question on a kind of nodes -> number of nodes -> row."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question on a cluster of the pool's kind, and the numbers of nodes to ask it for."""

    key: str
    problem: Problem
    nodes: frozenset[int]


@dataclass(frozen=True, slots=True)
class Asking:
    """How curves are asked: ``known`` gives a stored proof, ``keep`` stores a new plan.

    ``stop``: True ends the search.  ``tell`` hears how many rows of how many are there.
    """

    seed: int
    known: Callable[[Problem], Plan | None]
    keep: Callable[[Plan], Any]
    stop: Callable[[], bool] | None = None
    tell: Callable[[int, int], Any] = lambda _done, _wanted: None


def fleet_curves(
    wanted: Sequence[Wanted], former: Sequence[FleetCurve], *, budget_s: float, asking: Asking
) -> tuple[FleetCurve, ...]:
    """The curves, one a key; the budget is shared fairly between those that have something to ask."""
    end_s = time.monotonic() + budget_s
    rows: dict[str, dict[int, FleetRow]] = {
        curve.key: {row.nodes: row for row in curve.rows if row.point.fits is not None} for curve in former
    }
    questions, counts = dict[str, Problem](), dict[str, set[int]]()
    for each in wanted:
        questions.setdefault(each.key, each.problem)
        counts.setdefault(each.key, set()).update(each.nodes)
    open_keys = [key for key, nodes in counts.items() if nodes - rows.get(key, {}).keys()]
    num_rows = sum(map(len, counts.values()))
    done = num_rows - sum(len(counts[key] - rows.get(key, {}).keys()) for key in open_keys)

    def answered() -> None:
        nonlocal done
        done += 1
        asking.tell(done, num_rows)

    asking.tell(done, num_rows)
    for place, key in enumerate(open_keys):
        share_s = max(end_s - time.monotonic(), 0.02) / (len(open_keys) - place)
        missing = sorted(counts[key] - rows.get(key, {}).keys())
        asked = _asked(questions[key], missing, share_s, asking, answered)
        rows.setdefault(key, {}).update({row.nodes: row for row in asked})
    return tuple(FleetCurve(key=key, rows=tuple(row for _, row in sorted(rows.get(key, {}).items()))) for key in counts)


def _asked(
    problem: Problem, nodes: Sequence[int], budget_s: float, asking: Asking, answered: Callable[[], Any]
) -> list[FleetRow]:
    per_node = problem.cluster.pools[0].devices_per_node
    plans = dict[str, Plan]()

    def remembered(asked: Problem) -> Plan | None:
        plan = asking.known(asked)
        if plan is not None:
            plans[plan.plan_id] = plan
        return plan

    def kept(plan: Plan) -> None:
        plans[plan.plan_id] = plan
        asking.keep(plan)

    counts = [count * per_node for count in nodes]
    curve = throughput_curve(
        problem,
        counts,
        budget_s=budget_s,
        seed=asking.seed,
        known=remembered,
        keep=kept,
        stop=asking.stop,
        answered=answered,
    )
    return [_row(count, point, plans) for count, point in zip(nodes, curve.points, strict=True)]


def _row(nodes: int, point: ThroughputPoint, plans: Mapping[str, Plan]) -> FleetRow:
    plan = None if point.plan_id is None else plans.get(point.plan_id)
    return FleetRow(nodes=nodes, point=point, move_s=None if plan is None else arrival_s(plan))


def arrival_s(plan: Plan) -> float:
    """Seconds in which all the state of a plan's fullest node arrives over its NICs: the most that a move needs.

    At line rate, as ``planner.answers.replan.resharding``, which counts what a node already holds; here nothing is.
    """
    layout, pool = state_layout(plan), plan.problem.cluster.pools[0]
    per_node = pool.devices_per_node
    most = float(layout.bytes_by_rank()[::per_node].max())
    bandwidth = pool.nics_per_node * pool.nic_bandwidth_bytes_per_s
    devices = min(per_node, layout.strategy.world_size)
    return most * devices / bandwidth if bandwidth > 0 else most / pool.scale_up.bandwidth_bytes_per_s
