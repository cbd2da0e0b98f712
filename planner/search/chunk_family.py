"""The declared family of dealings of layers to several chunks a device, and what its members put on a device.

Shape letters: F members, C chunks, P stages, K numbers of relieved layers, N layer kinds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.search.layer_spans import Kinds, running_kinds
from planner.strategy.schedules import chunk_stages
from solver.arrays import Array, Ints

END_RELIEF = 3


@lru_cache(maxsize=1024)
def chunk_family(layers: int, chunks: int, *, empty_ends: bool) -> tuple[tuple[int, ...], ...]:
    """Declared layouts of several chunks a device: near-even, ends up to END_RELIEF shorter.

    Every chunk holds a layer; with ``empty_ends`` the first and the last one may hold none.
    """
    found: dict[tuple[int, ...], None] = {}
    for less_first in range(END_RELIEF + 1):
        for less_last in range(END_RELIEF + 1):
            base, rest = divmod(layers + less_first + less_last, chunks)
            for front in (False, True):
                sizes = [base + (index < rest if front else index >= chunks - rest) for index in range(chunks)]
                sizes[0] -= less_first
                sizes[-1] -= less_last
                # A single chunk holds everything; it is no end that could be empty.
                if min(sizes[1:-1], default=1) >= 1 and min(sizes[0], sizes[-1]) >= (0 if empty_ends else 1):
                    found[tuple(sizes)] = None
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class FamilyLayers:
    """Layers of each kind on the devices: ``first`` [K + 1, F, P, N] counts the first k layers of every chunk.

    ``sizes`` [F, C]: layers of every chunk, chunk c on stage ``stages[c]``; ``lead`` [F, P, N] counts the layers of the
    chunks 0 .. P-1, which are the first of the devices; ``longest`` [F]: layers of the longest chunk.
    """

    sizes: Ints
    stages: tuple[int, ...]
    first: Array
    lead: Array
    longest: Ints


@lru_cache(maxsize=1024)
def family_layers(
    kinds: Kinds, number: int, pp: int, vpp: int, *, v_placed: bool, empty_ends: bool
) -> FamilyLayers | None:
    """The declared family of a model with ``number`` kinds of layers on ``pp`` stages; None without a member."""
    family = chunk_family(len(kinds), pp * vpp, empty_ends=empty_ends)
    if not family:
        return None
    stages, sizes = chunk_stages(pp, vpp, v_placed=v_placed), np.array(family, dtype=np.int64)
    starts = np.cumsum(sizes, axis=1) - sizes
    owner = np.zeros((len(stages), pp))
    owner[np.arange(len(stages)), stages] = 1.0
    running, most = running_kinds(kinds, number), int(sizes.max())
    relieved = np.minimum(np.arange(most + 1)[:, None, None], sizes)
    chunks = (running[starts + relieved] - running[starts]).astype(np.float64)
    first = np.ascontiguousarray(np.einsum("kfcn,cp->kfpn", chunks, owner))
    return FamilyLayers(sizes, stages, first, np.ascontiguousarray(chunks[most, :, :pp]), sizes.max(axis=1))


@lru_cache(maxsize=4096)
def fullest_holds(kinds: Kinds, kind: int, pp: int, vpp: int, *, v_placed: bool) -> float:
    """Fewest layers of one kind that the device with most of them holds, over every dealing that the search knows.

    Those with empty ends too, for any back-end: fewer are no less true where it has none.  Infinity without a dealing.
    """
    if vpp == 1:
        return float(-(-kinds.count(kind) // pp))
    family = chunk_family(len(kinds), pp * vpp, empty_ends=True)
    if not family:
        return math.inf
    stops = np.cumsum(np.array(family), axis=1)
    before = np.concatenate([[0], np.cumsum(np.array(kinds) == kind)])
    chunks = np.diff(before[stops], axis=1, prepend=0)
    order = np.argsort(chunk_stages(pp, vpp, v_placed=v_placed), kind="stable")
    held = chunks[:, order].reshape(len(family), pp, vpp).sum(axis=2)
    return float(held.max(axis=1).min())
