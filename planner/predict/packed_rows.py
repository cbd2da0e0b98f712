"""What packing makes of documents: padding, the context of a token, and how unequal sequences are.

A few hundred sequences are packed of documents in equal steps of the length distribution, in an order that never
changes.  With lengths ``l`` of the pieces that stand in them (``S`` tokens a sequence, attention within a piece)::

    real tokens       sum l / (sequences S)                              the rest is padding, without loss
    context           sum l (l + 1) / 2 / sum l                          tokens that a real token attends to
    work of one       sum of l (l + 1) / 2 over its pieces               of attention, over the mean: x

Ranks that wait for each other wait for the one with the most attention work.  Expected is the largest of ``N`` means
of ``n`` sequences each, exactly from the distribution of ``x`` for n up to 64, above by Blom's normal scores::

    e(n, N) = E[ max of N means of n ] - 1

All else in a layer depends on the number of tokens, which is the same everywhere.  Source of the effect: WLB-LLM, arXiv
2503.17924, section 3.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from random import Random

import numpy as np
from numpy.typing import NDArray

from planner.predict.order_statistics import expected_maximum
from planner.question.problem import Workload
from planner.question.sequences import Sequences
from solver.arrays import Array, Ints

ROWS = 256
"""Sequences that are packed to learn what packing gives."""
FEWEST_DOCUMENTS, MOST_DOCUMENTS = 1_024, 16_384
GRID = 256
FEW_ROWS = 8
EXACT_SUMS = 64


@dataclass(frozen=True, eq=False)
class PackedRows:
    """Pieces of documents in sequences of ``sequence_length``; ``row`` [P]: the sequence of each of ``pieces`` [P]."""

    sequence_length: int
    pieces: NDArray[np.float64]
    row: NDArray[np.int64]
    cut_fraction: float
    """Part of the documents' tokens that no sequence has room for, because their documents are too long."""
    _found: dict[tuple[int | None, bool], float] = field(default_factory=dict)
    _waits: dict[tuple[int, int], float] = field(default_factory=dict)
    _spreads: dict[int, float] = field(default_factory=dict)

    @cached_property
    def real_fraction(self) -> float:
        """Part of the tokens that belong to documents."""
        return float(self.pieces.sum() / ((self.row.max() + 1) * self.sequence_length))

    @cached_property
    def longest(self) -> float:
        """Length at whose rate attention runs: kernels lose a constant a row, ``sum l^2 / sum l`` weighs it so."""
        return float((self.pieces**2).sum() / self.pieces.sum())

    def context(self, window: int | None, *, causal: bool) -> float:
        """Mean number of tokens that a real token attends to."""
        if (window, causal) not in self._found:
            pairs = _pairs(self.pieces, window, causal=causal)
            self._found[window, causal] = float(pairs.sum() / self.pieces.sum())
        return self._found[window, causal]

    def row_context(self, window: int | None, *, causal: bool) -> float:
        """The same for any token of a sequence, padding among them."""
        return self.context(window, causal=causal) * self.real_fraction

    def work(self, window: int | None = None) -> Array:
        """Attention work of each sequence over their mean: [rows]."""
        pairs = np.bincount(self.row, weights=_pairs(self.pieces, window, causal=True))
        work: Array = pairs / pairs.mean()
        return work

    def window_share(self, window: int | None) -> float:
        """Spread of the work of attention with a window over that of attention without one."""
        if window is None or window >= self.sequence_length or self.spread == 0.0:
            return 1.0
        if window not in self._spreads:
            self._spreads[window] = float(self.work(window).std())
        return self._spreads[window] / self.spread

    @cached_property
    def spread(self) -> float:
        """Standard deviation of ``work``."""
        return float(self.work().std())

    def waiting(self, means_of: Ints, ranks: Ints) -> Array:
        """``e(n, N)`` of the module: [R]."""
        columns = np.stack([means_of, ranks], axis=1)
        distinct, index = np.unique(columns, axis=0, return_inverse=True)
        for pair in map(tuple, distinct.tolist()):
            if pair not in self._waits:
                self._waits[pair] = self._waiting(*pair)
        found = np.array([self._waits[pair] for pair in map(tuple, distinct.tolist())])
        return np.asarray(found[index.reshape(-1)])

    def _waiting(self, means_of: int, ranks: int) -> float:
        if ranks <= 1:
            return 0.0
        if means_of > EXACT_SUMS:
            normal = self.spread / float(np.sqrt(means_of)) * expected_maximum(ranks)
            return min(normal, float(self.work().max()) - 1.0)
        step, shares = _on_grid(self.work())
        size = GRID * means_of
        sums = np.fft.irfft(np.fft.rfft(shares, 2 * size) ** means_of, 2 * size)[: size + 1]
        below = np.cumsum(np.maximum(sums, 0.0))
        largest = np.diff((below / below[-1]) ** ranks, prepend=0.0)
        return max(float(largest @ np.arange(size + 1)) * step / means_of - 1.0, 0.0)


