"""Where a tower stands best: every place, number of devices and number of micro-batches, with a bound.

The language model alone is searched exactly (``planner.search.find``), once for each number of devices and of
micro-batches; all grids of the tower are costed at once.  With ``L`` the bound of the language model's step and ``t``
the least time of a micro-batch in any grid of the tower, a step with ``m`` micro-batches is never shorter than ::

    own_devices     max( L + t,  m t )       the pipeline starts after the first forward of the tower and ends before
                                             its last backward
    same_devices    L + m t

Numbers of devices and of micro-batches are looked at in the order of their bounds, and not at all where the bound is
not below the fastest step of that place so far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from planner.backends.asked import problem_hardware
from planner.errors import BudgetSpent, DocumentInvalid, NoFeasiblePlan
from planner.plan.plan import Plan
from planner.predict.training_flops import step_flops
from planner.question.problem import Problem
from planner.search.towers.asking import Asking, asking
from planner.search.towers.compose import Together, can_feed, can_share, on_own_devices, on_same_devices
from planner.search.towers.problem import first_stage_problem, language_problem
from planner.search.towers.tower_cost import TowerBill
from profiles.cluster import Cluster
from profiles.scaling import scale_cluster

SAME = 1e-9
UNSPLIT = "no grid of the tower splits its heads and the samples"
UNFED = "no grid of the tower fits in memory and can feed the language models that were found"
NOT_BELOW = "its bound is not below the fastest step on devices of its own"
Parts = tuple[Cluster, Cluster]
"""The devices of the tower and those of the language model."""
Pins = dict[str, int | str | bool]
Bills = dict[int, list[TowerBill]]
"""Grids of a tower, the quickest first, by the number of micro-batches."""


@dataclass(slots=True)
class Split:
    """A number of devices for the tower alone: the best that was found, and the bound of all plans with it."""

    devices: int
    lower_bound_s: float
    cluster: Cluster | None = None
    bills: Bills = field(default_factory=dict)
    found: Together | None = None
    reason: str | None = None


@dataclass(slots=True)
class Found:
    """What the search found, and how much it looked at."""

    asked: Asking
    first_stage: Plan | None = None
    same_devices: Together | None = None
    splits: list[Split] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    lower_bound_s: float = math.inf

    @property
    def own_devices(self) -> Together | None:
        """The fastest of the splits."""
        found = [split.found for split in self.splits if split.found is not None]
        return min(found, key=lambda each: each.step_s, default=None)

    @property
    def best_s(self) -> float:
        """The fastest step so far."""
        steps = [each.step_s for each in (self.same_devices, self.own_devices) if each is not None]
        return min([*steps, math.inf if self.first_stage is None else self.first_stage.step_time_s])

    def bounded(self, bound_s: float) -> None:
        """No plan of a part of the space is faster than this."""
        self.lower_bound_s = min(self.lower_bound_s, bound_s)


def find_places(problem: Problem, time_limit_s: float | None = None, tower_devices: int | None = None) -> Found:
    """The best plan of each place; ``tower_devices``: the tower's number of devices of its own (None = the best).

    Raises what ``checked_towers_problem`` does; NoFeasiblePlan where no place has a plan, BudgetSpent where the time
    ended before any had one.
    """
    found = Found(asking(problem, time_limit_s))
    found.splits = _splits(found.asked, tower_devices)
    _first_stage(found)
    _same_devices(found)
    _own_devices(found)
    if math.isfinite(found.best_s):
        found.lower_bound_s = min(found.lower_bound_s, found.best_s)
        return found
    if found.asked.stopped:
        raise BudgetSpent(f"no plan was found within {time_limit_s} s", where="--time-limit", hint="allow more time")
    reasons = "; ".join(f"{place}: {reason}" for place, reason in found.refused.items())
    raise NoFeasiblePlan(f"no place of the tower has a plan: {reasons}", binding="memory", relaxations=("add devices",))


def _bound_of(plan: Plan) -> float:
    return plan.step_time_s if plan.lower_bound_s is None else plan.lower_bound_s


def _first_stage(found: Found) -> None:
    """The tower in the language model's layout: the usual search."""
    plan = found.asked.plan(first_stage_problem(found.asked.problem))
    if isinstance(plan, str):
        found.refused["first_stage"] = plan
        found.bounded(0.0 if found.asked.stopped else math.inf)
        return
    found.first_stage = plan
    found.bounded(_bound_of(plan))


