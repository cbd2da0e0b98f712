"""Lower bounds of strategies that must fit the memory, for thousands of strategies at once.

The bottleneck of ``planner.search.bound`` is the smallest tau in which the stages together can hold all layers
(``planner.search.stage_capacity``), found by bisection between what it is without memory and what the cutoff allows.

Layers of the most frequent kind count.  Where kinds take turns, as with full and sliding attention, that would leave
half of the model out: where it bounds more (``BoundTerms.all_count``), all layers count, each with the least time,
state, activations and price of relief of all kinds.  What cannot be dealt so cannot be dealt as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray

from planner.predict.cost.model_cost import LayerTable
from planner.predict.cost.short_axis import planes_at, rows_at
from planner.predict.stage_memory import end_seconds, in_flight, leanest_fixed_bytes, passes_memory
from planner.search.bound import BoundTerms, Rows, Schedules
from planner.search.relief_bottlenecks import least_bottlenecks
from planner.search.row_context import take
from planner.search.stage_capacity import Capacity, MemoryLimits, ReliefOffer, StageRoom
from planner.strategy.rows import first_of_each
from solver.arrays import Array, Ints

BISECTIONS = 14
"""Halvings of the bottleneck interval: the bound is within 2**-14 of the interval of its limit."""


def lower_bounds_s(terms: BoundTerms, limit_bytes: float, cutoff_s: float = np.inf) -> Array:
    """Lower bound of every row: [R]; infinity where no split fits, or where ``cutoff_s`` is surely exceeded."""

    def offer(room: StageRoom, at: Rows) -> list[ReliefOffer]:
        cost = take(terms.cost, at)
        price = _price(cost.saved_bytes, cost.relieved_bytes, cost.relief_s)
        return [room.offer(_of_layer(terms, cost.relieved_bytes), _of_layer(terms, price))]

    bounds: Array = _bounds_of_offers(terms, partial(_room, terms, limit_bytes), offer, 1, cutoff_s)[0]
    return bounds


def relief_bounds_s(
    terms: BoundTerms, layers: LayerTable, reliefs: Sequence[int], limits: MemoryLimits, cutoff_s: float = np.inf
) -> Array:
    """``lower_bounds_s`` of every row under each of some memory reliefs, without writing them out: [len(reliefs), R].

    Only what a layer keeps and what relieving it costs differ between reliefs; all else is shared.
    """
    every = _Reliefs(terms, layers, reliefs, limits)
    result = np.full((len(reliefs), len(terms.rows)), np.inf)
    distinct = sorted({*every.stands_for.tolist()})
    for stages, at in _by_stages(terms.rows.pp) if result.size else ():
        which, position, bottleneck_s = every.bottlenecks(
            at, stages, _window_s(terms, at, cutoff_s), distinct, cutoff_s
        )
        position = _places(at, position)
        bounds_s = np.maximum(terms.step_s(bottleneck_s, position), terms.loose_s[position])
        result[np.array(distinct)[which], position] = bounds_s
    return result[every.stands_for]


def layout_bounds_s(
    terms: BoundTerms, layers: LayerTable, reliefs: Sequence[int], limits: MemoryLimits, cutoff_s: float = np.inf
) -> Array:
    """Lower bound of every layout over all its leaves: [R].

    The states as ``leanest_bytes`` takes them and the terms with the leanest tail; of the reliefs that move bytes
    to the host, and of the others, the least that any of them keeps and the least that any of them asks for a byte.
    """
    every = _Reliefs(terms, layers, reliefs, limits)
    kinds = [kind for kind in (every.distinct(moves=False), every.distinct(moves=True)) if kind]

    def offers(room: StageRoom, at: Rows) -> list[ReliefOffer]:
        found = ([every.offer(room, at, number) for number in kind] for kind in kinds)
        return [reduce(ReliefOffer.cheapest, kind) for kind in found]

    room = partial(_room, terms, limits.device_bytes, leanest=terms.leanest_state_bytes())
    bounds: Array = _bounds_of_offers(terms, room, offers, len(kinds), cutoff_s).min(axis=0, initial=np.inf)
    return bounds


def _room(
    terms: BoundTerms, limit_bytes: float, at: Rows, stages: int, leanest: tuple[Array, Array] | None = None
) -> StageRoom:
    """What the rows ``at`` offer; with the ``leanest`` state bytes of layouts, all that any leaf of theirs offers."""
    rows, cost = take(terms.rows, at), take(terms.cost, at)
    if leanest is not None:
        dense, expert = leanest[0][at], leanest[1][at]
        flight = in_flight(rows, cost, stages)
        fixed = leanest_fixed_bytes(rows, cost, flight, dense, expert)
        states = cost.layer_dense * dense[:, None] + cost.layer_expert * expert[:, None] + cost.frozen.least_layer
    else:
        # Every moment of a stage must fit: the one with every activation in it serves as the bound.
        fixed, flight, states = passes_memory(rows, cost, terms.costs.reliefs, stages)
    return StageRoom(
        float(terms.costs.kind_counts.sum()) if terms.all_count else terms.major_count,
        layer_s=_of_layer(terms, cost.layer_s),
        ends_s=np.ascontiguousarray(end_seconds(rows, cost, stages).T),
        kept_bytes=_of_layer(terms, cost.saved_bytes),
        state_bytes=_of_layer(terms, states),
        in_flight=np.ascontiguousarray(flight.T),
        free_bytes=np.ascontiguousarray((limit_bytes - fixed).T),
    )


def _of_layer(terms: BoundTerms, columns: Array) -> Array:
    """What a layer that counts has at least, of columns by kind: [..., N] -> [...]."""
    return np.asarray(columns.min(axis=-1) if terms.all_count else columns[..., terms.major])


def _price(kept: Array, relieved: Array, seconds: Array) -> Array:
    """Seconds of relief for a byte freed with one micro-batch in flight, of every kind; infinite where none is."""
    freed = kept - relieved
    return np.asarray(np.divide(seconds, freed, out=np.full(freed.shape, np.inf), where=freed > 0))


class _Reliefs:
    """What some memory reliefs offer to rows of ``terms``.

    Several may offer the same (recomputing what no layer of the most frequent kind has): one stands for all of them.
    """

    def __init__(self, terms: BoundTerms, layers: LayerTable, reliefs: Sequence[int], limits: MemoryLimits) -> None:
        self._terms, self._host_bytes, self._device_bytes = terms, limits.host_bytes, limits.device_bytes
        self._moves = [terms.costs.reliefs[code].offload for code in reliefs]
        codes = np.array(reliefs, dtype=np.int64)[:, None]
        first, self._place = first_of_each([terms.cost.key])
        key = terms.cost.key[first]
        kept, relieved, seconds = (
            rows_at(terms.cost.saved_bytes, first),
            planes_at(layers.saved_bytes, codes, key),
            planes_at(layers.relief_s, codes, key),
        )
        self._kept, self._relieved = _of_layer(terms, kept), _of_layer(terms, relieved)
        self._prices = _of_layer(terms, _price(kept, relieved, seconds))
        offers = [
            (moves, relieved.tobytes(), price.tobytes())
            for moves, relieved, price in zip(self._moves, self._relieved, self._prices, strict=True)
        ]
        self.stands_for = np.array([offers.index(offer) for offer in offers], dtype=np.int64)
        """For each relief the first one that offers the same."""

    def distinct(self, *, moves: bool) -> list[int]:
        """Those that offer something else than the ones before, and move bytes to the host or do not."""
        return [number for number in sorted({*self.stands_for.tolist()}) if self._moves[number] == moves]

    def offer(self, room: StageRoom, at: Rows, number: int) -> ReliefOffer:
        """One relief, on the rows ``at``, which have the ``room``."""
        place = self._place[at]
        moved_bytes = self._host_bytes if self._moves[number] else np.inf
        return room.offer(self._relieved[number][place], self._prices[number][place], moved_bytes)

    def bottlenecks(
        self, at: Rows, stages: int, window_s: tuple[Array, Array], numbers: list[int], cutoff_s: float
    ) -> tuple[Ints, Ints, Array]:
        """Least bottlenecks of the rows ``at`` under the reliefs ``numbers``, where they hold every layer in time.

        Position in ``numbers``, position in ``at``, seconds.
        """
        terms, rows, cost = self._terms, take(self._terms.rows, at), take(self._terms.cost, at)
        fixed, flight, states = passes_memory(rows, cost, terms.costs.reliefs, stages)
        columns = *window_s, *(_of_layer(terms, each) for each in (cost.layer_s, cost.saved_bytes, states))
        free = self._device_bytes - fixed
        needed = float(terms.costs.kind_counts.sum()) if terms.all_count else terms.major_count
        place = np.where(terms.loose_s[at] < cutoff_s, self._place[at], -1)
        found = np.empty((len(numbers), len(rows)))
        of_stages = np.concatenate([end_seconds(rows, cost, stages), flight, free], axis=1)
        offers = self._relieved[numbers], self._prices[numbers], np.array(self._moves, np.float64)[numbers]
        rules = np.array([needed, self._host_bytes])
        least_bottlenecks(np.stack(columns, axis=1), of_stages, place, *offers, rules, BISECTIONS, found)
        which, position = np.nonzero(np.isfinite(found))
        return which, position, found[which, position]


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
    for stages, at in _by_stages(terms.rows.pp) if result.size else ():
        room, window = room_of(at, stages), _window_s(terms, at, cutoff_s)
        hopeful = terms.loose_s[at] < cutoff_s
        fits = []
        for number, offer in enumerate(offers_of(room, at)):
            # One test at the cutoff's own bottleneck discards most rows.
            index = np.flatnonzero(Capacity(room, offer).holds_all(window[1]) & hopeful)
            fits.append((number, index, offer.take(index)))
        _note_bounds(result, terms, at, room, window, fits)
    return result


def _window_s(terms: BoundTerms, at: Rows, cutoff_s: float) -> tuple[Array, Array]:
    """What the bottleneck of each row is at least without memory, and at most below the cutoff: two [R]."""
    low = terms.least_peak_s(Schedules.of(terms.rows, at), at)
    if not np.isfinite(cutoff_s):
        return low, np.full(len(low), np.inf)
    # makespan >= microbatches * bottleneck
    return low, np.maximum((cutoff_s - terms.tail_s[at]) / terms.rows.num_microbatches[at], low)


def _places(at: Rows, index: Ints) -> Ints:
    """Positions in all rows of some of the rows ``at``."""
    return index + at.start if isinstance(at, slice) else at[index]


def _note_bounds(
    result: Array,
    terms: BoundTerms,
    at: Rows,
    room: StageRoom,
    window: tuple[Array, Array],
    fits: Sequence[tuple[int, Ints, ReliefOffer]],
) -> None:
    """Write down the bounds of offers on those of the rows ``at`` that they ``fit``: number, rows, offer."""
    index = np.concatenate([np.zeros(0, dtype=np.int64), *(rows for _, rows, _ in fits)])
    if len(index) == 0:
        return
    which = np.repeat([number for number, _, _ in fits], [len(rows) for _, rows, _ in fits])
    # What is left is little: all offers go on together.
    capacity = Capacity(room.take(index), ReliefOffer.concatenate([offer for _, _, offer in fits]))
    low, most = (each[index] for each in window)
    high = np.minimum(np.maximum(low, capacity.everything_s()), most)
    enough = np.flatnonzero(capacity.holds_all(high))
    which, position = which[enough], _places(at, index[enough])
    bottleneck_s = _bottleneck_s(capacity.take(enough), low[enough], high[enough])
    result[which, position] = np.maximum(terms.step_s(bottleneck_s, position), terms.loose_s[position])


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
