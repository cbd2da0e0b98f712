"""A lower bound of a pipeline step, whatever device is the slowest: for thousands of strategies at once.

Symbols: m micro-batches, p stages, S and M sum and maximum over devices of T (all that a device does for one
micro-batch, forward F and backward), c one hop between neighbours, k the least that one of the first chunks of devices
1 .. p-1 takes (their forwards alone where weight gradients are split off, which the way back does not wait for), w the
part of S that weight gradients are where they are split off.
A path of an order is never longer than a step.  Two lead to rank s and back (``paths.paths_of_ranks``)::

    A_s = m T_s + what the first chunks of devices 0 .. s-1 take + 2 s c
    B_s = S + (m-1) T_s - (min(p - s, m) - 1) F_s + 2 (p-1) c           of 1f1b
    G_s = S + (m-1) T_s + 2 (p-1) c                                     of gpipe

Which device is the slowest is not known.  The slowest one has T_s = M, and of A_s and B_s any average over the devices
bounds the longest path too::

    gpipe        S + (m-1) M + 2 (p-1) c
    1f1b         max( m M,  S + (m-1) M - (min(p, m) - 1) M / 2 + 2 (p-1) c,  m S/p + 2/3 (p-1) S/p )
    all others   max( m M,  m S/p + (p-1) (p-2) / 2p  k,  S - w + 2 (p-1) c )

The last term of the others is the way of one micro-batch down through all chunks and back.  F_s <= T_s / 2, because a
backward pass takes no less than its forward.  The last term of 1f1b is 2/3 of the mean of B_s plus 1/3 of that of A_s,
in which the weights of the devices cancel.  Never falls when S, M, c or k grow, nor when w falls.
"""

from __future__ import annotations

import numpy as np

from planner.strategy.schedules import SPLIT_SCHEDULES, ScheduleName
from solver.arrays import Array, Ints


def least_makespan_s(
    schedule: ScheduleName, microbatches: Ints, stages: Ints, seconds: tuple[Array, Array, Array, Array, Array]
) -> Array:
    """Lower bound of every row: [R]; ``seconds``: S, M, c, k and w of the module docstring, [R] each."""
    total_s, longest_s, hop_s, chunk_s, gradient_s = seconds
    m, p = microbatches.astype(np.float64), stages.astype(np.float64)
    if schedule == "gpipe":
        return np.asarray(total_s + (m - 1) * longest_s + 2 * (p - 1) * hop_s)
    if schedule == "1f1b":
        slowest_first = total_s + (m - 1 - (np.minimum(p, m) - 1) / 2) * longest_s + 2 * (p - 1) * hop_s
        alike = (m + 2 / 3 * (p - 1)) * total_s / p
        return np.maximum(np.maximum(m * longest_s, slowest_first), alike)
    alike = m * total_s / p + (p - 1) * np.maximum(p - 2, 0) / (2 * p) * chunk_s
    way_s = total_s - (gradient_s if schedule in SPLIT_SCHEDULES else 0.0) + 2 * (p - 1) * hop_s
    return np.maximum(np.maximum(m * longest_s, alike), way_s)
