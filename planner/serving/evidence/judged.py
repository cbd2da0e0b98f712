"""Errors of predictions on measured points: quantities, parts, groups of points."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from planner.serving.evidence.mapped import MeasuredPoint
from planner.serving.evidence.predicted import Predicted

Quantity = Literal["ttft", "tpot", "throughput"]
QUANTITIES: tuple[Quantity, ...] = ("tpot", "throughput", "ttft")
TARGETS: dict[Quantity, float] = {"tpot": 0.08, "throughput": 0.10, "ttft": 0.20}
"""Median errors that are aimed at."""
NEAR_BEST = 0.05


@dataclass(frozen=True, slots=True)
class Judged:
    """One point with its prediction."""

    point: MeasuredPoint
    predicted: Predicted

    @property
    def fitted_on(self) -> bool:
        """Whether it is in the part that factors are fitted on."""
        return is_fitted_on(self.point)

    def ratio(self, quantity: Quantity) -> float | None:
        """Measured over predicted; None where one of the two is missing.

        Rows at a fixed number of requests in flight without a throughput have the one that Little's law gives.
        """
        measured = measured_value(self.point, quantity)
        value = {
            "ttft": self.predicted.ttft_s,
            "tpot": self.predicted.tpot_s,
            "throughput": self.predicted.output_tokens_per_s,
        }[quantity]
        return measured / value if measured and value else None


def measured_value(point: MeasuredPoint, quantity: Quantity) -> float | None:
    """What was measured, seconds or tokens a second."""
    if quantity == "ttft":
        return point.ttft_s
    if quantity == "tpot":
        return point.tpot_s
    if point.output_tokens_per_s is None and point.kind in {"aggregated", "disaggregated"}:
        return derived_throughput(point)
    return point.output_tokens_per_s


def derived_throughput(point: MeasuredPoint) -> float | None:
    """Output tokens a second by Little's law: requests in flight x output / (TTFT + TPOT x (output - 1))."""
    output = point.row.number("osl")
    if point.ttft_s is None or point.tpot_s is None or output is None:
        return None
    low = point.traffic.output_tokens.low
    mean = output if low is None else (low + (point.traffic.output_tokens.high or low)) / 2
    return point.load * mean / (point.ttft_s + point.tpot_s * (mean - 1))


def is_fitted_on(point: MeasuredPoint) -> bool:
    """Half of the sweeps: all rows of a source with one model, device, engine release and precision go together."""
    return hashlib.sha256(sweep_of(point).encode()).digest()[0] % 2 == 0


def sweep_of(point: MeasuredPoint) -> str:
    """What all rows of one sweep share."""
    row = point.row
    subject = (row["source"].split("@")[0], row["model"], row["device"], row["engine"], row["engine_version"])
    return "|".join((*subject, row["precision"]))


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """Errors of one quantity over some points."""

    name: str
    quantity: Quantity
    count: int
    median_error: float
    """Of ``|predicted / measured - 1|``."""
    mean_error: float
    bias: float
    """Median of measured over predicted."""
    covered: float
    """Part of points inside the stated 90 % interval."""


def error_lines(
    points: Sequence[Judged], likely: dict[Quantity, dict[str, tuple[float, float]]], by: str
) -> list[ErrorLine]:
    """Errors by ``engine``, ``device``, ``kind``, ``release`` or ``all``; ``likely``: intervals by engine."""
    groups: dict[tuple[str, Quantity], list[tuple[float, bool]]] = defaultdict(list)
    for judged in points:
        name = "all" if by == "all" else str(getattr(judged.point, by))
        for quantity in QUANTITIES:
            ratio = judged.ratio(quantity)
            if ratio is not None:
                low, high = likely[quantity].get(judged.point.engine, (0.0, np.inf))
                groups[name, quantity].append((ratio, low <= ratio <= high))
    return [_line(name, quantity, found) for (name, quantity), found in sorted(groups.items())]


def _line(name: str, quantity: Quantity, found: list[tuple[float, bool]]) -> ErrorLine:
    ratios = np.array([ratio for ratio, _ in found])
    errors = np.abs(1 / ratios - 1)
    return ErrorLine(
        name=name,
        quantity=quantity,
        count=len(found),
        median_error=float(np.median(errors)),
        mean_error=float(errors.mean()),
        bias=float(np.median(ratios)),
        covered=float(np.mean([inside for _, inside in found])),
    )


@dataclass(frozen=True, slots=True)
class Picks:
    """Groups of one question with several layouts: how good the one is that prediction puts first."""

    groups: int
    near_best: float
    """Part of groups whose pick is within 5 % of the measured best."""
    mean_loss: float
    """Mean of 1 - measured of the pick over measured of the best."""
    blind: float
    """Part of layouts within 5 % of the best: what a blind pick would reach."""
    fewest: float
    """Part of groups where the layout on fewest devices is: a rule that needs no prediction."""


def picks(points: Iterable[Judged]) -> Picks:
    """Judge the pick of most output tokens a second and device, in groups with at least two layouts."""
    groups: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    for judged in points:
        measured = measured_value(judged.point, "throughput")
        value = judged.predicted.output_tokens_per_s
        if measured and value:
            devices = judged.point.deployment.num_devices
            groups[judged.point.group].append((measured / devices, value / devices, devices))
    losses, blind, fewest = [], [], []
    for found in groups.values():
        best = max(measured for measured, _, _ in found)
        if len({each[0] for each in found}) > 1:
            fewest.append(min(found, key=lambda each: each[2])[0] >= (1 - NEAR_BEST) * best)
            losses.append(1 - max(found, key=lambda pair: pair[1])[0] / best)
            blind.append(np.mean([measured >= (1 - NEAR_BEST) * best for measured, _, _ in found]))
    if not losses:
        return Picks(0, 0.0, 0.0, 0.0, 0.0)
    near = float(np.mean([loss <= NEAR_BEST for loss in losses]))
    return Picks(len(losses), near, float(np.mean(losses)), float(np.mean(blind)), float(np.mean(fewest)))
