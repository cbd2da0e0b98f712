"""The tokens a day that a plan trains under failures, checkpoints, restarts and repairs; days and money to a goal.

    tokens a day = 86400 s * tokens a second of the plan * useful part * part that no repair is waited for

The useful part is that of the best interval between checkpoints (``planner.search.goodput.interval``), a whole number
of steps.  Stragglers and jitter are not in it: the plan's step time stands as predicted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pydantic import Field

from planner.backends.asked import physics_of
from planner.errors import DocumentInvalid
from planner.model.parameters import total_parameters
from planner.plan.plan import Plan
from planner.predict.memory.states import checkpoint_bytes
from planner.question.reliability import Reliability
from planner.search.goodput.failures import FailureRates, rates_of, spread
from planner.search.goodput.interval import Interruptions, best_spares, waiting_for_repair
from profiles.document import Document
from profiles.units import HOUR_S

DAY_S = 86_400.0
DETECTION_S = 600.0
"""From a failure until it is found and diagnosed: below 10 minutes on average (MegaScale, arXiv 2402.15627, 6.3)."""
ROWS_BESIDE = 2
"""Numbers of spare nodes shown on each side of the best one."""


class FailureShare(Document):
    """One kind of failure on all devices of the plan."""

    kind: str
    per_day: float
    takes_node: bool = Field(description="the node is out until it is repaired")


class SparesRow(Document):
    """What a number of spare nodes gives."""

    spare_nodes: int
    waiting: float = Field(description="part of the time that the job waits for a repair")
    tokens_per_day: float
    tokens_per_device_day: float = Field(description="spare devices count")


class LostTime(Document):
    """Parts of the whole time that train nothing; with ``useful`` they add up to one."""

    checkpoints: float
    done_again: float = Field(description="steps after the last checkpoint of a failure, and what was cut short")
    restarts: float
    waiting: float = Field(description="no spare node is left until one is repaired")


class Goodput(Document):
    """Tokens a day, and what they are made of."""

    schema_version: int = 1
    plan_id: str
    num_devices: int
    spare_nodes: int | None = Field(description="null where another node is always there")
    tokens_per_day: float
    tokens_per_day_without_failures: float = Field(description="with neither failures nor checkpoints")
    useful: float = Field(description="part of the time whose steps count")
    lost: LostTime
    failures_of: str
    failures_source: str
    failures: tuple[FailureShare, ...]
    mean_time_between_failures_s: float | None = Field(description="of the whole job; null without failures")
    checkpoint_bytes: int
    checkpoint_write_s: float
    checkpoint_stall_s: float = Field(description="of it, what the step loop waits")
    interval_steps: int | None = Field(description="between checkpoints; null without failures: none is needed")
    interval_s: float | None
    young_interval_s: float | None = Field(description="sqrt(2 stall x mean time between failures), for comparison")
    restart_s: float
    spares: tuple[SparesRow, ...] = Field(description="the numbers around the best one; empty without repairs")
    best_spare_nodes: int | None = Field(description="most tokens a day of each device, spares among them")
    tokens: float | None = Field(default=None, description="the goal that was asked")
    days: float | None = Field(default=None, description="to the goal")
    cost: float | None = Field(default=None, description="of all devices, spares too, for these days; null = no price")
    assumptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """One checkpoint of a plan: its size, the time to write it, and what of that stops the steps."""

    size_bytes: float
    write_s: float
    stall_s: float


def goodput(
    plan: Plan, asked: Reliability, *, tokens: float | None = None, price_per_device_hour: float | None = None
) -> Goodput:
    """The answer for one plan.  ``tokens``: the goal for days and money.

    Raises DocumentInvalid for frozen weights, for spare nodes without a repair time, and for a run that is not known.
    """
    if asked.spare_nodes is not None and asked.repair_hours is None:
        raise DocumentInvalid(
            "what spare nodes give depends on how long a repair takes",
            where="spare_nodes",
            hint="give repair_hours, or drop the spare nodes",
        )
    rates = rates_of(asked, plan.problem.cluster.pools[0].device.name)
    devices, per_node = plan.chosen().world_size, plan.problem.cluster.pools[0].devices_per_node
    saved = _checkpoint(plan, asked)
    restart_s = DETECTION_S + saved.write_s if asked.restart_s is None else asked.restart_s
    lag_s = saved.write_s - saved.stall_s if asked.asynchronous else 0.0
    job = Interruptions(rates.per_device_hour() * devices / HOUR_S, saved.stall_s, restart_s, max(0.0, lag_s))
    steps = _interval_steps(job, plan.step_time_s)
    running = 1.0 if steps is None else job.useful(steps * plan.step_time_s)
    load = rates.per_device_hour(only_nodes=True) * devices * (asked.repair_hours or 0.0)
    nodes = math.ceil(devices / per_node)
    best = None if asked.repair_hours is None else best_spares(load, nodes)
    spares = best if asked.spare_nodes is None else asked.spare_nodes
    waiting = 0.0 if spares is None else waiting_for_repair(load, spares)
    useful, pure = running * (1.0 - waiting), DAY_S * plan.tokens_per_s
    days = None if tokens is None or useful <= 0.0 else tokens / (pure * useful)
    price = price_per_device_hour or plan.problem.objective.price_per_device_hour
    price = price or plan.problem.cluster.price_per_device_hour
    paid = devices + (spares or 0) * per_node
    return Goodput(
        plan_id=plan.plan_id,
        num_devices=devices,
        spare_nodes=spares,
        tokens_per_day=pure * useful,
        tokens_per_day_without_failures=pure,
        useful=useful,
        lost=_lost(job, steps, plan.step_time_s, running, waiting),
        failures_of=rates.run,
        failures_source=rates.source,
        failures=tuple(
            FailureShare(kind=each.kind, per_day=each.per_device_hour * devices * 24.0, takes_node=each.takes_node)
            for each in rates.kinds
        ),
        mean_time_between_failures_s=1.0 / job.rate if job.rate else None,
        checkpoint_bytes=round(saved.size_bytes),
        checkpoint_write_s=saved.write_s,
        checkpoint_stall_s=saved.stall_s,
        interval_steps=steps,
        interval_s=None if steps is None else steps * plan.step_time_s,
        young_interval_s=job.young_s() if job.rate else None,
        restart_s=restart_s,
        spares=() if best is None else _rows(load, best, pure * running, devices, per_node),
        best_spare_nodes=best,
        tokens=tokens,
        days=days,
        cost=None if days is None or price is None else price * paid * days * 24.0,
        assumptions=_assumptions(plan, asked, rates),
    )


def _checkpoint(plan: Plan, asked: Reliability) -> _Checkpoint:
    """Its size: every parameter with what the back-end saves of it; its time: the slower of storage and NICs.

    The stall of an asynchronous one is the copy of the largest device's share over its own link to the host.
    """
    problem, strategy = plan.problem, plan.chosen()
    if problem.workload.trained.holds_frozen:
        raise DocumentInvalid(
            "what a checkpoint of frozen weights holds is not known here",
            where="/workload/training",
            hint="ask for a plan that trains all weights",
        )
    pool, offloaded = problem.cluster.pools[0], any(stage.offload.optimizer for stage in plan.stages)
    each = checkpoint_bytes(problem.workload, strategy.zero_stage, offloaded, physics_of(plan))
    size = total_parameters(problem.model) * each
    nodes = math.ceil(strategy.world_size / pool.devices_per_node)
    wires = pool.nics_per_node * pool.nic_bandwidth_bytes_per_s * nodes
    bandwidth = min(asked.storage_bandwidth_bytes_per_s, wires) if wires else asked.storage_bandwidth_bytes_per_s
    write_s = size / bandwidth
    if not asked.asynchronous:
        return _Checkpoint(size, write_s, write_s)
    shards = strategy.dp_shard * strategy.cp if strategy.zero_stage >= 1 else 1
    share = max(stage.parameters_per_device for stage in plan.stages) * each / shards
    return _Checkpoint(size, write_s, min(write_s, share / pool.host.link_bandwidth_bytes_per_s))


def _interval_steps(job: Interruptions, step_s: float) -> int | None:
    """The best whole number of steps between checkpoints; None where nothing fails."""
    best_s = job.best_interval_s()
    if not math.isfinite(best_s):
        return None
    below = max(1, math.floor(best_s / step_s))
    return max(below, below + 1, key=lambda steps: job.useful(steps * step_s))


def _lost(job: Interruptions, steps: int | None, step_s: float, running: float, waiting: float) -> LostTime:
    if steps is None:
        return LostTime(checkpoints=0.0, done_again=0.0, restarts=0.0, waiting=waiting)
    there = 1.0 - waiting
    checkpoints, restarts = running * job.stall_s / (steps * step_s), job.restarting()
    return LostTime(
        checkpoints=there * checkpoints,
        done_again=there * max(0.0, 1.0 - running - checkpoints - restarts),
        restarts=there * restarts,
        waiting=waiting,
    )


def _rows(load: float, best: int, running_tokens: float, devices: int, per_node: int) -> tuple[SparesRow, ...]:
    counts = sorted({0, *range(max(0, best - ROWS_BESIDE), best + ROWS_BESIDE + 1)})
    rows = []
    for count in counts:
        waiting = waiting_for_repair(load, count)
        tokens = running_tokens * (1.0 - waiting)
        each = tokens / (devices + count * per_node)
        rows.append(SparesRow(spare_nodes=count, waiting=waiting, tokens_per_day=tokens, tokens_per_device_day=each))
    return tuple(rows)


def _assumptions(plan: Plan, asked: Reliability, rates: FailureRates) -> tuple[str, ...]:
    words = [
        "failures are independent, at a constant rate for each device, and each stops the whole job",
        "stragglers and jitter are not counted: the step takes its predicted time",
    ]
    if rates.devices:
        words.append(
            f"failures as in the run {rates.run} ({rates.source}); other clusters fail more or less often: of the"
            f" published runs the highest rate is {spread():.1f} times the lowest"
        )
    if asked.restart_s is None:
        words.append("a failure is found in 600 s (MegaScale reports below 10 minutes), then the checkpoint is read")
    if asked.repair_hours is None:
        words.append("another node is there at every restart; hours of repair say what spare nodes it takes")
    else:
        words.append(f"spare nodes stand beside the plan's {plan.chosen().world_size:,} devices and are paid for")
    if asked.asynchronous:
        words.append("the back-end writes checkpoints beside training, one at a time, without slowing its steps")
    return tuple(words)
