"""Instances of one family and role: bounded all, evaluated one after another, and what pools of them answer.

``pool(...)`` is a table over devices: ``rate[d]`` requests a second at most of equal instances on at most ``d``
devices, with the row of the layout that gives it, or UNKNOWN where a bound does.  It is exact where it names a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.serving.layout import InstanceGroup, InstanceLayout, InstanceSettings
from planner.serving.predict.curve import InstanceCurve
from planner.serving.search.amounts import FloatArray
from planner.serving.search.bounds import Bounds
from planner.serving.search.curves import LOADS, Evaluator, Family, Limits, Refusal, kept
from planner.serving.search.layouts import Layouts
from planner.serving.words import EngineName, Role

UNKNOWN = -1
NO_ROOM = "no room for the weights and the longest request"
IntArray = NDArray[np.int64]
SETTINGS: Mapping[Role, tuple[InstanceSettings, ...]] = {
    "aggregated": (InstanceSettings(), InstanceSettings(max_num_batched_tokens=2048)),
    "prefill": (InstanceSettings(), InstanceSettings(max_num_batched_tokens=16384)),
    "decode": (InstanceSettings(), InstanceSettings(max_num_sequences=1024)),
}
"""Batch and token limits that are tried: the engine's own, shorter steps, more requests at once."""
EXCHANGES: Mapping[EngineName, Mapping[Role, str]] = {
    "vllm": {
        "aggregated": "deepep_low_latency",
        "prefill": "deepep_high_throughput",
        "decode": "deepep_low_latency",
    },
    "sglang": {"aggregated": "deepep", "prefill": "deepep", "decode": "deepep"},
}
"""Exchanges of experts that are tried beside the engine's own default, where attention_dp and ep are above 1."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One instance that was evaluated."""

    group: InstanceGroup
    curve: InstanceCurve


@dataclass(frozen=True, slots=True)
class Asked:
    """Under which promises and load pools are judged."""

    limits: Limits
    concurrency: float | None = None
    """Requests in flight at the whole deployment; None = the load is free."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Equal instances on at most so many devices, for each number from 0."""

    rate: FloatArray
    size: IntArray
    """Devices of an instance; 0 where no pool answers anything."""
    row: IntArray
    variant: IntArray

    def count(self, devices: int) -> int:
        """Instances of the best pool on so many devices."""
        return devices // int(self.size[devices]) if self.size[devices] else 0


class Instances:
    """Instances of one family with one role; what is evaluated once serves every question about it."""

    def __init__(  # noqa: PLR0917  # what instances are made of
        self, family: Family, role: Role, layouts: Layouts, bounds: Bounds, evaluator: Evaluator, refusal: Refusal,
        settings: tuple[InstanceSettings, ...],
    ) -> None:  # fmt: skip
        self.family, self.role, self.settings = family, role, settings
        self.layouts, self._bounds = layouts, bounds
        self._evaluator, self._refusal = evaluator, refusal
        self.evaluated: dict[int, tuple[Evaluated, ...]] = {}
        """By row; empty where the engine refuses it or nothing fits."""
        self.whole: set[int] = set()
        """Rows of which all settings were evaluated."""
        self.refused: dict[str, int] = {}
        sizes = layouts.devices
        self._rows = {int(size): np.flatnonzero(sizes == size) for size in np.unique(sizes)}

    def evaluate(self, row: int, *, usual: bool = False) -> None:
        """Ask the engine's rules and then the evaluator about one row; ``usual``: with the engine's own limits alone."""
        if row in self.whole or (usual and row in self.evaluated):
            return
        redundant = int(self.layouts.redundant[row])
        layout, found = self.layouts.layout(row), list(self.evaluated.get(row, ()))
        first, further = self._settings_of(layout)
        tried = () if row in self.evaluated else first
        for settings in tried if usual else (*tried, *further):
            said = settings if not redundant else settings.model_copy(update={"redundant_experts": redundant})
            group = InstanceGroup(role=self.role, layout=layout, settings=said)
            reason = self._refusal(self.family, group)
            if reason is None:
                curve = self._evaluator.curve(self.family, group, LOADS)
                reason = None if curve.fits else NO_ROOM
                if curve.fits:
                    found.append(Evaluated(group, curve))
            if reason is not None:
                self.refused[reason] = self.refused.get(reason, 0) + 1
                if not found:
                    break
        self.evaluated[row] = tuple(found)
        if not usual or not found:
            self.whole.add(row)

    def _settings_of(self, layout: InstanceLayout) -> tuple[tuple[InstanceSettings, ...], tuple[InstanceSettings, ...]]:
        """What is tried with a layout: the engine's own limits, with each exchange of experts; other limits."""
        first, exchange = self.settings[0], EXCHANGES.get(self.family.engine, {}).get(self.role)
        if exchange is None or first.expert_exchange is not None or layout.ep == 1 or layout.attention_dp == 1:
            return (first,), self.settings[1:]
        return (first, first.model_copy(update={"expert_exchange": exchange})), self.settings[1:]

    def asked(self, asked: Asked, most_devices: int) -> Judged:
        """The instances under one question."""
        limits = asked.limits
        running = np.inf if asked.concurrency is None else asked.concurrency
        ttft = limits.ttft_s if limits.end_to_end_s is None else min(limits.ttft_s or np.inf, limits.end_to_end_s)
        upper = self._bounds.rate(self.role, ttft, limits.tpot_s, running)
        return Judged(self, asked, most_devices, upper, self._rows)


