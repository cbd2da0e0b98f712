"""The steps that bring a tensor from one layout to another, and the time that they take.

The steps are those that DTensor's ``redistribute`` takes: where dims are nested over several axes, first inner axes
are undone from the inside out, then the rest follows from the outside in::

    shard -> replicate  all_gather        shard -> other shard  all_to_all     replicate -> shard  a slice, free
    partial -> shard    reduce_scatter    partial -> replicate  all_reduce     anything -> partial never

Time is ``planner.predict.collective`` over the network levels that the axis crosses, or what was measured, in whole
picoseconds.  Shape letters: H layouts held, N layouts needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from planner.predict.cost.hardware import Hardware
from planner.shard.mesh_shapes import MeshShape
from planner.shard.placement import REPLICATE, Layout, is_partial, is_shard
from solver.arrays import Ints
from solver.selection.problem import FORBIDDEN

StepKind = Literal["all_gather", "all_to_all", "reduce_scatter", "all_reduce", "slice"]
PICOSECONDS = 1e12


@dataclass(frozen=True, slots=True)
class Step:
    """One collective over one axis of a tensor that is cut into ``parts`` when it starts."""

    kind: StepKind
    axis: int
    parts: int
    before: Layout
    after: Layout


def redistribution_steps(held: Layout, needed: Layout, sizes: tuple[int, ...]) -> tuple[Step, ...] | None:
    """The steps from ``held`` to ``needed`` on axes of ``sizes``; None where there is no way."""
    steps: list[Step] = []
    now = list(held)
    if len(sizes) > 1 and any(is_shard(code) for code in held):
        for axis in reversed(range(len(sizes))):
            target = needed[axis]
            if is_shard(target) and _sharers(now, target, axis) != _sharers(needed, target, axis):
                target = REPLICATE
            if not _move(now, axis, target, sizes, steps):
                return None
    for axis, target in enumerate(needed):
        if not _move(now, axis, target, sizes, steps):
            return None
    return tuple(steps)


def _sharers(layout: Sequence[int], code: int, before: int) -> list[int]:
    return [axis for axis in range(before) if layout[axis] == code]


def _move(now: list[int], axis: int, target: int, sizes: tuple[int, ...], steps: list[Step]) -> bool:
    current = now[axis]
    if current == target:
        return True
    if is_partial(target):
        return False
    kind: StepKind
    if is_shard(current):
        kind = "all_to_all" if is_shard(target) else "all_gather"
    elif is_partial(current):
        kind = "reduce_scatter" if is_shard(target) else "all_reduce"
    else:
        kind = "slice"
    parts = int(np.prod([size for code, size in zip(now, sizes, strict=True) if is_shard(code)]))
    before = tuple(now)
    now[axis] = target
    steps.append(Step(kind, axis, parts, before, tuple(now)))
    return True


KINDS: tuple[StepKind, ...] = ("all_gather", "all_to_all", "reduce_scatter", "all_reduce")
NOTHING, NEVER = 0, 1


def path_keys(held: NDArray[np.int8], needed: NDArray[np.int8], sizes: tuple[int, ...]) -> Ints:
    """``redistribution_steps`` of all pairs at once, as one number a step: [H, N, 2 A]; slices cost nothing.

    ``NEVER`` in the first place where there is no way.
    """
    now = np.repeat(held[:, None, :], len(needed), axis=1).astype(np.int64)
    wanted = np.broadcast_to(needed[None].astype(np.int64), now.shape)
    keys: list[Ints] = []
    impossible = np.zeros(now.shape[:2], dtype=bool)
    if len(sizes) > 1:
        nested = np.any(held > 0, axis=1)[:, None] & np.ones(len(needed), dtype=bool)
        for axis in reversed(range(len(sizes))):
            goal = wanted[:, :, axis]
            same = (now[:, :, :axis] == goal[:, :, None]) == (wanted[:, :, :axis] == goal[:, :, None])
            goal = np.where((goal > 0) & ~same.all(axis=-1), REPLICATE, goal)
            keys.append(_step_keys(now, axis, np.where(nested, goal, now[:, :, axis]), sizes, impossible))
    for axis in range(len(sizes)):
        keys.append(_step_keys(now, axis, wanted[:, :, axis], sizes, impossible))
    found = np.stack(keys, axis=-1)
    found[impossible] = NOTHING
    found[impossible, 0] = NEVER
    return found


def _step_keys(now: Ints, axis: int, goal: Ints, sizes: tuple[int, ...], impossible: NDArray[np.bool_]) -> Ints:
    """The step of every pair over one axis, taken."""
    current = now[:, :, axis]
    moves = current != goal
    impossible |= moves & (goal < 0)
    gather, exchange = moves & (current > 0) & (goal == 0), moves & (current > 0) & (goal > 0)
    scatter, reduce = moves & (current < 0) & (goal > 0), moves & (current < 0) & (goal == 0)
    kind = np.select([gather, exchange, scatter, reduce], [1, 2, 3, 4], 0)
    parts = np.prod(np.where(now > 0, np.array(sizes), 1), axis=-1)
    now[:, :, axis] = goal
    return np.where(kind > 0, ((kind - 1) * len(sizes) + axis) * _BASE + parts + 2, NOTHING)


_BASE = 10**9


def _read_key(key: int, sizes: tuple[int, ...]) -> tuple[str, int, int]:
    place, parts = divmod(key - 2, _BASE)
    kind, axis = divmod(place, len(sizes))
    return KINDS[kind], axis, parts


class RedistributionTimes:
    """Times between layouts on one mesh, remembered."""

    def __init__(self, mesh: MeshShape, hardware: Hardware) -> None:
        self.mesh, self.hardware = mesh, hardware
        self._kinds: dict[tuple[str, int, int], int] = {}
        self._prices: dict[int, Ints] = {}
        self._tables: dict[tuple[int, bytes, bytes], Ints] = {}
        self._paths: dict[tuple[bytes, bytes], NDArray[np.int32]] = {}
        self._steps = lru_cache(maxsize=None)(lambda held, needed: redistribution_steps(held, needed, mesh.sizes))
        self.time_ps = lru_cache(maxsize=None)(self._time_ps)

    def steps(self, held: Layout, needed: Layout) -> tuple[Step, ...] | None:
        """The steps between two layouts."""
        return self._steps(held, needed)

    def table_ps(self, size_bytes: int, held: NDArray[np.int8], needed: NDArray[np.int8]) -> Ints:
        """Picoseconds from each layout of ``held`` [H, A] to each of ``needed`` [N, A]: [H, N]."""
        held_rows, held_index = _distinct(held)
        needed_rows, needed_index = _distinct(needed)
        key = (size_bytes, held_rows.tobytes(), needed_rows.tobytes())
        if key not in self._tables:
            paths = self._path_kinds(held_rows, needed_rows)
            self._tables[key] = self._kinds_ps(size_bytes)[paths].sum(axis=-1)
        return self._tables[key][np.ix_(held_index, needed_index)]

    def _time_ps(self, size_bytes: int, held: Layout, needed: Layout) -> int:
        """Picoseconds between two layouts, step by step."""
        steps = self.steps(held, needed)
        if steps is None:
            return FORBIDDEN
        numbers = [self._kind_number(step.kind, step.axis, step.parts) for step in steps if step.kind != "slice"]
        return int(self._kinds_ps(size_bytes)[numbers].sum()) if numbers else 0

    def _path_kinds(self, held: NDArray[np.int8], needed: NDArray[np.int8]) -> NDArray[np.int32]:
        """Numbers of the kinds of step from each held to each needed layout: [H, N, steps]; 0 = none, 1 = never."""
        key = (held.tobytes(), needed.tobytes())
        if key not in self._paths:
            keys = path_keys(held, needed, self.mesh.sizes)
            known, inverse = np.unique(keys, return_inverse=True)
            numbers = np.array([self._number(int(each)) for each in known], dtype=np.int32)
            self._paths[key] = numbers[inverse].reshape(keys.shape)
        return self._paths[key]

    def _number(self, key: int) -> int:
        return key if key <= NEVER else self._kind_number(*_read_key(key, self.mesh.sizes))

    def _kind_number(self, kind: str, axis: int, parts: int) -> int:
        return self._kinds.setdefault((kind, axis, parts), len(self._kinds) + 2)

    def _kinds_ps(self, size_bytes: int) -> Ints:
        """Picoseconds of every kind of step known so far for a tensor of ``size_bytes``."""
        priced = self._prices.get(size_bytes)
        if priced is None:
            priced = np.array([0, FORBIDDEN], dtype=np.int64)
        if len(priced) < len(self._kinds) + 2:
            new = list(self._kinds)[len(priced) - 2 :]
            priced = self._prices[size_bytes] = np.concatenate([priced, self._priced_ps(new, size_bytes)])
        return priced

    def _priced_ps(self, kinds: Sequence[tuple[str, int, int]], size_bytes: int) -> Ints:
        """Picoseconds of some kinds, asked of the collective model once for each collective and axis."""
        times = np.zeros(len(kinds), dtype=np.int64)
        for kind, axis in dict.fromkeys((kind, axis) for kind, axis, _ in kinds):
            places = [place for place, each in enumerate(kinds) if each[:2] == (kind, axis)]
            parts = np.array([kinds[place][2] for place in places], dtype=np.float64)
            group, stride = self.mesh.sizes[axis], self.mesh.strides[axis]
            # The collective model counts a gather by what comes out of it, all others by what goes in.
            moved = size_bytes / parts * (group if kind == "all_gather" else 1)
            groups, strides = np.full(len(places), group), np.full(len(places), stride)
            seconds = self.hardware.collective_s(kind, moved, groups, strides)  # type: ignore[arg-type]
            times[places] = np.rint(seconds * PICOSECONDS)
        return times


_LAYOUT_BASE = 64


def _distinct(layouts: NDArray[np.int8]) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """The different rows of [K, A], and which of them each row is: [K]."""
    weights = _LAYOUT_BASE ** np.arange(layouts.shape[1], dtype=np.int64)
    numbers = (layouts.astype(np.int64) + _LAYOUT_BASE // 2) @ weights
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    return layouts[first], inverse.reshape(-1)
