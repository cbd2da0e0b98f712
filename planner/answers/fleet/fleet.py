"""A fleet is shared: the speeds of all jobs, the allocation, named nodes, and what more would be worth."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planner.answers.fleet.answer import Fleet, FleetCurve, FleetRow, GoalReached
from planner.answers.fleet.curves import Asking, Wanted, fleet_curves
from planner.answers.fleet.nodes import Holding, PoolNodes, holdings, named
from planner.answers.fleet.offers import JobOffers, fleet_goals, fleet_tables, offers_of, sizes
from planner.answers.fleet.question import FleetQuestion
from planner.answers.fleet.told import Told, job_allocations, pool_uses
from planner.answers.throughput.curve import UNDECIDED, measured_point
from planner.errors import DocumentInvalid, NoFeasiblePlan
from planner.plan.plan import Plan
from planner.question.problem import Problem
from solver.fleet.share import Shared, share_fleet
from solver.fleet.tables import CannotAllocate, FleetTables, Goal

MAIN_PART = 0.7
"""Part of the time for the allocation itself; the rest is for what more would be worth."""


def share(
    question: FleetQuestion,
    pools: Sequence[PoolNodes],
    problems: Sequence[Mapping[int, Problem]],
    *,
    plan: Callable[[str], Plan],
    known: Callable[[Problem], Plan | None],
    keep: Callable[[Plan], Any],
    stop: Callable[[], bool] | None = None,
    progress: Callable[[str, int, int], Any] | None = None,
) -> Fleet:
    """Who gets what.  ``problems[job][pool]``: its question on the pool's kind of nodes, whatever their number.

    ``plan``: a stored plan by its name.  ``stop``: asked often; True ends the search for speeds, and the fleet is
    shared by those that are known.  ``progress`` hears the phase and how many sizes of how many are known.
    Raises DocumentInvalid, NotFound, and NoFeasiblePlan where jobs that are not preemptible cannot keep what they hold.
    """
    start_s = time.monotonic()
    held = holdings(question, pools)
    _check(question, pools)
    former = question.before.curves if question.before else ()
    known_sizes = {curve.key: {row.nodes for row in curve.rows} for curve in former}
    wanted = [
        {
            at: sizes(job, f"/jobs/{place}", pools[at], held[place], at, known_sizes.get(problem.problem_id, ()))
            for at, problem in problems[place].items()
        }
        for place, job in enumerate(question.jobs)
    ]
    running = [_own_row(question, place, held[place], pools, plan) for place in range(len(question.jobs))]
    asked = [
        Wanted(problem.problem_id, problem, wanted[place][at])
        for place, own in enumerate(problems)
        for at, problem in own.items()
    ]
    tell = progress or (lambda *_said: None)
    asking = Asking(question.seed, known, keep, stop, lambda done, wanted: tell("speeds", done, wanted))
    curves = fleet_curves(asked, former, budget_s=question.budget_s, asking=asking)
    sizes_known = sum(len(curve.rows) for curve in curves)
    tell("allocating", sizes_known, sizes_known)
    offers = _offers(question, held, running, pools, problems, wanted, curves)
    middle_s = time.monotonic()
    tables, goals = fleet_tables(offers, pools), fleet_goals(question, offers)
    shared = _shared(question, tables, goals, offers)
    told = Told(question, pools, held, offers, tables, goals, shared, _names(shared, offers, pools, held))
    solved_s = time.monotonic()
    end_s = solved_s + (1 - MAIN_PART) * question.time_limit_s
    keys = [{pools[at].name: problem.problem_id for at, problem in own.items()} for own in problems]
    return _answer(told, curves, keys, end_s, (middle_s - start_s, solved_s - middle_s))


def _answer(
    told: Told, curves: tuple[FleetCurve, ...], keys: Sequence[dict[str, str]], end_s: float, times: tuple[float, float]
) -> Fleet:
    # Pools are few, and what a node is worth is asked first where the time is short.
    pools = pool_uses(told, end_s)
    jobs = job_allocations(told, curves, keys, end_s)
    curves_s, allocation_s = times
    return Fleet(
        jobs=jobs,
        pools=pools,
        goals=tuple(
            GoalReached(name=each.name, value=each.value, bound=each.bound, gap=each.gap, proved=each.proved)
            for each in told.shared.allocation.reached
        ),
        blocks_touched=told.shared.placement.touched,
        blocks_bound=told.shared.placement.least_touched,
        moved=sum(job.change in {"moves", "stops"} for job in jobs),
        undecided=sum(row.point.reason == UNDECIDED for curve in curves for row in curve.rows),
        curves=curves,
        curves_s=curves_s,
        allocation_s=allocation_s,
        assumptions=_assumptions(told),
    )


def _assumptions(told: Told) -> tuple[str, ...]:
    always = (
        "a job has whole nodes, all of one pool, and its speed does not depend on what runs beside it",
        "a moved job loses its preemption_s and the arrival of all its state at line rate, the most that it can be",
        "speeds are those of plans on nodes as near to each other as the cluster's fabric says",
    )
    silent = [
        job.name
        for job, holding in zip(told.question.jobs, told.held, strict=True)
        if holding is not None and job.preemption_s is None
    ]
    if not silent:
        return always
    return *always, f"saving and starting again takes no time, because preemption_s is not said: {', '.join(silent)}"


def _check(question: FleetQuestion, pools: Sequence[PoolNodes]) -> None:
    """Raises DocumentInvalid for what the jobs and the objective say and do not go together."""
    names, seen = {pool.name for pool in pools}, set[str]()
    for at, job in enumerate(question.jobs):
        where = f"/jobs/{at}"
        if job.name in seen:
            raise DocumentInvalid(f"job {job.name} is named twice", where=f"{where}/name", hint="name each job once")
        seen.add(job.name)
        strange = next((name for name in job.pools if name not in names), None)
        if strange is not None:
            hint = f"one of {', '.join(sorted(names))}"
            raise DocumentInvalid(f"job {job.name}: no pool is called {strange}", where=f"{where}/pools", hint=hint)
        if job.deadline_hours is not None and job.tokens_to_go is None:
            raise DocumentInvalid(
                f"job {job.name}: a deadline of how many tokens?",
                where=f"{where}/tokens_to_go",
                hint="say tokens_to_go",
            )
        usable = [pool for pool in pools if not job.pools or pool.name in job.pools]
        for count in job.device_counts:
            if all(count % pool.devices_per_node for pool in usable):
                each = ", ".join(f"{pool.name}: {pool.devices_per_node}" for pool in usable)
                raise DocumentInvalid(
                    f"job {job.name}: {count:,} devices are no whole nodes of any pool",
                    where=f"{where}/device_counts",
                    hint=f"devices of a node: {each}",
                )
    for at, pool in enumerate(pools):
        if question.objective == "cost" and pool.price_per_device_hour is None:
            raise DocumentInvalid(
                f"pool {pool.name}: what does a device cost?",
                where=f"/pools/{at}/price_per_device_hour",
                hint="give the price of a device hour, or another objective",
            )


def _own_row(
    question: FleetQuestion,
    place: int,
    holding: Holding | None,
    pools: Sequence[PoolNodes],
    plan: Callable[[str], Plan],
) -> FleetRow | None:
    """The row of the plan that a job says it runs; of a former answer its curve has it."""
    job = question.jobs[place]
    if job.current is None or job.current.plan is None or holding is None or not holding.whole:
        return None
    running, devices = plan(job.current.plan), len(holding.nodes) * pools[holding.pool].devices_per_node
    uses = running.chosen().world_size
    if uses != devices:
        raise DocumentInvalid(
            f"job {job.name}: plan {running.plan_id[:12]} is of {uses:,} devices, its nodes have {devices:,}",
            where=f"/jobs/{place}/current/plan",
            hint="name the plan that it runs, or none",
        )
    point = measured_point(f"{devices}", running.problem, running, pools[holding.pool].price_per_device_hour)
    return FleetRow(nodes=len(holding.nodes), point=point)


def _offers(  # noqa: PLR0917  # all that decides them
    question: FleetQuestion,
    held: Sequence[Holding | None],
    running: Sequence[FleetRow | None],
    pools: Sequence[PoolNodes],
    problems: Sequence[Mapping[int, Problem]],
    wanted: Sequence[Mapping[int, frozenset[int]]],
    curves: Sequence[FleetCurve],
) -> tuple[JobOffers, ...]:
    by_key = {curve.key: {row.nodes: row for row in curve.rows} for curve in curves}
    found = []
    for place, job in enumerate(question.jobs):
        rows = {at: by_key[problem.problem_id] for at, problem in problems[place].items()}
        found.append(offers_of(job, held[place], running[place], pools, rows, wanted[place]))
    return tuple(found)


def _shared(question: FleetQuestion, tables: FleetTables, goals: Sequence[Goal], offers: Sequence[JobOffers]) -> Shared:
    former = [next((at for at, offer in enumerate(each.offers) if offer.stays), None) for each in offers]
    limit_s = MAIN_PART * question.time_limit_s
    try:
        return share_fleet(tables, goals, time_limit_s=limit_s, seed=question.seed, former=former)
    except CannotAllocate:
        raise NoFeasiblePlan(
            "the jobs that are not preemptible cannot keep what they hold",
            binding="nodes of the pools",
            relaxations=("let one of them be preempted", "name more nodes"),
            where="/jobs",
        ) from None


def _names(
    shared: Shared, offers: Sequence[JobOffers], pools: Sequence[PoolNodes], held: Sequence[Holding | None]
) -> list[tuple[str, ...]]:
    """The nodes of every job."""
    chosen, blocks = shared.allocation.chosen, shared.placement.blocks
    placed = [
        None if at is None else (each.offers[at].choice.pool, where)
        for each, at, where in zip(offers, chosen, blocks, strict=True)
    ]
    return named(pools, placed, held)
