"""The lower bound of a step of unequal stages under 1F1B, which the assignment minimises.

Symbols: m micro-batches, p stages, stage i at position e = p - i from the end with T = F + B seconds a micro-batch, R_i
the time of the stages behind it and of the hops to them, there and back; phi the largest part of a stage's time that is
its forward.  Three chains of actions that an order of 1F1B has (``planner.predict.schedule.paths``).  The first
micro-batch goes down and comes back to stage i, which then does the rest of its work.  It comes back to stage i, which
works up to its last forward, and the last micro-batch goes down and comes back (e < m).  Every p-th micro-batch goes
down and comes
back after the one p before it ::

    step >= sum T + 2 sum hops + (m-1) T_i - (min(e, m) - 1) F_i + late
    step >= sum T + 2 sum hops + (m-e) T_i + R_i + late
    step >= ceil(m / p) ( sum T + 2 sum hops ) + late

    late = max_i ( late_i - h sum of T of the stages before i )+

The first two say that a step is no shorter than with the pace of its slowest stage ::

    step >= sum T + 2 sum hops + (m-1) max_i pace_i + late
    pace_i = max( w_e T_i, ((m-e) T_i + R_i) / (m-1) ),   w_e = 1 - phi (min(e, m) - 1) / (m - 1)

The first chain alone lets stages be the slower the nearer to the front they stand.  With the second one that costs the
stages behind them as much: where p < m the largest pace is at least sum T / p.  (Add the second chains with weights
l_e >= 0 such that every stage has the same sum l_e (m-e) + sum of l of the stages before it.)

``late_i`` is what stage i does once a step.  The last backward pass leaves stage i the earlier, the later the stage:
with h = 1 what it then reduces and updates hides under the stages before it (Mist, arXiv 2503.19050, does the same);
with h = 0 nothing hides, as in plans on one pool.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solver.arrays import Array


@dataclass(frozen=True, slots=True)
class StepObjective:
    """Least seconds of a step from the largest pace ``w_e T``, summed stage time, summed hops and the late work."""

    num_microbatches: int
    hides: float

    def value(self, peak: Array, total: Array, hops: Array, late: Array, stages: Array) -> Array:
        """Least seconds of a step; ``hops`` is the sum of one-way hops."""
        there_and_back_s = total + 2.0 * hops
        chained_s = np.ceil(self.num_microbatches / stages) * there_and_back_s
        step_s: Array = np.maximum(there_and_back_s + (self.num_microbatches - 1) * peak, chained_s) + late
        return step_s

    def least(self, peak: Array, total: Array, hops: Array, late: Array, most_stages: int) -> Array:
        """No more than ``value`` for any number of stages up to ``most_stages``.

        The largest pace of p < m stages is at least the mean of ``total`` over them (see above).
        """
        most = max(most_stages, 1)
        if most < self.num_microbatches:
            peak = np.maximum(peak, total / most)
        return self.value(peak, total, hops, late, np.full(1, float(most)))


def pace_shares(num_microbatches: int, positions: int, forward_share: Array) -> Array:
    """``w_e`` of positions 1 .. ``positions`` from the end, for every ``phi`` [...]: [..., E]."""
    share = np.asarray(forward_share)[..., None]
    if num_microbatches < 2:
        return np.ones((*share.shape[:-1], positions))
    warmup = np.minimum(np.arange(1, positions + 1), num_microbatches) - 1
    shares: Array = 1.0 - share * warmup / (num_microbatches - 1)
    return shares


def pace_mix(num_microbatches: int, positions: int) -> Array:
    """Parts of a stage's own time, of the times and of the hops behind it, of positions 1 .. ``positions``: [E, 3]."""
    mix = np.zeros((positions, 3))
    at = np.arange(1, positions + 1)
    exists = at < num_microbatches
    mix[exists] = np.stack([num_microbatches - at, np.ones(positions), np.full(positions, 2.0)], axis=1)[exists]
    return mix / max(num_microbatches - 1, 1)
