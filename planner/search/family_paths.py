"""The lengths of an order's known paths under the members of the declared family, for many strategies at once.

A path's length is linear in the chunks' times, and a chunk's times in its layers of each kind, so what a path makes of
a member is known once for all strategies of one order::

    length[k] = sum_n (f_n F[k, n] + b_n B[k, n] + w_n W[k, n]) + what the ends, the hosts and the hops take

with F, B and W the layers of kind n on path k, forward, backward and weight gradient
(``planner.predict.schedule.paths``). Shape letters: Q pairs of a row and a member, K paths, F members, C chunks, P
stages, N layer kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.predict.cost.row_cost import RowCost
from planner.predict.schedule.orders.build import KEPT
from planner.predict.schedule.run import known_paths
from planner.search.chunk_times import HOST_FORWARD_SHARE
from planner.search.layer_spans import Kinds, running_kinds
from planner.strategy.schedules import ScheduleName
from solver.arrays import Array, Ints


@dataclass(frozen=True, slots=True, eq=False)
class FamilyPaths:
    """Paths of one order.

    ``chunks`` [3, K, C]: how often forwards, backwards and weight gradients of each chunk stand on each path;
    ``layers`` [3, F, K, N]: the same of layers of each kind; ``hops`` [K]; ``least`` [K, P]: backwards of that chunk of
    each stage that has the fewest.
    """

    chunks: Array
    layers: Array
    hops: Array
    least: Array

    def lengths_s(self, cost: RowCost, row: Ints, member: Ints, relieved: tuple[Array, Array]) -> Array:
        """Length of the longest path of each pair: [Q].

        ``relieved``: what relief adds to a layer of each kind where all layers are relieved [Q, N], 0 elsewhere, and
        what it adds to each device otherwise [Q, P].
        """
        forward_s, gradient_s = cost.layer_forward_s[row], cost.layer_weight_gradient_s[row]
        backward_s = cost.layer_backward_s[row] + relieved[0]
        lengths = self._ends_s(cost, row) + relieved[1] @ self.least.T
        for one in sorted({*member.tolist()}):
            at = np.flatnonzero(member == one)
            for seconds, counts in zip((forward_s, backward_s, gradient_s), self.layers[:, one], strict=True):
                lengths[at] += seconds[at] @ counts.T
        return np.asarray(lengths.max(axis=1))

    def _ends_s(self, cost: RowCost, row: Ints) -> Array:
        """What stands on the paths beside the layers: [Q, K]."""
        per_device = self.chunks.shape[2] // self.least.shape[1]
        host_s = (cost.stage_host_s + cost.regather_s)[row] / per_device
        parts = (
            (host_s * HOST_FORWARD_SHARE, cost.embedding_forward_s[row], cost.head_forward_s[row]),
            (host_s * (1.0 - HOST_FORWARD_SHARE), cost.embedding_backward_s[row], cost.head_backward_s[row]),
            (np.zeros(len(row)), cost.embedding_weight_gradient_s[row], cost.head_weight_gradient_s[row]),
        )
        lengths = np.outer(cost.hop_s[row], self.hops)
        for (every_s, first_s, last_s), counts in zip(parts, self.chunks, strict=True):
            lengths += np.outer(every_s, counts.sum(axis=1))
            lengths += np.outer(first_s, counts[:, 0]) + np.outer(last_s, counts[:, -1])
        return lengths


@lru_cache(maxsize=KEPT)
def family_paths(
    order: tuple[ScheduleName, tuple[int, int, int, int]],
    kinds: tuple[Kinds, int],
    family: tuple[tuple[int, ...], ...],
    stages: tuple[int, ...],
) -> FamilyPaths:
    """The known paths of an order: its schedule and sizes; ``kinds``: of every layer, and how many there are.

    ``family``: layers of every chunk, chunk c on stage ``stages[c]``.
    """
    paths = known_paths(*order)
    columns = "forwards", "backwards", "weight_gradients"
    chunks = np.stack([np.stack([getattr(path, name) for path in paths]) for name in columns])
    stops = np.cumsum(np.array(family, dtype=np.int64), axis=1)
    running = running_kinds(*kinds)
    held = np.diff(running[stops], axis=1, prepend=0).astype(np.float64)
    least = np.full((len(paths), max(stages) + 1), np.inf)
    for chunk, stage in enumerate(stages):
        least[:, stage] = np.minimum(least[:, stage], chunks[1, :, chunk])
    layers = np.einsum("akc,fcn->afkn", chunks, held)
    return FamilyPaths(chunks, layers, np.array([path.hops for path in paths]), least)