class Judged:
    """Instances under one question: bounds of those not evaluated, exact rates of the others."""

    def __init__(
        self, instances: Instances, asked: Asked, most_devices: int, upper: FloatArray, rows: Mapping[int, IntArray]
    ) -> None:
        self.instances, self._asked, self._most, self._upper = instances, asked, most_devices, upper.copy()
        self._rows = {size: own for size, own in rows.items() if size <= most_devices}
        self._exact: dict[int, tuple[FloatArray, IntArray, IntArray]] = {}
        for size in self._rows:
            count = most_devices // size
            self._exact[size] = (np.zeros(count + 1), np.full(count + 1, UNKNOWN), np.zeros(count + 1, dtype=int))
        for row in instances.evaluated:
            self._take(row)

    def refine(self, size: int) -> None:
        """Evaluate the layout of this size with the best bound."""
        own = self._rows[size]
        self.take(int(own[np.argmax(self._upper[own])]))

    def take(self, row: int, *, usual: bool = False) -> None:
        """Evaluate a layout, unless its bound says that no promise is kept or it is too large."""
        if self._upper[row] > 0 and int(self.instances.layouts.devices[row]) in self._exact:
            self.instances.evaluate(row, usual=usual)
            self._take(row)

    def pool(self, *, exact_only: bool = False) -> Pool:
        """What pools of equal instances answer at most, by devices."""
        devices = np.arange(self._most + 1)
        rate, size = np.zeros(self._most + 1), np.zeros(self._most + 1, dtype=int)
        row, variant = np.full(self._most + 1, UNKNOWN), np.zeros(self._most + 1, dtype=int)
        for each, own in self._rows.items():
            count = devices // each
            exact, exact_row, exact_variant = self._exact[each]
            one = 0.0 if exact_only else float(self._upper[own].max(initial=0.0))
            optimistic = one * count
            best = np.maximum(exact[count], optimistic)
            better = best > rate * (1 + 1e-9)
            known = exact[count] >= optimistic
            rate = np.where(better, best, rate)
            size = np.where(better, each, size)
            row = np.where(better, np.where(known, exact_row[count], UNKNOWN), row)
            variant = np.where(better, exact_variant[count], variant)
        return Pool(rate, size, row, variant)

    def _take(self, row: int) -> None:
        """Put an evaluated row in the table of its size."""
        if row in self.instances.whole:
            self._upper[row] = 0.0
        size = int(self.instances.layouts.devices[row])
        if size not in self._exact:
            return
        exact, rows, variants = self._exact[size]
        counts = np.arange(len(exact))
        for at, each in enumerate(self.instances.evaluated[row]):
            rates = counts * rates_at(each.curve, self._asked, counts)
            better = rates > exact
            exact[better], rows[better], variants[better] = rates[better], row, at


def rates_at(curve: InstanceCurve, asked: Asked, counts: IntArray) -> FloatArray:
    """Requests a second of one instance where ``counts`` equal ones share the load, under the promises.

    Free load: the most over the grid of loads.  Fixed: what it answers with its share in flight (interpolated between
    loads), nothing where a promise is broken there; an instance of a disaggregated deployment has at most that share.
    """
    good = kept(curve, asked.limits) > 0
    if asked.concurrency is None:
        return np.full(len(counts), float((curve.requests_per_s * good).max(initial=0.0)))
    shares = asked.concurrency / np.maximum(counts, 1)
    rates: FloatArray = np.interp(shares, curve.loads, curve.requests_per_s)
    rates = np.where(shares < curve.loads[0], rates * shares / curve.loads[0], rates)
    if curve.ttft_s and curve.tpot_s:
        fine = np.ones(len(counts), dtype=bool)
        limits = asked.limits
        for times, limit in (
            (curve.ttft_s, limits.ttft_s),
            (curve.tpot_s, limits.tpot_s),
            (curve.end_to_end_s, limits.end_to_end_s),
        ):
            if limit is not None:
                fine &= np.interp(shares, curve.loads, times[limits.percentile]) <= limit
        return np.where(fine, rates, 0.0)
    return np.minimum(rates, float((curve.requests_per_s * good).max(initial=0.0)))
