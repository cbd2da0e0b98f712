"""The time of a job between checkpoints under failures, the best interval, and what spare nodes give.

With failures at ``rate`` a second, exponential, ``stall`` seconds of a step loop that a checkpoint stops, ``restart``
seconds from a failure to the first step, and ``lag`` seconds from the stall's end until the checkpoint is whole on
storage (0 where the loop waits for it), an interval of ``work`` seconds takes (Daly, "A higher order estimate of the
optimum checkpoint interval for restart dumps", 2006, equation 13)::

    wall = e^(rate (restart + lag)) (e^(rate (work + stall)) - 1) / rate

and the useful part is ``work / wall``.  With a lag the steps of the lag are done again, which is counted as restart:
exact to the first order of ``rate * lag``.  The derivative is zero where ``1 - rate work = e^(-rate (work + stall))``,
whose solution tends to Young's ``sqrt(2 stall / rate)`` (1974) for ``rate * stall`` to 0.

Spare nodes: a failure that takes a node starts its repair and a spare steps in; with ``spares + 1`` nodes in repair the
job waits.  It then fails no more, so the part of the time that it waits is Erlang's loss formula with ``spares + 1``
servers and the load ``rate * repair``, whatever the distribution of repairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_HALVINGS = 200


@dataclass(frozen=True, slots=True)
class Interruptions:
    """What failures and checkpoints cost a job, all in seconds and failures a second."""

    rate: float
    stall_s: float
    restart_s: float
    lag_s: float = 0.0

    def useful(self, work_s: float) -> float:
        """Part of the time that is work which is not done again, with a checkpoint every ``work_s`` of work."""
        if self.rate == 0.0:
            return work_s / (work_s + self.stall_s)
        segment = self.rate * (work_s + self.stall_s)
        if segment > 700.0:
            return 0.0
        return self.rate * work_s / math.expm1(segment) * math.exp(-self.rate * (self.restart_s + self.lag_s))

    def best_interval_s(self) -> float:
        """Work between two checkpoints that leaves most; infinity without failures.

        ``1 - x = e^(-x - rate stall)`` for ``x = rate work`` in (0, 1), halved until it is exact; at least so long that
        one checkpoint is written before the next begins.
        """
        if self.rate == 0.0:
            return math.inf
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if -math.log1p(-middle) < middle + self.rate * self.stall_s else (low, middle)
            if high - low <= 1e-15 * high:
                break
        return max(high / self.rate, self.lag_s - self.stall_s)

    def young_s(self) -> float:
        """Young's interval, for comparison."""
        return math.inf if self.rate == 0.0 else math.sqrt(2.0 * self.stall_s / self.rate)

    def restarting(self) -> float:
        """Part of the time between a failure and the first step after it, failures in that time included."""
        return -math.expm1(-self.rate * self.restart_s)


def waiting_for_repair(load: float, spares: int) -> float:
    """Part of the time that a job waits for a node: Erlang B with ``spares + 1`` servers, by its recursion.

    ``load``: failures that take a node, times the time of a repair.
    """
    blocked = 1.0
    for servers in range(1, spares + 2):
        blocked = load * blocked / (servers + load * blocked)
    return blocked


def best_spares(load: float, nodes: int) -> int:
    """The number of spare nodes that gives most work of each node, spares among them.

    The loss falls convexly in the number of servers (Messerli 1972), so the first number that the next one does not
    better is the best.
    """
    spares, value = 0, (1.0 - waiting_for_repair(load, 0)) / nodes
    while True:
        following = (1.0 - waiting_for_repair(load, spares + 1)) / (nodes + spares + 1)
        if following <= value:
            return spares
        spares, value = spares + 1, following
