"""Ratios of measured over predicted memory from measured runs, and a check of the stated chances.

Every run is one observation of the ratio ``r`` (``planner.predict.memory.fit_chance``):

- ``exact``: the source states a peak: ``r`` itself;
- ``finished``: it ran and states none: ``r <= device memory / prediction``;
- ``out_of_memory``: ``r > device memory / prediction``.

Left out: peaks below ``SMALLEST_BYTES``, whose error is one of buffers of fixed size and says nothing of a full device;
and figures that hold no activations (``Flavour.memory`` resident), whose runs count as finished.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from planner.evidence.runs.prediction import Prediction
from planner.predict.memory.fit_chance import POOLED, MemoryRatio, measured_ratios, memory_ratio, ratio_name
from solver.arrays import Array

Kind = Literal["exact", "finished", "out_of_memory"]
KINDS: tuple[Kind, ...] = get_args(Kind)

SMALLEST_BYTES = 2.0 * 2**30
FEWEST_ROWS = 30
"""Rows that state a peak or ran out of memory, for a back-end to have a distribution of its own."""
LEAST_CHANCE = 1e-6
"""Chance that any run has to end otherwise than predicted, so that one strange row decides nothing."""
CHANCE_EDGES = (0.0, 0.05, 0.5, 0.8, 0.95, 0.99, 1.0)
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Observation:
    """``ratio``: measured over predicted, or device memory over predicted where the run only ended well or ill."""

    backend: str
    kind: Kind
    ratio: float


def observation(prediction: Prediction) -> Observation | None:
    """What a row says; None where it says nothing of a full device, or hangs on a recompute that it does not state."""
    row, backend = prediction.row, ratio_owner(prediction)
    if prediction.fits is None:
        return None
    room = prediction.device_memory_bytes / prediction.total_memory_bytes
    if row.out_of_memory:
        return Observation(backend, "out_of_memory", room)
    measured = row.measured_peak_bytes
    if measured is None or prediction.flavour.memory == "resident":
        return Observation(backend, "finished", room)
    if prediction.peak_memory_bytes < SMALLEST_BYTES:
        return None
    return Observation(backend, "exact", measured / prediction.peak_memory_bytes)


def ratio_owner(prediction: Prediction) -> str:
    """Name of the row's back-end; empty where its source does not say."""
    return prediction.flavour.backend.partition("==")[0]


def fitted_ratios(observations: Sequence[Observation]) -> dict[str, MemoryRatio]:
    """The most likely distribution of every back-end with enough rows, and what they say of one without rows."""
    of: dict[str, list[Observation]] = defaultdict(list)
    for each in observations:
        of[each.backend].append(each)
    enough = {name for name, found in of.items() if sum(each.kind != "finished" for each in found) >= FEWEST_ROWS}
    own = {name: _fitted(of[name]) for name in sorted(enough - {""})}
    return {POOLED: _between(list(own.values())), **own}


def _between(own: Sequence[MemoryRatio]) -> MemoryRatio:
    """A back-end that was not measured errs as one of those that were, and they differ: random effects.

    ``median`` is their geometric mean; ``scale ** 2`` the mean of theirs plus the variance between their medians.  All
    rows in one likelihood would give the largest back-end's spread to one that nobody measured.
    """
    if len(own) < 2:  # a variance needs two
        raise ValueError(f"{len(own)} back-ends state enough peaks; the spread between back-ends needs two")
    medians = np.log([each.median for each in own])
    scale = math.sqrt(float(np.mean([each.scale**2 for each in own])) + float(np.var(medians, ddof=1)))
    counts = {name: sum(getattr(each, name) for each in own) for name in KINDS}
    return MemoryRatio(median=round(math.exp(float(medians.mean())), 4), scale=round(scale, 4), **counts)


