"""The coverage of a plan by measurements, and what should be measured next.

The input part of a class' spread is the weighted sum of its lookups' sigmas (lookups of one class are wrong together)::

    sigma_input(class) = sum over lookups  share of the class x sigma

and the gain of measuring a lookup is what the whole step's sigma would lose if its own sank to ``MEASURED_SIGMA``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planner.predict.cost.hardware import Hardware
from planner.predict.cost.row_cost import CostModel
from planner.predict.coverage.communication import RecordingHardware, communication_leanings
from planner.predict.coverage.compute import compute_leanings
from planner.predict.coverage.leaning import ROOFLINE_SIGMA, Leaning
from planner.predict.uncertainty import CLASS_OF_TERM, step_sigma
from planner.question.problem import Problem
from planner.strategy.rows import StrategyRows, relief_of
from planner.strategy.strategy import Strategy
from profiles.prediction.rungs import PROVENANCE_OF_RUNG, Rung

MEASURED_SIGMA = 0.03


@dataclass(frozen=True, slots=True)
class Coverage:
    """The lookups of a plan (largest share of the step first) and the breakdown that they belong to."""

    leanings: tuple[Leaning, ...]
    breakdown_s: dict[str, float]

    @property
    def input_sigma(self) -> dict[str, float]:
        """Spread of the inputs by class of the uncertainty model: compute, network."""
        return class_sigma(self.leanings)

    @property
    def provenance_shares(self) -> dict[str, float]:
        """Part of the looked-up time by provenance: measured, interpolated, extrapolated, transferred, datasheet."""
        total = sum(leaning.seconds for leaning in self.leanings)
        shares: dict[str, float] = {}
        for leaning in self.leanings:
            name = PROVENANCE_OF_RUNG[leaning.rung]
            shares[name] = shares.get(name, 0.0) + leaning.seconds / total
        return shares

    def gains(self) -> list[tuple[Leaning, float]]:
        """Lookups by how much the step's sigma would sink if each were measured, largest first."""
        before = step_sigma(self.breakdown_s, self.input_sigma)
        found: list[tuple[Leaning, float]] = []
        for place, leaning in enumerate(self.leanings):
            if leaning.rung == Rung.EXACT or leaning.sigma <= MEASURED_SIGMA:
                continue
            better = list(self.leanings)
            better[place] = replace(leaning, sigma=MEASURED_SIGMA)
            found.append((leaning, before - step_sigma(self.breakdown_s, class_sigma(better))))
        return sorted(found, key=lambda pair: -pair[1])


def class_sigma(leanings: Sequence[Leaning]) -> dict[str, float]:
    """Weighted sum of sigmas by class; the roofline's where a class has no lookup."""
    seconds: dict[str, float] = {}
    weighted: dict[str, float] = {}
    for leaning in leanings:
        name = CLASS_OF_TERM[leaning.term]
        seconds[name] = seconds.get(name, 0.0) + leaning.seconds
        weighted[name] = weighted.get(name, 0.0) + leaning.seconds * leaning.sigma
    return {name: weighted[name] / seconds[name] if seconds.get(name) else sigma for name, sigma in _ROOFLINE.items()}


_ROOFLINE: Mapping[str, float] = ROOFLINE_SIGMA


def coverage(problem: Problem, hardware: Hardware, strategy: Strategy, breakdown_s: dict[str, float]) -> Coverage:
    """The lookups of one strategy, weighted by their seconds in the step."""
    recording = RecordingHardware.around(hardware)
    reliefs = (relief_of(strategy),)
    rows = StrategyRows.of([strategy], reliefs)
    costs = CostModel(problem.model, problem.workload, recording, reliefs)
    costs.rows(rows)
    compute = compute_leanings(problem.model, costs.keys(rows)[0], hardware)
    total_s = sum(leaning.seconds for leaning in compute)
    step_s = breakdown_s.get("compute", 0.0) + breakdown_s.get("recompute", 0.0)
    scaled = [replace(leaning, seconds=leaning.seconds / total_s * step_s) for leaning in compute]
    found = [*scaled, *communication_leanings(recording, strategy, breakdown_s)]
    return Coverage(tuple(sorted(found, key=lambda leaning: -leaning.seconds)), dict(breakdown_s))
