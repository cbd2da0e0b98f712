"""The few factors of an engine that are fitted: host time, kernel factors, waiting; and how far points lie about them.

By engine and generation of its releases (``behaviours.generation``); of half of the sweeps (``judged.is_fitted_on``),
never by row.  The sum of ``|log(measured / predicted)|`` over the quantities of each point is made small, one factor
after the other over a fixed grid; no point counts for more than ``WORST``, and a pull to the neutral value
(``SHRINKAGE`` a log step).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.serving.evidence.judged import QUANTITIES, Judged, Quantity
from planner.serving.evidence.mapped import MeasuredPoint
from planner.serving.evidence.predicted import NEUTRAL, Prepared
from planner.serving.evidence.unmapped import RowUnmapped
from planner.serving.predict.behaviour import Behaviour

GRIDS: dict[str, tuple[float, ...]] = {
    "decode_factor": (0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.35, 1.5),
    "prompt_factor": (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.8),
    "host_s": (0.0, 0.0003, 0.0006, 0.001, 0.0015, 0.002, 0.003, 0.005),
    "host_s_a_sequence": (0.0, 5e-6, 1e-5, 2e-5, 4e-5, 8e-5),
    "request_s_a_layer": (0.0, 0.0002, 0.0004, 0.0007, 0.001, 0.0015, 0.002, 0.0025, 0.003),
    "request_s": (0.0, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15),
    "wait_iterations": (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0),
}
"""Values that are tried for each fitted field."""
OF_FIRST_TOKENS = frozenset({"request_s", "request_s_a_layer", "wait_iterations"})
"""Fields that stay neutral where no first token under load was measured."""
FITTED_KINDS = frozenset({"aggregated", "offline throughput", "static batch", "first token"})
"""Kinds of run whose lengths and load are stated well enough to fit on."""
DRAFTING = frozenset({"tensorrt-llm"})
"""Engines whose rows of models with prediction modules of their own (DeepSeek) draft with them in part, which the rows
do not say: some took a third of the time of a pass of the model.  They are judged, not fitted on."""
SHRINKAGE = 0.002
PRIOR_SWEEPS = 10
WORST: dict[Quantity, float] = {"tpot": 0.7, "throughput": 0.7, "ttft": 2.5}
"""Largest errors that count, in logarithms: beyond a factor of two (first token: of twelve, which waiting alone can
make) a row says something else than what was run."""
ROUNDS, LEAST_GAIN = 3, 1e-3
WEIGHTS: dict[Quantity, float] = {"tpot": 1.0, "throughput": 1.0, "ttft": 0.5}
_TAILS = (0.05, 0.95)
_FEWEST = 20
"""Points below which no interval of an engine's own is stated."""


def fitted(points: Sequence[Prepared], start: Behaviour) -> dict[str, float]:
    """Fit the fields of ``GRIDS`` to the points of one generation: each in turn a step up or down while it helps."""
    points = [each for each in points if fits_well(each.point)]
    told = any(each.point.kind == "aggregated" and each.point.ttft_s for each in points)
    grids = GRIDS if told else {field: GRIDS[field] for field in GRIDS if field not in OF_FIRST_TOKENS}
    best = dict(NEUTRAL)
    smallest = _loss(points, start, best)
    for _ in range(ROUNDS):
        before = smallest
        for field, values in grids.items():
            for step in (1, -1):
                place = values.index(best[field]) + step
                while 0 <= place < len(values):
                    tried = best | {field: values[place]}
                    loss = _loss(points, start, tried)
                    if loss >= smallest:
                        break
                    best, smallest, place = tried, loss, place + step
        if smallest > before - LEAST_GAIN:
            break
    return best


def fits_well(point: MeasuredPoint) -> bool:
    """Whether a row says enough of what was run to fit on it."""
    drafts = point.engine in DRAFTING and point.model.mtp is not None
    lengths = point.traffic.output_tokens
    spread = lengths.kind == "uniform" and lengths.low == 1  # the mean of times a token is of the shortest requests
    return point.kind in FITTED_KINDS and not drafts and not spread


def shrunk(fields: dict[str, float], sweeps: int) -> dict[str, float]:
    """Fitted fields as they are used: of factors on kernels the part ``sweeps / (sweeps + 10)``, in logarithms.

    The factors of single sweeps differ by as much as a fitted one is from 1, so that few of them say little.
    """
    part = sweeps / (sweeps + PRIOR_SWEEPS)
    return fields | {name: fields[name] ** part for name in ("decode_factor", "prompt_factor")}


def _loss(points: Sequence[Prepared], start: Behaviour, fields: dict[str, float]) -> float:
    behaviour = replace(start, **fields)  # type: ignore[arg-type]
    errors: list[float] = []
    for point in points:
        try:
            judged = Judged(point.point, point.predicted(behaviour))
        except RowUnmapped:
            continue
        for quantity in QUANTITIES:
            ratio = judged.ratio(quantity)
            if ratio is not None:
                errors.append(WEIGHTS[quantity] * min(abs(math.log(ratio)), WORST[quantity]))
    error = float(np.mean(errors)) if errors else 0.0
    pulled = sum(abs(math.log(fields[name])) for name in ("decode_factor", "prompt_factor"))
    pulled += sum(fields[name] > 0 for name in ("host_s", "host_s_a_sequence", "request_s_a_layer", "request_s"))
    return error + SHRINKAGE * pulled


def intervals(points: Sequence[Judged]) -> dict[Quantity, dict[str, tuple[float, float]]]:
    """Of each engine: what 90 % of the ratios of these points lie between; of few points, those of all engines."""
    found: dict[Quantity, dict[str, tuple[float, float]]] = {}
    for quantity in QUANTITIES:
        by_engine: dict[str, list[float]] = defaultdict(list)
        for judged in points:
            ratio = judged.ratio(quantity)
            if ratio is not None:
                by_engine[judged.point.engine].append(ratio)
        everything = [ratio for ratios in by_engine.values() for ratio in ratios]
        found[quantity] = {
            engine: _tails(ratios if len(ratios) >= _FEWEST else everything) for engine, ratios in by_engine.items()
        }
    return found


def _tails(ratios: list[float]) -> tuple[float, float]:
    low, high = np.quantile(ratios, _TAILS)
    return float(low), float(high)
