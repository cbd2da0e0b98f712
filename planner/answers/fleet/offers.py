"""What each job could get: its sizes on every pool, what they are worth, and the tables of the solver.

A job that runs and moves loses ``lost_s``: its ``preemption_s`` and the arrival of its state.  The part of the horizon
that is left is ``useful = 1 - lost_s / horizon``.  Relative speed: tokens/s over the most that the job has alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.answers.fleet.answer import FleetRow
from planner.answers.fleet.nodes import Holding, PoolNodes
from planner.answers.fleet.question import FleetJob, FleetQuestion
from planner.errors import DocumentInvalid
from profiles.units import HOUR_S
from solver.fleet.tables import Choice, FleetTables, Goal

RUN, STAY = "weight of the jobs that run", "jobs that stay as they are"
SPEED, DEADLINES = "weighted relative speed", "weight of the deadlines that are kept"
COST, FAIR = "cost, negative", "least relative speed over weight"
ORDER = {
    "throughput": (SPEED, STAY),
    "deadlines": (DEADLINES, SPEED, STAY),
    "cost": (RUN, DEADLINES, COST, STAY),
    "fairness": (RUN, FAIR, SPEED, STAY),
}
"""Goals of an objective, the most important first."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One choice of a job, and what it means."""

    choice: Choice
    row: FleetRow
    stays: bool
    lost_s: float
    price_per_hour: float | None

    @property
    def tokens_per_s(self) -> float:
        """Of the plan on these devices."""
        return self.row.point.tokens_per_s or 0.0


@dataclass(frozen=True, slots=True)
class JobOffers:
    """A job's choices."""

    job: FleetJob
    holding: Holding | None
    offers: tuple[Offer, ...]

    most_tokens_per_s: float
    """What it could have alone, of all sizes that are known."""

    def relative_speed(self, offer: Offer) -> float:
        """Of an offer."""
        return offer.tokens_per_s / self.most_tokens_per_s