def packed_rows(workload: Workload) -> PackedRows | None:
    """What the workload's sequences hold; None where nothing is said of documents, or each sequence is one."""
    said = workload.sequences
    return None if said is None or said.kind == "padded" else documents_of(said, workload.sequence_length)


def real_fraction(workload: Workload) -> float:
    """Part of the tokens of a step that carry loss: 1 where nothing is said of documents."""
    said = workload.sequences
    return 1.0 if said is None else documents_of(said, workload.sequence_length).real_fraction


def real_tokens_per_step(workload: Workload) -> float:
    """Tokens of a step without padding."""
    return workload.tokens_per_step * real_fraction(workload)


@lru_cache(maxsize=32)
def documents_of(said: Sequences, sequence_length: int) -> PackedRows:
    """Documents of these lengths in sequences of ``sequence_length`` tokens."""
    size, packing = float(sequence_length), said.packed_by
    coarse = said.lengths(FEWEST_DOCUMENTS)
    wanted = ROWS * sequence_length / (sum(coarse) / len(coarse))
    count = int(np.clip(wanted, FEWEST_DOCUMENTS, MOST_DOCUMENTS))
    whole = [float(round(length)) for length in said.lengths(count)]
    if packing == "concatenated":
        return _concatenated(whole, sequence_length)
    held = [min(length, size) for length in whole]
    cut = 1.0 - sum(held) / sum(whole)
    if packing is None:
        return PackedRows(sequence_length, np.array(held), np.arange(len(held)), cut)
    descending = sorted(held, reverse=True)
    rows = _best_fit(descending, size)
    if packing == "balanced" and max(rows) > 0:
        rows = _least_work(descending, size, max(rows))
    return PackedRows(sequence_length, *_full(np.array(descending), np.array(rows, dtype=np.int64)), cut)


def _concatenated(lengths: Sequence[float], sequence_length: int) -> PackedRows:
    """Documents in a shuffled order, one behind the other, cut at every multiple of the sequence length."""
    shuffle = Random(0)
    keys = [shuffle.random() for _ in lengths]
    # Few long documents are run through several times, so that a whole number of sequences is filled.
    order = [length for _, length in sorted(zip(keys, lengths, strict=True))]
    ends = np.cumsum(np.array(order * max(1, -(-ROWS * sequence_length // max(1, int(sum(order)))))))
    rows = max(1, int(ends[-1] // sequence_length))
    edges = np.union1d(ends, np.arange(1, rows + 1) * float(sequence_length))
    edges = edges[edges <= rows * sequence_length]
    if len(edges) == 0 or ends[-1] < sequence_length:
        edges = ends
    pieces = np.diff(edges, prepend=0.0)
    row = np.minimum((edges - pieces) // sequence_length, rows - 1).astype(np.int64)
    return PackedRows(sequence_length, pieces, row, 0.0)


def _full(pieces: NDArray[np.float64], row: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Without the emptiest sequence where there are several: a data set has one of them, not one in a few hundred."""
    filled = np.bincount(row, weights=pieces)
    if len(filled) < FEW_ROWS:
        return pieces, row
    emptiest = int(filled.argmin())
    kept = row != emptiest
    return pieces[kept], row[kept] - (row[kept] > emptiest)


def _best_fit(descending: Sequence[float], size: float) -> list[int]:
    """The sequence of each document: the fullest one that still has room."""
    rooms: list[tuple[float, int]] = []
    rows, used = list[int](), 0
    for length in descending:
        at = bisect_left(rooms, (length, -1))
        if at < len(rooms):
            room, row = rooms.pop(at)
        else:
            room, row, used = size, used, used + 1
        insort(rooms, (room - length, row))
        rows.append(row)
    return rows


def _least_work(descending: Sequence[float], size: float, count: int) -> list[int]:
    """The sequence of each document: of ``count`` the one with the least attention work that has room, or a new one."""
    rooms, work = np.full(2 * count, size), np.full(2 * count, np.inf)
    work[:count] = 0.0
    rows = list[int]()
    for length in descending:
        row = int(np.argmin(np.where(rooms >= length, work, np.inf)))
        if not (rooms[row] >= length and work[row] < np.inf):
            row = int(np.argmax(np.isinf(work)))
            work[row] = 0.0
        rooms[row] -= length
        work[row] += 0.5 * length * (length + 1.0)
        rows.append(row)
    return rows


def _pairs(lengths: Array, window: int | None, *, causal: bool) -> Array:
    """Pairs of a token and one that it attends to, in pieces of these lengths: [P]."""
    reach = lengths if window is None else np.minimum(lengths, float(window))
    if not causal:
        return lengths * reach
    return 0.5 * reach * (reach + 1.0) + (lengths - reach) * reach


def _on_grid(work: Array) -> tuple[float, Array]:
    """Probabilities of multiples of a step that keep the mean of ``work``: the step, and [GRID + 1]."""
    step = float(work.max()) / GRID
    at = work / step
    below = np.minimum(np.floor(at).astype(np.int64), GRID - 1)
    above = at - below
    shares = np.bincount(below, 1.0 - above, GRID + 1) + np.bincount(below + 1, above, GRID + 1)
    return step, shares / len(work)
