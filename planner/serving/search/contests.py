"""Aggregated and disaggregated deployments of one family: the best of each, first by bounds, then exact.

With ``T[d]`` the rate of the best pool of aggregated instances on at most ``d`` devices, ``P`` and ``D`` those of
prefill and decode instances, and ``N`` devices:

    throughput      aggregated T[N]             disaggregated max over d of min(P[d], D[N - d])
    cheapest        max over d of T[d] / d      max over p + d <= N of min(P[p], D[d]) / (p + d)
    fewest_devices  least d with T[d] >= R      least p with P[p] >= R, and least d with D[d] >= R

That is the exact answer of how many prefill and decode instances to start, since the tables hold every number of them.
While an entry that the optimum stands on is a bound, the layout behind it is evaluated; what is left is proved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from planner.serving.layout import InstanceGroup
from planner.serving.predict.curve import InstanceCurve
from planner.serving.search.curves import Family
from planner.serving.search.instances import UNKNOWN, Judged, Pool

Goal = Literal["throughput", "cheapest", "fewest_devices"]


@dataclass(frozen=True, slots=True)
class Part:
    """A pool of the optimum: equal instances that were evaluated."""

    group: InstanceGroup
    curve: InstanceCurve


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best of a contest; ``parts`` are empty where some of it is still a bound.

    ``value``: requests a second and device of the cluster (throughput) or of the deployment (cheapest), or minus the
    devices; minus infinity where nothing keeps the promises.
    """

    value: float
    rate: float
    devices: tuple[int, ...]
    parts: tuple[Part, ...] = ()


NOTHING = Optimum(-np.inf, 0.0, ())


class Contest:
    """Pools of one family: one of aggregated instances, or one of prefill and one of decode instances."""

    def __init__(
        self, family: Family, judged: tuple[Judged, ...], goal: Goal, devices: int, rate: float | None
    ) -> None:
        self.family, self.judged, self._goal = family, judged, goal
        self._devices, self._rate = devices, rate
        self._pools: list[Pool] = [each.pool() for each in judged]

    @property
    def disaggregated(self) -> bool:
        """Whether prefill and decode run on instances of their own."""
        return len(self.judged) > 1

    def refresh(self) -> None:
        """Read the tables again, after layouts were evaluated."""
        self._pools = [each.pool() for each in self.judged]

    def optimum(self, *, exact_only: bool = False) -> Optimum:
        """The best by what is known; ``exact_only``: of evaluated instances alone."""
        pools = [each.pool(exact_only=True) for each in self.judged] if exact_only else self._pools
        split = _split(pools, self._goal, self._devices, self._rate)
        if split is None:
            return NOTHING
        return self._of_split(pools, split)

    def alternatives(self, number: int) -> list[Optimum]:
        """The best exact optimum, and others with another split of the devices (throughput of two pools)."""
        best = self.optimum(exact_only=True)
        if not best.parts or not self.disaggregated or self._goal != "throughput":
            return [best] if best.parts else []
        pools = [each.pool(exact_only=True) for each in self.judged]
        prompts, tokens = (pool.rate for pool in pools)
        pairs = np.minimum(prompts[: self._devices + 1], tokens[self._devices :: -1])
        found = [best]
        for split in np.argsort(-pairs, kind="stable"):
            if pairs[split] <= 0 or len(found) == number:
                break
            other = self._of_split(pools, (int(split), self._devices - int(split)))
            if all([part.group for part in other.parts] != [part.group for part in each.parts] for each in found):
                found.append(other)
        return found

    def _of_split(self, pools: list[Pool], split: tuple[int, ...]) -> Optimum:
        rate = min(float(pool.rate[devices]) for pool, devices in zip(pools, split, strict=True))
        if self._goal == "fewest_devices":
            value = -float(sum(split))
        else:
            value = rate / (self._devices if self._goal == "throughput" else sum(split))
        parts = []
        for judged, pool, devices in zip(self.judged, pools, split, strict=True):
            if pool.row[devices] == UNKNOWN:
                return Optimum(value, rate, split)
            found = judged.instances.evaluated[int(pool.row[devices])][int(pool.variant[devices])]
            parts.append(Part(found.group.model_copy(update={"num_instances": pool.count(devices)}), found.curve))
        return Optimum(value, rate, split, tuple(parts))

    def refine(self, optimum: Optimum) -> None:
        """Evaluate a layout behind each bound that the optimum stands on."""
        for at, (judged, devices) in enumerate(zip(self.judged, optimum.devices, strict=True)):
            pool = self._pools[at]
            if pool.row[devices] == UNKNOWN:
                judged.refine(int(pool.size[devices]))
                self._pools[at] = judged.pool()


def _split(pools: list[Pool], goal: Goal, devices: int, rate: float | None) -> tuple[int, ...] | None:
    """Devices of each pool in the optimum; None where no deployment answers anything."""
    tables = [pool.rate for pool in pools]
    if goal == "fewest_devices":
        least = [_least(table, rate or 0.0) for table in tables]
        found = tuple(each for each in least if each is not None)
        return found if len(found) == len(tables) and sum(found) <= devices else None
    if len(tables) == 1:
        return _one_pool(tables[0], goal, devices)
    prompts, tokens = tables
    if goal == "throughput":
        pairs = np.minimum(prompts[: devices + 1], tokens[devices::-1])
        first = int(np.argmax(pairs))
        top = float(pairs[first])
        return None if top <= 0 else (_least(prompts, top) or first, _least(tokens, top) or devices - first)
    together = np.minimum(prompts[:, None], tokens[None, :])
    used = np.arange(devices + 1)[:, None] + np.arange(devices + 1)[None, :]
    each = np.where(used <= devices, together / np.maximum(used, 1), 0.0)
    at = np.unravel_index(int(np.argmax(each)), each.shape)
    return None if each[at] <= 0 else (int(at[0]), int(at[1]))


def _one_pool(table: np.ndarray, goal: Goal, devices: int) -> tuple[int, ...] | None:
    at = devices if goal == "throughput" else int(np.argmax(table / np.maximum(np.arange(devices + 1), 1)))
    top = float(table[at])
    if goal == "cheapest" and top > 0:
        # As many copies of the cheapest pool as there is room for cost the same for each token.
        many = devices // at * at
        at = many if table[many] >= top * (many // at) * (1 - 1e-9) else at
        return (at,)
    return None if top <= 0 else (_least(table, top) or at,)


def _least(table: np.ndarray, rate: float) -> int | None:
    """The least devices with at least this rate."""
    enough = table >= rate * (1 - 1e-9)
    return int(np.argmax(enough)) if rate > 0 and enough.any() else None
