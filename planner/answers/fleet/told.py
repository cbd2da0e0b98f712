"""An allocation in a person's words: what each job gets and would gain, who waits and why, what a node is worth."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.answers.fleet.answer import (
    BlockNodes,
    Change,
    FleetCurve,
    JobAllocation,
    LargerAllocation,
    NodeGain,
    PoolUse,
)
from planner.answers.fleet.nodes import Holding, PoolNodes
from planner.answers.fleet.offers import JobOffers, Offer, hours_to_go, keeps_deadline
from planner.answers.fleet.question import FleetQuestion
from solver.fleet.allocate import with_one_node_more
from solver.fleet.share import Shared, share_fleet
from solver.fleet.tables import CannotAllocate, FleetTables, Goal, Reached

MOST_ASKED = 8
"""Jobs that wait, and that are asked what it would cost if they ran; pools that are asked what a node is worth."""
LEAST_S = 0.05
CLEAR = 1e-4
"""Differences below this part of a value are within its rounding."""


@dataclass(frozen=True, slots=True)
class Told:
    """The question and its answer, as the solver knows it."""

    question: FleetQuestion
    pools: Sequence[PoolNodes]
    held: Sequence[Holding | None]
    offers: Sequence[JobOffers]
    tables: FleetTables
    goals: Sequence[Goal]
    shared: Shared
    nodes: Sequence[tuple[str, ...]]

    def taken(self, job: int) -> Offer | None:
        """What a job gets."""
        at = self.shared.allocation.chosen[job]
        return None if at is None else self.offers[job].offers[at]


def job_allocations(
    told: Told, curves: Sequence[FleetCurve], keys: Sequence[dict[str, str]], end_s: float
) -> tuple[JobAllocation, ...]:
    """The rows of the answer."""
    reasons = {
        curve.key: next((row.point.reason for row in reversed(curve.rows) if row.point.reason), None)
        for curve in curves
    }
    asked, found = 0, []
    for job, own in enumerate(keys):
        offer = told.taken(job)
        if offer is not None:
            found.append(_running(told, job, offer, own))
            continue
        why = "; ".join(dict.fromkeys(reason for key in own.values() if (reason := reasons[key])))
        if told.offers[job].offers:
            asked += 1
            why = _why_not(told, job, end_s, ask=asked <= MOST_ASKED)
        change: Change = "waits" if told.held[job] is None else "stops"
        name = told.question.jobs[job].name
        found.append(JobAllocation(name=name, change=change, why=why or "no size of it is allowed", curves=own))
    return tuple(found)


def pool_uses(told: Told, end_s: float) -> tuple[PoolUse, ...]:
    """What is left of each pool, and what one node more would be worth."""
    given = [0] * len(told.pools)
    for job, nodes in enumerate(told.nodes):
        offer = told.taken(job)
        if offer is not None:
            given[offer.choice.pool] += len(nodes)
    taken = {name for nodes in told.nodes for name in nodes}
    touched = [0] * len(told.pools)
    for job, blocks in enumerate(told.shared.placement.blocks):
        offer = told.taken(job)
        if offer is not None:
            touched[offer.choice.pool] += len(blocks)
    return tuple(
        PoolUse(
            name=pool.name,
            nodes=pool.num_nodes,
            given=given[at],
            free=tuple(name for block in pool.blocks for name in block if name not in taken),
            one_node_more=_node_gain(told, at, end_s) if at < MOST_ASKED else None,
            blocks_touched=touched[at],
            devices_per_node=pool.devices_per_node,
            blocks=tuple(
                BlockNodes(name=name, nodes=nodes) for name, nodes in zip(pool.block_names, pool.blocks, strict=True)
            ),
        )
        for at, pool in enumerate(told.pools)
    )


def _running(told: Told, job: int, offer: Offer, own: dict[str, str]) -> JobAllocation:
    asked, pool, point = told.question.jobs[job], told.pools[offer.choice.pool], offer.row.point
    nodes, each = told.nodes[job], told.offers[job]
    hours = hours_to_go(asked, offer)
    change: Change = "stays" if offer.stays else "starts" if told.held[job] is None else "moves"
    return JobAllocation(
        name=asked.name,
        change=change,
        why=_why_moved(told, job, offer) if change == "moves" else None,
        pool=pool.name,
        nodes=nodes,
        blocks=tuple(dict.fromkeys(pool.block_names[pool.block_of[name]] for name in nodes)),
        devices=len(nodes) * pool.devices_per_node,
        plan_id=point.plan_id,
        backend=point.backend,
        step_time_s=point.step_time_s,
        tokens_per_s=offer.tokens_per_s,
        relative_speed=each.relative_speed(offer),
        gap=point.gap,
        lost_s=offer.lost_s,
        hours_to_go=None if hours == float("inf") else hours,
        keeps_deadline=keeps_deadline(asked, offer),
        cost_per_hour=offer.price_per_hour,
        larger=_larger(each, offer),
        curves=own,
    )


def _larger(each: JobOffers, taken: Offer) -> LargerAllocation | None:
    """The next larger size of the same pool that is faster."""
    larger = [
        offer
        for offer in each.offers
        if offer.choice.pool == taken.choice.pool
        and offer.choice.nodes > taken.choice.nodes
        and offer.tokens_per_s > taken.tokens_per_s
    ]
    if not larger:
        return None
    following = min(larger, key=lambda offer: offer.choice.nodes)
    more, gain = following.choice.nodes - taken.choice.nodes, following.tokens_per_s - taken.tokens_per_s
    return LargerAllocation(
        devices=following.row.point.num_devices,
        more_nodes=more,
        gain_tokens_per_s=gain,
        gain_tokens_per_s_per_node=gain / more,
        plan_id=following.row.point.plan_id,
    )


def _why_moved(told: Told, job: int, offer: Offer) -> str:
    holding = told.held[job]
    assert holding is not None
    if not holding.whole:
        return "nodes that it held are gone"
    before = len(holding.nodes)
    if holding.pool != offer.choice.pool:
        return f"from {before:,} nodes of pool {told.pools[holding.pool].name} to {offer.choice.nodes:,} here"
    if before != offer.choice.nodes:
        return f"from {before:,} nodes to {offer.choice.nodes:,}"
    return "other nodes of the same number, so that others have room in one block"


def _why_not(told: Told, job: int, end_s: float, *, ask: bool) -> str:
    """Why a job that could run does not: what it would cost the goals if it had to."""
    offers = told.offers[job].offers
    least = min(offers, key=lambda offer: offer.choice.nodes)
    left = {at: sum(map(len, pool.blocks)) for at, pool in enumerate(told.pools)}
    for other in range(len(told.offers)):
        taken = told.taken(other)
        if taken is not None:
            left[taken.choice.pool] -= taken.choice.nodes
    few, spare = least.choice.nodes, max(left.values())
    need = f"it needs {few:,} node{'s' * (few != 1)} at the least, and {spare:,} {'is' if spare == 1 else 'are'} left"
    if not ask:
        return need
    must = tuple(run or at == job for at, run in enumerate(told.tables.must_run))
    try:
        changed = _again(told, replace(told.tables, must_run=must), end_s)
    except CannotAllocate:
        return f"{need}: the others hold nodes that they keep"
    if changed is None:
        return need
    name, before, after = changed
    return need if name is None else f"{need}; were it to run, {name} would be {after:.6g} and not {before:.6g}"


def _node_gain(told: Told, pool: int, end_s: float) -> NodeGain | None:
    try:
        changed = _again(told, with_one_node_more(told.tables, pool), end_s)
    except CannotAllocate:
        return None
    if changed is None:
        return None
    name, before, after = changed
    return NodeGain(goal=name, gain=max(after - before, 0.0))


def _again(told: Told, tables: FleetTables, end_s: float) -> tuple[str | None, float, float] | None:
    """The first goal that other tables change, before and after; None where the time or a proof is missing.

    Raises CannotAllocate.
    """
    limit_s = min(end_s - time.monotonic(), told.question.time_limit_s / 4)
    before = told.shared.allocation
    if limit_s < LEAST_S or not all(each.proved for each in before.reached):
        return None
    found = share_fleet(
        tables, told.goals, time_limit_s=limit_s, seed=told.question.seed, former=before.chosen
    ).allocation
    if not all(each.proved for each in found.reached):
        return None
    return next(filter(_differs, _pairs(before.reached, found.reached)), (None, 0.0, 0.0))


def _pairs(before: Sequence[Reached], after: Sequence[Reached]) -> list[tuple[str | None, float, float]]:
    return [(each.name, each.value, other.value) for each, other in zip(before, after, strict=True)]


def _differs(pair: tuple[str | None, float, float]) -> bool:
    _, before, after = pair
    return abs(after - before) > CLEAR * max(abs(before), abs(after))