def sizes(job: FleetJob, where: str, pool: PoolNodes, holding: Holding | None, at: int) -> frozenset[int]:
    """Numbers of nodes of a pool that a job may have.  ``holding``: what it has now, in pool ``holding.pool``.

    Raises DocumentInvalid for bounds that exclude each other.
    """
    least, most, per_node = job.min_devices or 1, job.max_devices, pool.devices_per_node
    if most is not None and most < least:
        raise DocumentInvalid(
            f"job {job.name}: max_devices {most:,} is below min_devices {least:,}", where=f"{where}/max_devices"
        )
    low, high = -(-least // per_node), pool.num_nodes if most is None else min(pool.num_nodes, most // per_node)
    if job.device_counts:
        wanted = {count // per_node for count in job.device_counts if count % per_node == 0}
    else:
        wanted = {1 << power for power in range(high.bit_length())} | {low, high}
    if holding is not None and holding.pool == at:
        wanted.add(len(holding.nodes))
    return frozenset(nodes for nodes in wanted if low <= nodes <= high and nodes > 0)


def offers_of(  # a job, and what it could have
    job: FleetJob,
    holding: Holding | None,
    own: FleetRow | None,
    pools: Sequence[PoolNodes],
    rows: Mapping[int, Mapping[int, FleetRow]],
    wanted: Mapping[int, frozenset[int]],
) -> JobOffers:
    """The choices of a job.  ``own``: the row of the plan that it runs, where that is known.

    ``rows``: pool -> nodes -> row; ``wanted``: which of them are this job's.
    """
    found, every = list[Offer](), [row for own_rows in rows.values() for row in own_rows.values()]
    fast = [row.point.tokens_per_s or 0.0 for row in (*every, *(() if own is None else (own,))) if _allowed(job, row)]
    most = max(fast, default=0.0)
    if holding is not None and holding.whole:
        nodes = len(holding.nodes)
        row = own or rows.get(holding.pool, {}).get(nodes)
        if row is not None and nodes in wanted.get(holding.pool, ()) and _good(row):
            held = Counter(pools[holding.pool].block_of[name] for name in holding.nodes)
            choice = Choice(holding.pool, nodes, held=dict(held))
            found.append(Offer(choice, row, True, 0.0, _price(pools[holding.pool], nodes)))
        if not job.preemptible and found:
            return JobOffers(job, holding, tuple(found), most)
    for at, nodes_there in wanted.items():
        for nodes in sorted(nodes_there):
            row = rows[at].get(nodes)
            if row is None or not _good(row):
                continue
            lost_s = 0.0 if holding is None else (job.preemption_s or 0.0) + (row.move_s or 0.0)
            choice = Choice(at, nodes, _fewest_blocks(pools[at], nodes) if job.compact else None)
            found.append(Offer(choice, row, False, lost_s, _price(pools[at], nodes)))
    return JobOffers(job, holding, tuple(found), most)


def fleet_tables(jobs: Sequence[JobOffers], pools: Sequence[PoolNodes]) -> FleetTables:
    """The question of the solver."""
    held = [
        {}
        if each.holding is None
        else dict(Counter((each.holding.pool, pools[each.holding.pool].block_of[name]) for name in each.holding.nodes))
        for each in jobs
    ]
    return FleetTables(
        free=tuple(tuple(map(len, pool.blocks)) for pool in pools),
        jobs=tuple(tuple(offer.choice for offer in each.offers) for each in jobs),
        must_run=tuple(not each.job.preemptible and len(each.offers) == 1 and each.offers[0].stays for each in jobs),
        held=tuple(held),
    )


def fleet_goals(question: FleetQuestion, jobs: Sequence[JobOffers]) -> tuple[Goal, ...]:
    """The goals of the objective, in order; those that nothing decides are left out."""
    order = ORDER[question.objective]
    if question.moves == "fewest":
        order = (RUN, STAY, *(name for name in order if name not in {RUN, STAY}))
    horizon_s = question.horizon_hours * HOUR_S
    goals = []
    for name in order:
        values = tuple(tuple(_value(name, each, offer, horizon_s) for offer in each.offers) for each in jobs)
        if any(value for job in values for value in job):
            goals.append(Goal(name, "least" if name == FAIR else "sum", values))
    return tuple(goals)


def keeps_deadline(job: FleetJob, offer: Offer) -> bool | None:
    """Whether the tokens are trained by the deadline; None = it has none."""
    if job.deadline_hours is None or job.tokens_to_go is None:
        return None
    return hours_to_go(job, offer) <= job.deadline_hours


def hours_to_go(job: FleetJob, offer: Offer) -> float:
    """Hours until the tokens are trained, moving included; infinity without a number of tokens."""
    if job.tokens_to_go is None or offer.tokens_per_s <= 0:
        return float("inf")
    return (job.tokens_to_go / offer.tokens_per_s + offer.lost_s) / HOUR_S


def _value(name: str, each: JobOffers, offer: Offer, horizon_s: float) -> float:
    job, useful = each.job, max(0.0, 1.0 - offer.lost_s / horizon_s)
    if name == RUN:
        return job.weight
    if name == STAY:
        return float(offer.stays)
    if name == SPEED:
        return job.weight * each.relative_speed(offer) * useful
    if name == FAIR:
        return each.relative_speed(offer) * useful / job.weight
    if name == DEADLINES:
        return job.weight if keeps_deadline(job, offer) else 0.0
    hours = hours_to_go(job, offer) if job.tokens_to_go is not None else horizon_s / HOUR_S
    return -(offer.price_per_hour or 0.0) * hours


def _allowed(job: FleetJob, row: FleetRow) -> bool:
    return _good(row) and (job.max_devices is None or row.point.num_devices <= job.max_devices)


def _good(row: FleetRow) -> bool:
    point = row.point
    return bool(point.fits and point.meets_target and point.plan_id) and (point.tokens_per_s or 0.0) > 0


def _price(pool: PoolNodes, nodes: int) -> float | None:
    price = pool.price_per_device_hour
    return None if price is None else price * nodes * pool.devices_per_node


def _fewest_blocks(pool: PoolNodes, nodes: int) -> int:
    """Blocks that so many nodes need where no other job is."""
    count, left = 0, nodes
    for size in sorted(map(len, pool.blocks), reverse=True):
        if left <= 0:
            break
        left, count = left - size, count + 1
    return max(count, 1)
