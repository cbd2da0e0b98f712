"""Which mixtures of layer kinds can consecutive layers be?  What every span of a length holds at least.

A stage with one chunk holds a span; of a model with few kinds in runs there are few different ones.  Devices with
several chunks hold one span a chunk: how many layers of each kind that makes, for every member of the declared family.
Shape letters: N layer kinds, V mixtures, F members, C chunks, P stages, K numbers of relieved layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Kinds = tuple[int, ...]
"""Kind of every layer along the model."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Different mixtures of consecutive layers, those of one length side by side.

    ``counts`` [V, N]: layers of each kind; ``lengths`` [V], ascending; ``first`` [H]: where length h + 1 begins.
    """

    counts: Array
    lengths: Ints
    first: Ints


@dataclass(frozen=True, slots=True)
class FamilyLayers:
    """Layers of each kind on the devices: ``first`` [K + 1, F, P, N] counts the first k layers of every chunk.

    ``held`` [F, P, N] counts all of them; ``longest`` [F]: layers of the longest chunk.
    """

    first: Array
    held: Array
    longest: Ints


@lru_cache(maxsize=64)
def spans_of(kinds: Kinds, number: int) -> Spans:
    """The spans of a model that declares ``number`` kinds of layers."""
    running = _running(kinds, number)
    counts: list[Ints] = []
    lengths: list[int] = []
    first: list[int] = []
    for length in range(1, len(kinds) + 1):
        found = np.unique(running[length:] - running[:-length], axis=0)
        first.append(len(lengths))
        lengths.extend([length] * len(found))
        counts.append(found)
    return Spans(np.concatenate(counts).astype(np.float64), np.array(lengths), np.array(first))


@lru_cache(maxsize=1024)
def family_layers(
    kinds: Kinds, number: int, family: tuple[tuple[int, ...], ...], stages: tuple[int, ...]
) -> FamilyLayers:
    """The members ``family`` (layers of every chunk), chunk c on stage ``stages[c]``."""
    sizes = np.array(family, dtype=np.int64)
    starts = np.cumsum(sizes, axis=1) - sizes
    owner = np.zeros((len(stages), max(stages) + 1))
    owner[np.arange(len(stages)), stages] = 1.0
    running, most = _running(kinds, number), int(sizes.max())
    relieved = np.minimum(np.arange(most + 1)[:, None, None], sizes)
    chunks = running[starts + relieved] - running[starts]
    first = np.einsum("kfcn,cp->kfpn", chunks.astype(np.float64), owner)
    return FamilyLayers(first, first[most], sizes.max(axis=1))


def _running(kinds: Kinds, number: int) -> Ints:
    """Layers of each kind before each layer: [L + 1, N]."""
    ones = np.zeros((len(kinds) + 1, number), dtype=np.int64)
    ones[np.arange(1, len(kinds) + 1), kinds] = 1
    return np.cumsum(ones, axis=0)
