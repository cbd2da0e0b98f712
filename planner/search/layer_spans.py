"""The mixtures of layer kinds that consecutive layers can be, and what every span of a length holds at least.

A stage with one chunk holds a span; of a model with few kinds in runs there are few different ones.
Shape letters: L layers, N layer kinds, V mixtures, H lengths.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.strategy.rows import first_of_each
from solver.arrays import Array, Ints

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


@lru_cache(maxsize=64)
def spans_of(kinds: Kinds, number: int) -> Spans:
    """The spans of a model that declares ``number`` kinds of layers."""
    running = running_kinds(kinds, number)
    counts: list[Ints] = []
    lengths: list[int] = []
    first: list[int] = []
    for length in range(1, len(kinds) + 1):
        sums = running[length:] - running[:-length]
        found = sums[first_of_each([*sums.T])[0]]
        first.append(len(lengths))
        lengths.extend([length] * len(found))
        counts.append(found)
    return Spans(np.concatenate(counts).astype(np.float64), np.array(lengths), np.array(first))


def running_kinds(kinds: Kinds, number: int) -> Ints:
    """Layers of each kind before each layer: [L + 1, N]."""
    ones = np.zeros((len(kinds) + 1, number), dtype=np.int64)
    ones[np.arange(1, len(kinds) + 1), kinds] = 1
    return np.cumsum(ones, axis=0)