def _same_devices(found: Found) -> None:
    """The tower in a layout of its own on the devices of a language model without a pipeline."""
    asked = found.asked
    if asked.pinned.get("pp", 1) != 1:
        found.refused["same_devices"] = "pp is pinned; beside a colocated tower the language model has no pipeline"
        return
    reason = UNSPLIT
    for microbatches, every in asked.bills(asked.hardware, asked.hardware.num_devices).items():
        for bills, pins in _grouped(asked, every):
            plan = _beside(found, bills, {**pins, "pp": 1, "num_microbatches": microbatches})
            if isinstance(plan, str):
                reason = plan
                found.bounded(microbatches * bills[0].microbatch_s if asked.stopped else math.inf)
                continue
            found.bounded(_bound_of(plan) + microbatches * bills[0].microbatch_s)
            for bill in bills:
                _keep_shared(found, plan, bill)
    if found.same_devices is None:
        found.refused["same_devices"] = reason


def _grouped(asked: Asking, bills: list[TowerBill]) -> list[tuple[list[TowerBill], Pins]]:
    """Grids for which one language model is searched; where samples are not cut apart both have the same grid."""
    if not asked.problem.workload.counted:
        return [(bills, {})]
    wanted = asked.pinned.get("tp")
    return [([bill], {"tp": bill.layout.tp}) for bill in bills if wanted in (None, bill.layout.tp)]


def _beside(found: Found, bills: list[TowerBill], pins: Pins) -> Plan | str:
    """The language model with room for the leanest grid of the tower."""
    asked = found.asked
    memory_bytes, least_bytes = asked.hardware.memory_bytes, min(bill.beside_bytes(1) for bill in bills)
    margin = 1.0 - (asked.limit_bytes - least_bytes) / memory_bytes
    if margin >= 1.0:
        return "the tower alone fills the devices"
    return asked.plan(language_problem(asked.problem, asked.problem.cluster, pins, margin))


def _keep_shared(found: Found, plan: Plan, bill: TowerBill) -> None:
    asked = found.asked
    if not can_share(bill.layout, plan.strategy, counted=asked.problem.workload.counted):
        return
    here = on_same_devices(plan, bill, asked.hardware, asked.sample_bytes)
    if here.peak_bytes <= asked.limit_bytes and (found.same_devices is None or here.step_s < found.same_devices.step_s):
        found.same_devices = here


def _own_devices(found: Found) -> None:
    """The tower on devices of its own, the numbers of devices in the order of their bounds."""
    if not found.splits:
        found.refused["own_devices"] = "the devices cannot be parted into two groups of whole nodes"
    for split in sorted(found.splits, key=lambda each: each.lower_bound_s):
        if split.cluster is not None:
            _of_split(found, split, split.cluster)
        found.bounded(split.lower_bound_s)
    if found.splits and found.own_devices is None:
        reasons = dict.fromkeys(split.reason for split in found.splits if split.reason)
        found.refused["own_devices"] = "; ".join(str(reason) for reason in reasons)


