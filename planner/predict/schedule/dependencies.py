"""The actions that each action of an order must wait for, and whether the order can run at all.

``OrderGraph`` is an ``Order`` as flat arrays, rank after rank, with for each action the one action that it waits for on
account of data:

    F(c, i)   waits for F(c-1, i)                      (none for the first chunk)
    B|I(c, i) waits for B|I(c+1, i)                    (for F(c, i) on the last chunk)
    W(c, i)   waits for I(c, i), on the same rank

Every action also waits for the one before it on its rank.  So a forward or backward wakes at most one other action,
which makes a full run O(actions).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np

from planner.errors import DocumentInvalid
from planner.predict.schedule.action import (
    BACKWARD,
    FORWARD,
    INPUT_GRADIENT,
    KINDS,
    WEIGHT_GRADIENT,
    Action,
    Kind,
    Order,
)
from solver.arrays import Ints

KIND_NAMES: dict[Kind, str] = dict(
    zip(KINDS, ("forward", "backward", "input gradient", "weight gradient"), strict=True)
)
"""Words for people."""

_SHOWN = 8


@dataclass(frozen=True, slots=True, eq=False)
class OrderGraph:
    """An order as arrays; action ``a`` of rank r has index ``offsets[r] <= a < offsets[r+1]``."""

    offsets: tuple[int, ...]
    kind: Ints
    chunk: Ints
    microbatch: Ints
    chunk_rank: Ints
    depends_on: Ints
    """Index of the action whose result this one needs; -1 = none but the one before it on its rank."""
    uses: Ints
    """The same, or the action on its own rank whose result it uses; -1 for forwards of the first chunk."""
    segments: tuple[tuple[int, int, int], ...]
    """(rank, first, end): a sequence of runs of actions in which every dependency comes first."""
    num_microbatches: int

    @property
    def num_ranks(self) -> int:
        """Pipeline ranks."""
        return len(self.offsets) - 1

    @property
    def num_chunks(self) -> int:
        """Model chunks over all ranks."""
        return len(self.chunk_rank)

    def action(self, index: int) -> Action:
        """Action ``index`` as an object."""
        return Action(KINDS[self.kind[index]], int(self.chunk[index]), int(self.microbatch[index]))

    def rank_of(self, index: int) -> int:
        """Rank that runs action ``index``."""
        return int(self.chunk_rank[self.chunk[index]])

    def in_flight_change(self) -> Ints:
        """+1 where an activation is born (forward starts), -1 where it dies (B or W ends), 0 elsewhere."""
        return np.array([1, -1, 0, -1], dtype=np.int64)[self.kind]

    def peak_in_flight_by_rank(self) -> Ints:
        """Most chunk activations each rank holds at once."""
        change = self.in_flight_change()
        bounds = zip(self.offsets[:-1], self.offsets[1:], strict=True)
        return np.array([int(np.cumsum(change[lo:hi]).max(initial=0)) for lo, hi in bounds], dtype=np.int64)

    def peak_in_flight_by_chunk(self) -> Ints:
        """Most micro-batches whose activations each chunk holds at once."""
        change = self.in_flight_change()
        by_chunk = np.argsort(self.chunk, kind="stable")
        ends = np.cumsum(np.bincount(self.chunk, minlength=self.num_chunks))
        return np.array([int(np.cumsum(change[part]).max()) for part in np.split(by_chunk, ends[:-1])], dtype=np.int64)


def order_graph(order: Order) -> OrderGraph:
    """Compile ``order``.

    Raises ``DocumentInvalid`` when an action is missing, doubled or on the wrong rank, and when the order deadlocks
    (then the error names the actions at which the ranks are stuck).
    """
    flat = tuple(chain.from_iterable(order))
    if not flat:
        raise DocumentInvalid("the order has no actions", where="order")
    code = {kind: number for number, kind in enumerate(KINDS)}
    kinds, chunks, microbatches = zip(*flat, strict=True)
    kind = np.array([code[each] for each in kinds], dtype=np.int64)
    chunk, microbatch = np.array(chunks, dtype=np.int64), np.array(microbatches, dtype=np.int64)
    sizes = [len(actions) for actions in order]
    offsets = (0, *np.cumsum(sizes).tolist())
    rank = np.repeat(np.arange(len(order)), sizes)
    _check_complete(kind, chunk, microbatch)
    chunk_rank = _chunk_ranks(chunk, rank)
    depends_on, uses = _dependencies(kind, chunk, microbatch, flat)
    segments = _runnable_segments(offsets, depends_on.tolist(), rank.tolist(), flat)
    count = int(microbatch.max()) + 1
    return OrderGraph(offsets, kind, chunk, microbatch, chunk_rank, depends_on, uses, segments, count)


def _check_complete(kind: Ints, chunk: Ints, microbatch: Ints) -> None:
    """Refuse an order in which some chunk does not run some micro-batch exactly once."""
    if int(chunk.min()) < 0 or int(microbatch.min()) < 0:
        raise DocumentInvalid("the order has a negative chunk or micro-batch number", where="order")
    chunks, microbatches = int(chunk.max()) + 1, int(microbatch.max()) + 1
    count = np.zeros((4, chunks, microbatches), dtype=np.int64)
    np.add.at(count, (kind, chunk, microbatch), 1)
    wrong = [
        ("forward", count[FORWARD] != 1),
        ("input gradient", count[BACKWARD] + count[INPUT_GRADIENT] != 1),
        ("weight gradient", count[BACKWARD] + count[WEIGHT_GRADIENT] != 1),
    ]
    findings = []
    for name, mask in wrong:
        places = np.argwhere(mask)
        if len(places):
            shown = ", ".join(f"chunk {c} micro-batch {i}" for c, i in places[:_SHOWN].tolist())
            findings.append(f"the {name} does not run exactly once for {len(places)} of them: {shown}")
    if findings:
        raise DocumentInvalid(
            f"the order of {chunks} chunks and {microbatches} micro-batches is not complete: " + "; ".join(findings),
            where="order",
        )


def _chunk_ranks(chunk: Ints, rank: Ints) -> Ints:
    chunk_rank = np.zeros(int(chunk.max()) + 1, dtype=np.int64)
    chunk_rank[chunk] = rank
    strays = sorted(set(chunk[chunk_rank[chunk] != rank].tolist()))
    if strays:
        raise DocumentInvalid(f"chunks {strays[:_SHOWN]} run on more than one rank", where="order")
    return chunk_rank


def _dependencies(kind: Ints, chunk: Ints, microbatch: Ints, flat: tuple[Action, ...]) -> tuple[Ints, Ints]:
    """``depends_on`` and ``uses``; refuses an action listed before work of its own rank that it needs."""
    chunks, microbatches = int(chunk.max()) + 1, int(microbatch.max()) + 1
    index = np.arange(len(kind))
    forward = np.empty((chunks, microbatches), dtype=np.int64)
    gradient = np.empty((chunks, microbatches), dtype=np.int64)
    is_forward, is_weight = kind == FORWARD, kind == WEIGHT_GRADIENT
    is_gradient = ~is_forward & ~is_weight
    forward[chunk[is_forward], microbatch[is_forward]] = index[is_forward]
    gradient[chunk[is_gradient], microbatch[is_gradient]] = index[is_gradient]
    own = np.where(is_weight, gradient[chunk, microbatch], np.where(is_gradient, forward[chunk, microbatch], -1))
    _refuse_stuck(np.flatnonzero(own > index).tolist(), flat)
    depends_on = np.full(len(kind), -1, dtype=np.int64)
    later = is_forward & (chunk > 0)
    depends_on[later] = forward[chunk[later] - 1, microbatch[later]]
    earlier = is_gradient & (chunk < chunks - 1)
    depends_on[earlier] = gradient[chunk[earlier] + 1, microbatch[earlier]]
    return depends_on, np.where(depends_on >= 0, depends_on, own)


def _runnable_segments(
    offsets: tuple[int, ...], depends_on: list[int], rank: list[int], flat: tuple[Action, ...]
) -> tuple[tuple[int, int, int], ...]:
    """Run every rank as far as it gets, wake those that waited, until all is done or nothing moves."""
    done = bytearray(len(flat) + 1)
    done[-1] = 1  # depends_on == -1 reads this one: nothing to wait for
    waiting = [-1] * len(flat)
    position = list(offsets[:-1])
    ready = list(range(len(position) - 1, -1, -1))
    segments: list[tuple[int, int, int]] = []
    while ready:
        current = ready.pop()
        first = index = position[current]
        end = offsets[current + 1]
        while index < end and done[depends_on[index]]:
            done[index] = 1
            woken = waiting[index]
            if woken >= 0:
                ready.append(woken)
            index += 1
        if index > first:
            segments.append((current, first, index))
        position[current] = index
        if index < end:
            waiting[depends_on[index]] = current
    _refuse_stuck([index for index, end in zip(position, offsets[1:], strict=True) if index < end], flat, depends_on)
    return tuple(segments)


def _refuse_stuck(stuck: list[int], flat: tuple[Action, ...], depends_on: list[int] | None = None) -> None:
    """Raise when ``stuck`` names actions that can never start."""
    if not stuck:
        return
    names = []
    for index in stuck[:_SHOWN]:
        text = _name(flat[index])
        names.append(f"{text} (waits for {_name(flat[depends_on[index]])})" if depends_on else text)
    raise DocumentInvalid(
        f"the order deadlocks; stuck at {len(stuck)} actions: " + ", ".join(names),
        where="order",
        hint="an action must come after the ones of its own rank that its data needs, on every path between the ranks",
    )


def _name(action: Action) -> str:
    return f"{action.kind.value} of chunk {action.chunk} micro-batch {action.microbatch}"
