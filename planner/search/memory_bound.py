"""How fast could a strategy be at best that must fit the memory?  For thousands of strategies at once.

The bottleneck of ``planner.search.bound`` is the smallest tau in which the stages together can hold all layers
(``planner.search.stage_capacity``), found by bisection between what it is without memory and what the cutoff allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray

from planner.cost.model_cost import LayerTable
from planner.memory.stage import end_seconds, in_flight, leanest_fixed_bytes, passes_memory
from planner.search.bound import BoundTerms, Rows, Schedules
from planner.search.row_context import take
from planner.search.stage_capacity import Capacity, MemoryLimits, ReliefOffer, StageRoom

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

BISECTIONS = 14
"""Halvings of the bottleneck interval: the bound is within 2**-14 of the interval of its limit."""


def lower_bounds_s(terms: BoundTerms, limit_bytes: float, cutoff_s: float = np.inf) -> Array:
    """Lower bound of every row: [R]; infinity where no split fits, or where ``cutoff_s`` is surely exceeded."""

    def offer(room: StageRoom, at: Rows) -> list[ReliefOffer]:
        return [room.relief(terms.cost.relieved_bytes[at, terms.major], terms.cost.relief_s[at, terms.major])]

    bounds: Array = _bounds_of_offers(terms, partial(_room, terms, limit_bytes), offer, 1, cutoff_s)[0]
    return bounds


def relief_bounds_s(
    terms: BoundTerms, layers: LayerTable, reliefs: Sequence[int], limits: MemoryLimits, cutoff_s: float = np.inf
) -> Array:
    """``lower_bounds_s`` of every row under each of some memory reliefs, without writing them out: [len(reliefs), R].

    Only what a layer keeps and what relieving it costs differ between reliefs; all else is shared.
    """

    def offers(room: StageRoom, at: Rows) -> list[ReliefOffer]:
        return [_relief_of(room, terms, at, layers, code, limits) for code in reliefs]

    return _bounds_of_offers(terms, partial(_room, terms, limits.device_bytes), offers, len(reliefs), cutoff_s)


def layout_bounds_s(
    terms: BoundTerms, layers: LayerTable, reliefs: Sequence[int], limits: MemoryLimits, cutoff_s: float = np.inf
) -> Array:
    """Lower bound of every layout over all its leaves: [R].

    The states as ``leanest_bytes`` takes them and the terms with the leanest tail; of the reliefs that move bytes
    to the host, and of the others, the least that any of them keeps and the least that any of them asks for a byte.
    """
    moves = [terms.costs.reliefs[code].offload for code in reliefs]
    kinds = [[code for code, moved in zip(reliefs, moves, strict=True) if moved == kind] for kind in sorted(set(moves))]

    def offers(room: StageRoom, at: Rows) -> list[ReliefOffer]:
        found = ([_relief_of(room, terms, at, layers, code, limits) for code in kind] for kind in kinds)
        return [reduce(ReliefOffer.cheapest, kind) for kind in found]

    room = partial(_room, terms, limits.device_bytes, leanest=terms.leanest_state_bytes())
    bounds: Array = _bounds_of_offers(terms, room, offers, len(kinds), cutoff_s).min(axis=0, initial=np.inf)
    return bounds


def _room(
    terms: BoundTerms, limit_bytes: float, at: Rows, stages: int, leanest: tuple[Array, Array] | None = None
) -> StageRoom:
    """What the rows ``at`` offer; with the ``leanest`` state bytes of layouts, all that any leaf of theirs offers."""
    rows, cost, major = take(terms.rows, at), take(terms.cost, at), terms.major
    if leanest is not None:
        dense, expert = leanest[0][at], leanest[1][at]
        flight = in_flight(rows, cost, stages)
        fixed = leanest_fixed_bytes(rows, cost, flight, dense, expert)
        state = cost.layer_dense[:, major] * dense + cost.layer_expert[:, major] * expert
    else:
        # Every moment of a stage must fit: the one with every activation in it serves as the bound.
        fixed, flight, states = passes_memory(rows, cost, terms.costs.reliefs, stages)
        state = states[:, major]
    return StageRoom(
        terms.major_count,
        layer_s=cost.layer_s[:, major],
        ends_s=np.ascontiguousarray(end_seconds(rows, cost, stages).T),
        kept_bytes=cost.saved_bytes[:, major],
        state_bytes=state,
        in_flight=np.ascontiguousarray(flight.T),
        free_bytes=np.ascontiguousarray((limit_bytes - fixed).T),
    )


def _relief_of(
    room: StageRoom, terms: BoundTerms, at: Rows, layers: LayerTable, code: int, limits: MemoryLimits
) -> ReliefOffer:
    """One relief on the rows ``at``."""
    key = terms.cost.key[at]
    relieved, seconds = layers.saved_bytes[code, key, terms.major], layers.relief_s[code, key, terms.major]
    return room.relief(relieved, seconds, limits.host_bytes if terms.costs.reliefs[code].offload else np.inf)


def _by_stages(pp: NDArray[np.int64]) -> list[tuple[int, Rows]]:
    """Rows of each number of stages: slices (views) where ``pp`` ascends, as the search writes it, else positions."""
    if len(pp) and bool((np.diff(pp) >= 0).all()):
        values, starts = np.unique(pp, return_index=True)
        stops = [*starts[1:].tolist(), len(pp)]
        return [(value, slice(a, b)) for value, a, b in zip(values.tolist(), starts.tolist(), stops, strict=True)]
    return [(value, np.flatnonzero(pp == value)) for value in np.flatnonzero(np.bincount(pp)).tolist()]


def _bounds_of_offers(
    terms: BoundTerms,
    room_of: Callable[[Rows, int], StageRoom],
    offers_of: Callable[[StageRoom, Rows], list[ReliefOffer]],
    count: int,
    cutoff_s: float,
) -> Array:
    """Bound of every row under each of ``count`` offers; infinity where it does not fit or is too slow: [count, R]."""
    result = np.full((count, len(terms.rows)), np.inf)
    if result.size == 0:
        return result
    found = []
    for stages, at in _by_stages(terms.rows.pp):
        room = room_of(at, stages)
        found.append(_bottlenecks_s(terms, at, room, offers_of(room, at), cutoff_s))
    which, position, bottleneck_s = (np.concatenate(parts) for parts in zip(*found, strict=True))
    result[which, position] = np.maximum(terms.step_s(bottleneck_s, position), terms.loose_s[position])
    return result


def _bottlenecks_s(
    terms: BoundTerms, at: Rows, room: StageRoom, offers: Sequence[ReliefOffer], cutoff_s: float
) -> tuple[Ints, Ints, Array]:
    """Least bottlenecks of those rows ``at`` that fit and may be fast enough: offer, position in ``terms``, seconds."""
    low = terms.least_peak_s(Schedules.of(terms.rows, at), at)
    most = np.full(len(low), np.inf)
    # One test at the cutoff's own bottleneck discards most rows: makespan >= microbatches * bottleneck.
    if np.isfinite(cutoff_s):
        most = np.maximum((cutoff_s - terms.tail_s[at]) / terms.rows.num_microbatches[at], low)
    hopeful = terms.loose_s[at] < cutoff_s
    fits = [np.flatnonzero(Capacity(room, offer).holds_all(most) & hopeful) for offer in offers]
    index, which = np.concatenate(fits), np.repeat(np.arange(len(fits)), [len(each) for each in fits])
    # What is left is little: all offers go on together.
    offer = ReliefOffer.concatenate([offer.take(each) for offer, each in zip(offers, fits, strict=True)])
    capacity = Capacity(room.take(index), offer)
    high = np.minimum(np.maximum(low[index], capacity.everything_s()), most[index])
    enough = np.flatnonzero(capacity.holds_all(high))
    index, capacity = index[enough], capacity.take(enough)
    position = index + at.start if isinstance(at, slice) else at[index]
    return which[enough], position, _bottleneck_s(capacity, low[index], high[enough])


def _bottleneck_s(capacity: Capacity, low: Array, high: Array) -> Array:
    """Lower end of the interval that holds the smallest sufficient bottleneck; every ``high`` suffices: [R]."""
    already = capacity.holds_all(low)
    lo, hi = low, np.where(already, low, high)
    for _ in range(BISECTIONS):
        middle = 0.5 * (lo + hi)
        ok = capacity.holds_all(middle)
        hi = np.where(ok, middle, hi)
        lo = np.where(ok, lo, middle)
    return np.where(already, low, lo)