def _splits(asked: Asking, tower_devices: int | None) -> list[Split]:
    """Every number of devices for the tower, or the one that is asked for, with its grids and a first bound.

    Raises DocumentInvalid for a number that the cluster cannot be parted by.

    The language model's bound is its useful work at the peak of its devices.
    """
    problem, found = asked.problem, []
    peak = asked.hardware.pool.device.peak_flops_per_s[problem.workload.matmul_format]
    for devices, (of_tower, of_language) in _wanted(_parted(problem.cluster), tower_devices).items():
        hardware = problem_hardware(problem.model_copy(update={"cluster": of_tower}))
        bills = asked.bills(hardware, devices)
        if not bills:
            found.append(Split(devices, math.inf, reason=UNSPLIT))
            continue
        alone = language_problem(problem, of_language, {})
        work_s = step_flops(alone.model, alone.workload) / (of_language.num_devices * peak)
        least_s = min(number * here[0].microbatch_s for number, here in bills.items())
        found.append(Split(devices, max(least_s, work_s), of_language, bills))
    return found


def _wanted(parts: dict[int, Parts], devices: int | None) -> dict[int, Parts]:
    if devices is None:
        return parts
    if devices not in parts:
        known = ", ".join(str(each) for each in list(parts)[:12])
        raise DocumentInvalid(
            f"the cluster cannot be parted into {devices} devices and the others",
            where="--tower-devices",
            hint=f"whole nodes, or parts of a single one: {known}" if known else "take a cluster of several devices",
        )
    return {devices: parts[devices]}


def _parted(cluster: Cluster) -> dict[int, Parts]:
    """Clusters of the tower and of the language model by the devices of the tower: whole nodes, or parts of one."""
    pool, found = cluster.pools[0], {}
    step = pool.devices_per_node if pool.num_nodes > 1 else 1
    for devices in range(step, cluster.num_devices, step):
        try:
            parts = scale_cluster(cluster, devices), scale_cluster(cluster, cluster.num_devices - devices)
        except DocumentInvalid:
            continue
        found[devices] = parts
    return found


def _of_split(found: Found, split: Split, cluster: Cluster) -> None:
    """The best plan with this number of devices, as far as it can be the fastest of all."""
    asked = found.asked
    if split.lower_bound_s >= _fastest_apart_s(found):
        split.reason = NOT_BELOW
        return
    free = asked.plan(language_problem(asked.problem, cluster, {}))
    if isinstance(free, str):
        split.reason = free
        split.lower_bound_s = split.lower_bound_s if asked.stopped else math.inf
        return
    bounds = {number: _least_s(free, number, bills) for number, bills in split.bills.items()}
    for microbatches in sorted(bounds, key=lambda number: bounds[number]):
        if bounds[microbatches] >= _fastest_apart_s(found):
            break
        chosen: Plan | str = free
        if free.strategy["num_microbatches"] != microbatches:
            chosen = asked.plan(language_problem(asked.problem, cluster, {"num_microbatches": microbatches}))
        if isinstance(chosen, str):
            bounds[microbatches] = bounds[microbatches] if asked.stopped else math.inf
            continue
        bounds[microbatches] = _least_s(chosen, microbatches, split.bills[microbatches])
        _keep_apart(asked, split, chosen, split.bills[microbatches])
    split.lower_bound_s = min(bounds.values())
    if split.found is None:
        looked = math.isinf(_fastest_apart_s(found)) or math.isinf(split.lower_bound_s)
        split.reason = UNFED if looked else NOT_BELOW


def _fastest_apart_s(found: Found) -> float:
    best = found.own_devices
    return math.inf if best is None else best.step_s * (1.0 - SAME)


def _least_s(plan: Plan, microbatches: int, bills: list[TowerBill]) -> float:
    """No step with this language model and so many micro-batches is shorter."""
    each_s = bills[0].microbatch_s
    return max(_bound_of(plan) + each_s, microbatches * each_s)


def _keep_apart(asked: Asking, split: Split, plan: Plan, bills: list[TowerBill]) -> None:
    for bill in bills:
        if not can_feed(bill.layout, plan.strategy, counted=asked.problem.workload.counted):
            continue
        here = on_own_devices(plan, bill, asked.hardware, asked.sample_bytes)
        if here.tower_bytes <= asked.limit_bytes and (split.found is None or here.step_s < split.found.step_s):
            split.found = here
