"""The search: every contest by its bound, the best one refined until its optimum is exact.

What is proved: no deployment of the stated space (layouts of ``layouts``, batch and token limits of ``instances``,
formats, engines and releases asked) answers more at a load of the grid ``LOADS`` under the promises, by this
prediction.  With a time limit the highest bound that is left says how much better another could be.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from planner.serving.layout import Formats, InstanceSettings
from planner.serving.problem import ServingProblem
from planner.serving.search.amounts import model_amounts, request_amounts
from planner.serving.search.bounds import Bounds, Shape, bounds_of
from planner.serving.search.contests import Contest, Goal, Optimum
from planner.serving.search.curves import Evaluator, Family, Limits, Refusal
from planner.serving.search.dive import dive, warm
from planner.serving.search.instances import SETTINGS, Asked, Instances, Judged
from planner.serving.search.layouts import Layouts, layouts_of
from planner.serving.words import Role

_NUMBER = re.compile(r"(?<![\w.-])\d[\d,.]*(?![\w])")
DIVING = 0.6
"""Part of a time limit for good deployments; the rest is for the proof."""
ROLES: dict[bool, tuple[Role, ...]] = {False: ("aggregated",), True: ("prefill", "decode")}


@dataclass(frozen=True, slots=True)
class Ranked:
    """A contest and its best deployment."""

    contest: Contest
    optimum: Optimum


@dataclass(frozen=True, slots=True)
class Found:
    """The end of one search; ``ranked``: exact optima of contests, the best first."""

    ranked: tuple[Ranked, ...]
    bound: float
    """In the unit of ``Optimum.value``: nothing of the space is above it."""
    proved: bool


@dataclass
class Space:
    """Every instance of a question, shared by all searches of it."""

    problem: ServingProblem
    families: tuple[Family, ...]
    evaluator: Evaluator
    refusal: Refusal
    devices: int
    host_s: float = 0.0
    """Seconds of an iteration that no device work hides: the least of the engines asked."""
    layouts: dict[Role, Layouts] = field(default_factory=dict)
    _instances: dict[tuple[Family, Role], Instances] = field(default_factory=dict)
    _bounds: dict[tuple[Formats, Role], Bounds] = field(default_factory=dict)

    def kinds(self) -> tuple[bool, ...]:
        """Whether deployments of this space are disaggregated: both, or one of the two."""
        return {"any": (False, True), "never": (False,), "always": (True,)}[self.problem.constraints.disaggregation]

    def instances(self, family: Family, role: Role) -> Instances:
        """Instances of a family with a role, made when they are first asked for."""
        key = family, role
        if key not in self._instances:
            pool = self.problem.cluster.pools[0]
            if role not in self.layouts:
                self.layouts[role] = layouts_of(self.problem.model, pool, role, self.axis_pins())
            shape = family.formats, role
            if shape not in self._bounds:
                amounts, request = model_amounts(self.problem.model), request_amounts(self.problem.traffic)
                self._bounds[shape] = bounds_of(
                    Shape(amounts, request, pool, family.formats, self.host_s), self.layouts[role], role
                )
            self._instances[key] = Instances(
                family,
                role,
                self.layouts[role],
                self._bounds[shape],
                self.evaluator,
                self.refusal,
                self._settings(role),
            )
        return self._instances[key]

    def axis_pins(self) -> dict[str, int]:
        """Pins of axes."""
        from planner.serving.search.layouts import FIELDS

        return {name: int(value) for name, value in self.problem.constraints.pins.items() if name in FIELDS}

    def _settings(self, role: Role) -> tuple[InstanceSettings, ...]:
        """Settings that are tried, with those that are pinned."""
        from planner.serving.search.layouts import FIELDS

        pins = {name: value for name, value in self.problem.constraints.pins.items() if name not in FIELDS}
        made = [InstanceSettings.model_validate({**each.model_dump(), **pins}) for each in SETTINGS[role]]
        return tuple(dict.fromkeys(made))

    def num_evaluated(self) -> int:
        """Instance layouts that were evaluated."""
        return sum(len(each.evaluated) for each in self._instances.values())

    def refused(self) -> dict[str, int]:
        """What was left out by rules, by reason; reasons that differ by numbers alone are one."""
        found: dict[str, int] = {}
        sources = [each.refused for each in self.layouts.values()] + [each.refused for each in self._instances.values()]
        for source in sources:
            for reason, count in source.items():
                words = _NUMBER.sub("N", reason)
                found[words] = found.get(words, 0) + count
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def num_deployments(self) -> int:
        """Deployments of the space: every layout and setting, in every number that there is room for."""
        numbers = {role: self._by_devices(role) for role in self.layouts}
        single = int(numbers["aggregated"].sum()) if "aggregated" in numbers else 0
        pairs = 0
        if "prefill" in numbers:
            upto = np.cumsum(numbers["decode"])
            pairs = int(sum(numbers["prefill"][each] * upto[self.devices - each] for each in range(1, self.devices)))
        return len(self.families) * (single + pairs)

    def _by_devices(self, role: Role) -> np.ndarray:
        """How many pools use exactly so many devices."""
        found = np.zeros(self.devices + 1)
        sizes, counts = np.unique(self.layouts[role].devices, return_counts=True)
        for size, count in zip(sizes, counts, strict=True):
            found[size :: int(size)] += count * len(self._settings(role))
        return found


def search(
    space: Space,
    limits: Limits,
    goal: Goal,
    *,
    concurrency: float | None = None,
    rate: float | None = None,
    most_s: float | None = None,
    kinds: tuple[bool, ...] | None = None,
    clock: Callable[[], float] = time.process_time,
) -> Found:
    """The best deployment of a space under these promises; ``rate``: requests a second to answer (fewest devices).

    ``most_s``: seconds of this process, so that what else the machine does changes no answer; reading tables of kernels
    for the first time does not count.
    """
    asked = Asked(limits, concurrency)
    contests = [
        Contest(family, _judged(space, family, disaggregated, asked), goal, space.devices, rate)
        for disaggregated in (space.kinds() if kinds is None else kinds)
        for family in space.families
    ]
    for each in contests:
        warm(each)
    start = clock()

    def spent(part: float) -> bool:
        return most_s is not None and clock() - start > part * most_s

    known: set[tuple[int, ...]] = set()
    # Engines in one format first: what is best there is tried first in the others.
    leading = space.families[0].formats
    for place, each in enumerate(sorted(contests, key=lambda contest: contest.family.formats != leading)):
        known |= dive(each, known, partial(spent, DIVING * (place + 1) / len(contests)))
    optima = [each.optimum() for each in contests]
    while True:
        at = max(range(len(contests)), key=lambda place: optima[place].value)
        top = optima[at]
        if top.parts or top.value == -np.inf or spent(1.0):
            break
        contests[at].refine(top)
        optima[at] = contests[at].optimum()
    ranked = [Ranked(each, each.optimum(exact_only=True)) for each in contests]
    ranked = [each for each in ranked if each.optimum.parts]
    ranked.sort(key=lambda each: -each.optimum.value)
    return Found(tuple(ranked), top.value, bool(top.parts) or top.value == -np.inf)


def _judged(space: Space, family: Family, disaggregated: bool, asked: Asked) -> tuple[Judged, ...]:
    return tuple(space.instances(family, role).asked(asked, space.devices) for role in ROLES[disaggregated])
