"""One instance over its load, judged by promises: the exact part of the search.

An ``Evaluator`` gives the curve of one instance: what requests see and how many are answered, at each of ``LOADS``
requests in flight.  ``best_load`` takes the load with the most requests a second among those that keep the promises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from planner.serving.layout import Deployment, Formats, InstanceGroup
from planner.serving.predict.curve import InstanceCurve
from planner.serving.predict.prediction import ServingPrediction
from planner.serving.search.amounts import FloatArray
from planner.serving.traffic import ServiceLevel, ServingTraffic
from planner.serving.words import EngineName

LOADS = np.unique(np.round(2.0 ** np.arange(0, 13.01, 1 / 2)))
"""Requests in flight at one instance: the grid of loads, a factor 1.41 apart."""
PERCENTILES: tuple[float, ...] = (50, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class Family:
    """What all instances of a deployment share."""

    engine: EngineName
    release: str
    formats: Formats

    def deployment(self, *groups: InstanceGroup) -> Deployment:
        """The deployment of these groups."""
        return Deployment(engine=self.engine, release=self.release, formats=self.formats, groups=groups)


class Evaluator(Protocol):
    """What predicts: of one instance over loads, and of a whole deployment under a traffic."""

    def curve(self, family: Family, group: InstanceGroup, loads: FloatArray) -> InstanceCurve:
        """One instance of a group, alone; ``group.role`` says what it does."""
        ...

    def predicted(self, deployment: Deployment, traffic: ServingTraffic) -> ServingPrediction:
        """The whole deployment."""
        ...


Refusal = Callable[[Family, InstanceGroup], str | None]
"""Why an engine cannot run a group, in one sentence; None where it can."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Promises as limits on times at one percentile; None = not promised."""

    percentile: int
    ttft_s: float | None = None
    tpot_s: float | None = None
    end_to_end_s: float | None = None

    def without(self, promise: str) -> Limits:
        """The others: ``promise`` is ttft, tpot or end_to_end."""
        return Limits(
            self.percentile,
            None if promise == "ttft" else self.ttft_s,
            None if promise == "tpot" else self.tpot_s,
            None if promise == "end_to_end" else self.end_to_end_s,
        )


def limits_of(promised: ServiceLevel) -> Limits:
    """The promises; a percentile between those that predictions have counts as the next higher one."""
    percentile = next((each for each in PERCENTILES if each >= promised.percentile), PERCENTILES[-1])
    return Limits(int(percentile), promised.ttft_s, promised.tpot_s, promised.end_to_end_s)


def kept(curve: InstanceCurve, limits: Limits) -> FloatArray:
    """1 at the loads that keep the promises, else 0."""
    good = np.ones(len(curve.loads), dtype=bool)
    for times, limit in (
        (curve.ttft_s, limits.ttft_s),
        (curve.tpot_s, limits.tpot_s),
        (curve.end_to_end_s, limits.end_to_end_s),
    ):
        if limit is not None and times:
            good &= times[limits.percentile] <= limit
    return good.astype(float)


def best_load(curve: InstanceCurve, limits: Limits, most: float = np.inf) -> tuple[float, float]:
    """(requests a second, load) of the best load that keeps the promises and is at most ``most``; (0, 0) if none does.

    Of loads that answer within a thousandth of the most, the smallest: more in flight would only wait.
    """
    if not curve.fits:
        return 0.0, 0.0
    loads, rates = curve.loads, curve.requests_per_s * kept(curve, limits)
    if most < loads[-1]:
        rates = np.where(loads <= most, rates, 0.0)
    top = float(rates.max(initial=0.0))
    if top <= 0.0:
        return 0.0, 0.0
    at = int(np.argmax(rates >= top * 0.999))
    return float(rates[at]), float(loads[at])


def prediction_meets(prediction: ServingPrediction, limits: Limits) -> bool:
    """Whether a prediction keeps the promises."""
    name = f"p{limits.percentile}_s"
    for spread, limit in (
        (prediction.ttft, limits.ttft_s),
        (prediction.tpot, limits.tpot_s),
        (prediction.end_to_end, limits.end_to_end_s),
    ):
        if limit is not None and (spread is None or getattr(spread, name) > limit):
            return False
    return prediction.fits
