"""How long is a pipeline step at least, whatever device is the slowest?  For thousands of strategies at once.

Symbols: m micro-batches, p stages, S and M sum and maximum over devices of T (all that a device does for one
micro-batch, forward F and backward), c one hop between neighbours, k the least that one of the first chunks of devices
1 .. p-1 takes (their forwards alone where weight gradients are split off, which the way back does not wait for).
A path of an order is never longer than a step.  Two lead to rank s and back (``paths.paths_of_ranks``)::

    A_s = m T_s + what the first chunks of devices 0 .. s-1 take + 2 s c
    B_s = S + (m-1) T_s - (min(p - s, m) - 1) F_s + 2 (p-1) c           of 1f1b
    G_s = S + (m-1) T_s + 2 (p-1) c                                     of gpipe

Which device is the slowest is not known.  The slowest one has T_s = M, and of A_s and B_s any average over the devices
bounds the longest path too::

    gpipe        S + (m-1) M + 2 (p-1) c
    1f1b         max( m M,  S + (m-1) M - (min(p, m) - 1) M / 2 + 2 (p-1) c,  m S/p + 2/3 (p-1) S/p )
    all others   max( m M,  m S/p + (p-1) (p-2) / 2p  k ), and where backward passes are whole  S + 2 (p-1) c

The last one is the way of one micro-batch down through all chunks and back.  F_s <= T_s / 2, because a backward pass
takes no less than its forward.  The last term of 1f1b is 2/3 of the mean of B_s plus 1/3 of that of A_s, in which the
weights of the devices cancel.  Never falls when S, M, c or k grow.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from planner.strategy import ScheduleName

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def least_makespan_s(
    schedule: ScheduleName, microbatches: Ints, stages: Ints, seconds: tuple[Array, Array, Array, Array]
) -> Array:
    """Lower bound of every row: [R]; ``seconds``: S, M, c and k of the module docstring, [R] each."""
    total_s, longest_s, hop_s, chunk_s = seconds
    m, p = microbatches.astype(np.float64), stages.astype(np.float64)
    return np.asarray(_FORMULAS.get(schedule, _any)(m, p, total_s, longest_s, hop_s, chunk_s))


def _gpipe(m: Array, p: Array, total_s: Array, longest_s: Array, hop_s: Array, chunk_s: Array) -> Array:
    return total_s + (m - 1) * longest_s + 2 * (p - 1) * hop_s


def _one_f_one_b(m: Array, p: Array, total_s: Array, longest_s: Array, hop_s: Array, chunk_s: Array) -> Array:
    slowest_first = total_s + (m - 1 - (np.minimum(p, m) - 1) / 2) * longest_s + 2 * (p - 1) * hop_s
    alike = (m + 2 / 3 * (p - 1)) * total_s / p
    return np.maximum(np.maximum(m * longest_s, slowest_first), alike)


def _any(m: Array, p: Array, total_s: Array, longest_s: Array, hop_s: Array, chunk_s: Array) -> Array:
    return np.maximum(m * longest_s, m * total_s / p + (p - 1) * np.maximum(p - 2, 0) / (2 * p) * chunk_s)


def _whole(m: Array, p: Array, total_s: Array, longest_s: Array, hop_s: Array, chunk_s: Array) -> Array:
    alone_s = total_s + 2 * (p - 1) * hop_s
    return np.maximum(_any(m, p, total_s, longest_s, hop_s, chunk_s), alone_s)


_FORMULAS: dict[str, Callable[[Array, Array, Array, Array, Array, Array], Array]] = {
    "gpipe": _gpipe,
    "1f1b": _one_f_one_b,
    "interleaved": _whole,
    "looped_bfs": _whole,
}
