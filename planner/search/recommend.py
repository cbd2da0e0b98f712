"""The plan that an expert would run, of those that the model cannot tell from the fastest one.

Two predictions that differ by less than ``BAND`` are in the right order less than three times out of four, so within
it other things decide, in this order:

1. the chance to fit: ``SURE`` or more comes before less, and never less than the fastest plan's where that is below
   ``SURE``.  Finer classes decide nothing real: of the held-out runs with a stated chance of 95 to 99 % 95.8 % fitted,
   of those above 99 % 99.6 %, and no runs tell chances above that apart (docs/decisions/0036);
2. the number of mechanisms to switch on (``planner.search.mechanisms``);
3. a common shape before another one;
4. the predicted step time.

The plans are searched, not picked from those that happen to be known.  The search of the fastest plan is run again in
the part of its space that has at most 0, 1, 2, ... mechanisms, with the room that the chance leaves and with the end of
the band as its cutoff, until it finds a plan.  What the first search bounded is known, and the cutoff leaves little of
it: the few strategies of the small parts are bounded once for all of these, those of the larger parts once more, and
then solved part by part.

The answer is one of the fastest plan's own back-end: the band is measured between runs of one back-end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace

from planner.predict.candidate import Candidate
from planner.predict.memory.fit_chance import memory_ratio
from planner.search.across_backends import Entry
from planner.search.branch import Search
from planner.search.collect import collect
from planner.search.dealt_later import Collected
from planner.search.mechanisms import MECHANISMS, Plain, has_common_shape, mechanisms_of
from planner.search.options import Incumbent, Progress, SearchProgress
from planner.search.stage_capacity import MemoryLimits

BAND = 0.04
"""Predicted ratio less one below which two configurations of one question are in the right order less than 75 % of the
time.  *Fitted* by ``planner.evidence.accuracy.telling_apart`` to the runs of the fit part that are predicted within 25
% of their group's fastest (61 groups, 1,254 pairs, simulated step times): 3.9 %.  On the report part (97 groups) 69 %
of the pairs that are 2 to 5 % apart are in the right order, and 79 % of those that are 5 to 10 % apart."""
MOST = len(MECHANISMS) + 2
"""One more than a strategy with unequal layers can have."""
SMALL = 1
"""Up to how many mechanisms parts are small: most questions need no more, and bounding the strategies of the largest
part costs several times as much."""
SURE = 0.99
"""Chance to fit from which a plan counts as sure."""


def recommended(entry: Entry, slowest_s: float = math.inf, progress: Progress | None = None) -> Candidate | None:
    """The recommended plan of a back-end that was searched and has a fastest plan; None where that is it.

    ``slowest_s``: step time that the question allows.
    """
    fastest, search = entry.best, entry.search
    assert fastest is not None
    assert search is not None
    # A cutoff is not reached by what is searched, and a plan at the end of the band is within it.
    below_s = math.nextafter(min(fastest.step_time_s * (1.0 + BAND), slowest_s), math.inf)
    near = Near(entry, search, fastest, below_s, progress)
    sure_bytes = min(near.sure_bytes, search.rules.limit_bytes)
    limits = (sure_bytes,) if fastest.peak_memory_bytes <= sure_bytes else (sure_bytes, fastest.peak_memory_bytes)
    for limit_bytes in limits:
        found = _simplest(near, limit_bytes)
        if found is not None:
            return None if found is fastest else found
    return None


def _simplest(near: Near, limit_bytes: float) -> Candidate | None:
    """The plan of fewest mechanisms whose peak is within a limit; of those of a common shape, then the fastest."""
    most = near.mechanisms(near.fastest)
    fits = near.fastest.peak_memory_bytes <= limit_bytes
    # More room than the fastest plan leaves may take as many mechanisms as it has, or more.
    together = _Together(near, limit_bytes, most - 1 if fits else MOST)
    found = together.fewest(range(most))
    if found is None and fits:
        found = near.fastest
    if found is None:
        # Or, seldom, more.
        found = together.fewest((most, MOST))
        if found is not None:
            found = together.fewest(range(most + 1, near.mechanisms(found))) or found
    if found is None or near.is_common(found):
        return found
    return together.fastest_of(near.mechanisms(found), common=True) or found


class _Together:
    """Parts of the space within a limit of at most ``most`` mechanisms: the small ones together, and the others."""

    def __init__(self, near: Near, limit_bytes: float, most: int) -> None:
        self._near, self._limit_bytes, self._most = near, limit_bytes, most
        self._collected: dict[int, Collected] = {}

    def fewest(self, numbers: Iterable[int]) -> Candidate | None:
        """The fastest plan of at most so many mechanisms, for the first number that has one."""
        plans = (self.fastest_of(number, common=False) for number in numbers)
        return next((plan for plan in plans if plan is not None), None)

    def fastest_of(self, number: int, *, common: bool) -> Candidate | None:
        """The fastest plan of at most so many mechanisms."""
        part = self._near.part(number, common=common)
        return self._near.fastest_of(self._limit_bytes, part, self.among(number))

    def among(self, number: int) -> Collected | None:
        """All strategies that may be the fastest of at most so many mechanisms; None where the part is searched."""
        if number > self._most:
            return None
        largest = min(SMALL, self._most) if number <= SMALL else self._most
        if largest not in self._collected:
            part = self._near.part(largest, common=False)
            self._collected[largest] = self._near.collected(self._limit_bytes, part)
        return self._collected[largest]


@dataclass(frozen=True, slots=True)
class Near:
    """The plans within the band of the fastest one, to be searched."""

    entry: Entry
    search: Search
    fastest: Candidate
    below_s: float
    progress: Progress | None

    @property
    def sure_bytes(self) -> float:
        """Predicted peak of which ``SURE`` of the runs stay within the device."""
        ratio = memory_ratio(self.entry.software.name)
        return self.entry.hardware.memory_bytes / max(1.0, ratio.quantile(SURE))

    def mechanisms(self, candidate: Candidate) -> int:
        """How many a candidate has."""
        return len(mechanisms_of(candidate.strategy, candidate.split.chunk_layers))

    def is_common(self, candidate: Candidate) -> bool:
        """Whether it has a common shape."""
        return has_common_shape(candidate, self.search.costs.model.num_layers, self._devices_per_node)

    def part(self, most: int, *, common: bool) -> Plain:
        """A part of the space."""
        costs = self.search.costs
        return Plain(most, common, costs.reliefs, costs.model.num_layers, self._devices_per_node)

    @property
    def _devices_per_node(self) -> int:
        return self.entry.hardware.pool.devices_per_node

    def fastest_of(self, limit_bytes: float, part: Plain, among: Collected | None = None) -> Candidate | None:
        """The fastest plan of a part of the space within a limit and the band; ``among``: all that may be one."""
        search = self._search(limit_bytes, part)
        return (search.run(self.below_s) if among is None else search.run_in(among, self.below_s)).best

    def collected(self, limit_bytes: float, part: Plain) -> Collected:
        """The strategies of a part that may be within a limit and the band."""
        return collect(self._search(limit_bytes, part), self.search, self.below_s)

    def _search(self, limit_bytes: float, part: Plain) -> Search:
        """The search of the fastest plan, to be run again."""
        search = copy(self.search)
        search.start_again(Incumbent(self.below_s))
        search.plain = part
        search.rules = replace(search.rules, limit_bytes=min(limit_bytes, search.rules.limit_bytes))
        if part.common and search.rules.first is None:
            search.rules = search.rules.relieving("every")
        search.limits = MemoryLimits(search.rules.limit_bytes, search.rules.host_limit_bytes)
        search.progress = None if self.progress is None else self._told
        return search

    def _told(self, snapshot: SearchProgress) -> None:
        """Whoever watches hears of the fastest plan, which stays what it is."""
        assert self.progress is not None
        result, fastest_s = self.search.result, self.fastest.step_time_s
        self.progress(
            replace(
                snapshot,
                phase="recommending",
                bounded=result.bounded,
                evaluated=result.evaluated + snapshot.evaluated,
                incumbent_s=fastest_s,
                lower_bound_s=min(fastest_s, result.lower_bound_s),
            )
        )
