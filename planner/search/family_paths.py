"""The known paths of an order under the members of the declared family.

A path's length is linear in the chunks' times, and a chunk's times in its layers of each kind, so what a path makes of
a member is known once for all strategies of one order::

    length[k] = sum_n (f_n F[k, n] + b_n B[k, n] + w_n W[k, n]) + what the ends, the hosts and the hops take

with F, B and W the layers of kind n on path k, forward, backward and weight gradient
(``planner.predict.schedule.paths``). Shape letters: K paths, F members, C chunks, P stages, N layer kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.predict.schedule.orders.build import KEPT
from planner.predict.schedule.run import known_paths
from planner.search.chunk_family import FamilyLayers
from planner.search.layer_spans import Kinds, running_kinds
from planner.strategy.schedules import ScheduleName
from solver.arrays import Array


@dataclass(frozen=True, slots=True, eq=False)
class FamilyPaths:
    """Paths of one order.

    ``layers`` [F, K, 3 N]: how often forwards, backwards and weight gradients of layers of each kind stand on each
    path; ``ends`` [K, 9]: the same of all chunks, of the first and of the last one for forwards and for backwards, of
    the first and of the last one for weight gradients, and hops; ``least`` [K, P]: backwards of that chunk of each
    stage that has the fewest.
    """

    layers: Array
    ends: Array
    least: Array


@lru_cache(maxsize=KEPT)
def family_paths(
    order: tuple[ScheduleName, tuple[int, int, int, int]], kinds: tuple[Kinds, int], family: FamilyLayers
) -> FamilyPaths:
    """The known paths of an order: its schedule and sizes; ``kinds``: of every layer, and how many there are."""
    paths = known_paths(*order)
    columns = "forwards", "backwards", "weight_gradients"
    chunks = np.stack([np.stack([getattr(path, name) for path in paths]) for name in columns])
    running = running_kinds(*kinds)
    held = np.diff(running[np.cumsum(family.sizes, axis=1)], axis=1, prepend=0).astype(np.float64)
    least = np.full((len(paths), max(family.stages) + 1), np.inf)
    for chunk, stage in enumerate(family.stages):
        least[:, stage] = np.minimum(least[:, stage], chunks[1, :, chunk])
    layers = np.einsum("akc,fcn->fkan", chunks, held).reshape(len(held), len(paths), -1)
    every, first, last = chunks.sum(axis=2), chunks[:, :, 0], chunks[:, :, -1]
    ends = [every[0], first[0], last[0], every[1], first[1], last[1], first[2], last[2], [path.hops for path in paths]]
    return FamilyPaths(np.ascontiguousarray(layers), np.stack(ends, axis=1).astype(np.float64), least)
