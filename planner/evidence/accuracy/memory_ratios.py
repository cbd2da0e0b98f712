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

from planner.evidence.accuracy.memory_sources import SHOWN, further_sources, likelihood
from planner.evidence.runs.prediction import Prediction
from planner.evidence.runs.sources import source_group
from planner.predict.memory.fit_chance import POOLED, MemoryRatio, measured_ratios, memory_ratio, ratio_name
from solver.arrays import Array

Kind = Literal["exact", "finished", "out_of_memory"]
KINDS: tuple[Kind, ...] = get_args(Kind)

SMALLEST_BYTES = 2.0 * 2**30
FEWEST_ROWS = 30
"""Rows that say how full a device gets (``_telling``), for a back-end to have a distribution of its own."""
CHANCE_EDGES = (0.0, 0.05, 0.5, 0.8, 0.95, 0.99, 1.0)
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Observation:
    """``ratio``: measured over predicted, or device memory over predicted where the run only ended well or ill."""

    backend: str
    kind: Kind
    ratio: float
    source: str = ""


def observation(prediction: Prediction) -> Observation | None:
    """What a row says; None where it says nothing of a full device, or hangs on a recompute that it does not state."""
    row, backend, source = prediction.row, ratio_owner(prediction), source_group(prediction.row.source)
    if prediction.fits is None:
        return None
    room = prediction.device_memory_bytes / prediction.total_memory_bytes
    if row.out_of_memory:
        return Observation(backend, "out_of_memory", room, source)
    measured = row.measured_peak_bytes
    if measured is None or prediction.flavour.memory == "resident":
        return Observation(backend, "finished", room, source)
    if prediction.peak_memory_bytes < SMALLEST_BYTES:
        return None
    return Observation(backend, "exact", measured / prediction.peak_memory_bytes, source)


def ratio_owner(prediction: Prediction) -> str:
    """Name of the row's back-end; empty where its source does not say."""
    return prediction.flavour.backend.partition("==")[0]


def fitted_ratios(
    observations: Sequence[Observation], same_as: Mapping[str, str] | None = None
) -> dict[str, MemoryRatio]:
    """What the sources of every back-end with enough rows say of a further source of it, and all of any other.

    ``same_as``: back-end -> the one whose memory model and allocator it shares; their sources speak for both.
    Raises ValueError where fewer than two back-ends have enough rows.
    """
    of: dict[str, dict[str, list[Observation]]] = defaultdict(lambda: defaultdict(list))
    for each in observations:
        if each.backend:
            of[(same_as or {}).get(each.backend, each.backend)][each.source].append(each)
    enough = sorted(name for name, found in of.items() if sum(map(_telling, found.values())) >= FEWEST_ROWS)
    if len(enough) < 2:
        raise ValueError(f"{len(enough)} back-ends have enough rows; the spread between them needs two")
    told = further_sources({name: [_likelihood(rows) for rows in found.values()] for name, found in of.items()})
    rows = {name: [each for found in of[name].values() for each in found] for name in of}
    own = {name: _ratio(told[name], rows[name]) for name in enough}
    return {POOLED: _ratio(told[""], [each for found in rows.values() for each in found]), **own}


def _telling(rows: Sequence[Observation]) -> int:
    """How many rows of a source say how full a device gets: peaks and deaths, or of survivors those on full devices."""
    told = sum(each.kind != "finished" for each in rows)
    return told or sum(math.log(each.ratio) <= SHOWN for each in rows)


def _likelihood(rows: Sequence[Observation]) -> Array:
    exact, finished, died = (np.log([each.ratio for each in rows if each.kind == kind]) for kind in KINDS)
    return likelihood(exact, finished, died)


def _ratio(told: tuple[float, float], rows: Sequence[Observation]) -> MemoryRatio:
    counts = {kind: sum(each.kind == kind for each in rows) for kind in KINDS}
    sources = len({each.source for each in rows})
    return MemoryRatio(median=round(told[0], 4), scale=round(told[1], 4), sources=sources, **counts)


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
