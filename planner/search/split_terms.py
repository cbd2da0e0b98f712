"""What both inner searches share: limits, and host memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.search.row_context import RowContext
from planner.strategy.relief_layers import ReliefLayers
from solver.arrays import Array

SLACK = 1e-9
"""Relative rounding slack of the memory comparison."""


@dataclass(frozen=True, slots=True)
class SplitRules:
    """What memory, host memory and the back-end allow."""

    limit_bytes: float
    host_limit_bytes: float = float("inf")
    uniform: bool = False
    even: bool = False
    """Equally many layers on every chunk, all of them relieved or none."""
    whole: bool = False
    """Full recompute, too, is every layer or none; with ``uniform``."""
    empty_ends: bool = False
    """The first and the last chunk may hold no layer."""
    first: int | None = None
    """Each chunk relieves exactly its first so many layers, where a number is asked for."""

    def least_layers(self, stages: int) -> NDArray[np.int64]:
        """Fewest layers of each of some stages with one chunk each: [P]."""
        least = np.ones(stages, dtype=np.int64)
        if self.empty_ends and stages > 1:
            least[[0, -1]] = 0
        return least

    def longest_span(self, layers: int, stages: int) -> int:
        """Most layers that one of some stages with one chunk each can hold, which leaves the others theirs."""
        least = np.sort(self.least_layers(stages))
        return int(layers - least[:-1].sum())

    def relieving(self, layers: ReliefLayers) -> SplitRules:
        """The same rules where these layers are relieved and no others; a list of stages is no rule."""
        if layers == "every":
            return replace(self, uniform=True, whole=True)
        return replace(self, first=layers) if isinstance(layers, int) else self


def host_bytes(context: RowContext, dense: Array, expert: Array, moved: Array) -> Array:
    """Host memory of each stage: offloaded optimizer states, and what offloaded layers keep: [S, ...]."""
    cost, strategy = context.cost, context.strategy
    per_dense, per_expert = cost.dense_state.host[0], cost.expert_state.host[0]
    ends = np.zeros(strategy.pp)
    ends[0] += cost.embedding_dense[0] * per_dense
    ends[context.head_stage] += cost.head_dense[0] * per_dense + cost.head_expert[0] * per_expert
    flight = context.memory.passes.in_flight[0] if strategy.activation_offload else np.zeros(strategy.pp)
    shape = (-1, *(1 for _ in range(moved.ndim - 1)))
    total: Array = dense * per_dense + expert * per_expert + ends.reshape(shape) + flight.reshape(shape) * moved
    return total