def _fitted(every: Sequence[Observation]) -> MemoryRatio:
    ratio = np.log([each.ratio for each in every])
    kind = np.array([each.kind for each in every])
    centre, spread, width = 0.0, math.log(0.05), 1.0
    # Both coordinates are refined around the best point of a grid; the likelihood has one maximum here.
    for _ in range(8):
        centres = centre + width * np.linspace(-0.4, 0.4, 17)
        spreads = spread + width * np.linspace(-2.5, 2.5, 17)
        values = [[float(_log_likelihood(ratio, kind, c, math.exp(s)).sum()) for s in spreads] for c in centres]
        at = np.unravel_index(int(np.argmax(values)), (17, 17))
        centre, spread, width = float(centres[at[0]]), float(spreads[at[1]]), width / 3.0
    counts = {name: int(np.count_nonzero(kind == name)) for name in KINDS}
    return MemoryRatio(median=round(math.exp(centre), 4), scale=round(math.exp(spread), 4), **counts)


def _log_likelihood(ratio: Array, kind: NDArray[np.str_], centre: float, scale: float) -> Array:
    """Of Student's t with four degrees of freedom, density or tail."""
    t = (ratio - centre) / scale
    part = t * t / 4.0
    below = 0.5 + 0.375 * t / np.sqrt(1.0 + part) * (1.0 - part / (1.0 + part) / 3.0)
    below = LEAST_CHANCE + (1.0 - 2.0 * LEAST_CHANCE) * below
    density = np.log(0.375) - 2.5 * np.log1p(part) - math.log(scale)
    return np.where(kind == "exact", density, np.where(kind == "finished", np.log(below), np.log1p(-below)))


def chance_figures(observations: Sequence[Observation]) -> dict[str, Any]:
    """Do stated chances hold?  Of fitting, by runs that ended well or ill; of quantiles, by runs that state a peak."""
    ended = [each for each in observations if each.kind != "exact"]
    stated = np.array([memory_ratio(each.backend).chance(each.ratio) for each in ended])
    fitted = np.array([each.kind == "finished" for each in ended])
    exact = [each for each in observations if each.kind == "exact"]
    below = np.array([memory_ratio(each.backend).chance(each.ratio) for each in exact])
    bins = []
    for low, high in pairwise(CHANCE_EDGES):
        inside = (stated >= low) & ((stated < high) | (high == 1.0))
        found = int(np.count_nonzero(inside))
        bins.append(
            {
                "from": low,
                "to": high,
                "n": found,
                "stated": float(stated[inside].mean()) if found else None,
                "fitted": float(fitted[inside].mean()) if found else None,
            }
        )
    levels = [{"level": level, "below": float(np.mean(below <= level))} for level in LEVELS] if exact else []
    died = sum(each.kind == "out_of_memory" for each in ended)
    return {"bins": bins, "out_of_memory": died, "num_exact": len(exact), "levels": levels}


def chance_data(predictions: Sequence[Prediction], fitted: Sequence[bool]) -> dict[str, Any]:
    """Both parts, all rows and by back-end: those that chose the distributions, and those that judge."""
    parts: dict[str, Mapping[str, Sequence[Observation]]] = {
        "fitted": _by_backend(predictions, fitted, part=True),
        "judged": _by_backend(predictions, fitted, part=False),
    }
    return {
        "ratios": {name: _ratio_figures(each) for name, each in measured_ratios().ratios.items()},
        **{
            part: [
                {"backend": name, "ratio": ratio_name(name) if name != "all" else "", **chance_figures(rows)}
                for name, rows in found.items()
            ]
            for part, found in parts.items()
        },
    }


def _ratio_figures(ratio: MemoryRatio) -> dict[str, Any]:
    quantiles = {"quantile_95": ratio.quantile(0.95), "quantile_99": ratio.quantile(0.99)}
    return {**ratio.model_dump(mode="json"), **quantiles}


def _by_backend(
    predictions: Sequence[Prediction], fitted: Sequence[bool], *, part: bool
) -> dict[str, list[Observation]]:
    found: dict[str, list[Observation]] = {"all": []}
    for each, used in zip(predictions, fitted, strict=True):
        seen = observation(each) if used == part else None
        if seen is not None:
            found["all"].append(seen)
            found.setdefault(seen.backend or "not stated", []).append(seen)
    return found
