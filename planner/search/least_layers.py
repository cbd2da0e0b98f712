"""Whether strategies can be fast enough at all, with every layer as light as the lightest of its model's kinds.

The bounds of ``planner.search.memory_bound`` count the layers of the most frequent kind alone.  Where that is half of
the layers or less, as with full and sliding attention in turns, they leave most of the model out.  Here every layer
counts, with the least time, state, activations and price of relief of all kinds: what cannot be dealt so cannot be
dealt as it is.  Shape letters: R rows, N layer kinds.
"""

from __future__ import annotations

import numpy as np

from planner.predict.cost.row_cost import CostModel, RowCost
from planner.predict.cost.short_axis import least_of_row
from planner.predict.stage_memory import end_seconds, passes_memory
from planner.search.split_terms import SLACK, SplitRules
from planner.search.stage_capacity import Capacity, StageRoom
from planner.strategy.rows import StrategyRows
from solver.arrays import Array, Mask


def kinds_are_mixed(costs: CostModel) -> bool:
    """Whether no kind has more than half of the layers, so that it says something to count the others too."""
    return bool(2 * costs.kind_counts.max() <= costs.kind_counts.sum())


def may_be_faster(
    costs: CostModel, rules: SplitRules, strategies: tuple[StrategyRows, RowCost], tail_s: Array, cutoff_s: float
) -> Mask:
    """Rows of one number of stages that may be dealt in less than ``cutoff_s``: [R]; ``tail_s`` [R] at least.

    No stage may be busy for longer than ``(cutoff_s - tail_s) / m``, as its makespan is at least m times as long.
    """
    rows, cost = strategies
    stages = int(rows.pp[0])
    fixed, flight, states = passes_memory(rows, cost, costs.reliefs, stages)
    limit_bytes = rules.limit_bytes + 2 * SLACK * costs.hardware.memory_bytes
    room = StageRoom(
        float(costs.kind_counts.sum()),
        layer_s=least_of_row(cost.layer_s),
        ends_s=np.ascontiguousarray(end_seconds(rows, cost, stages).T),
        kept_bytes=least_of_row(cost.saved_bytes),
        state_bytes=least_of_row(states),
        in_flight=np.ascontiguousarray(flight.T),
        free_bytes=np.ascontiguousarray((limit_bytes - fixed).T),
    )
    freed = cost.saved_bytes - cost.relieved_bytes
    price = np.divide(cost.relief_s, freed, out=np.full(freed.shape, np.inf), where=freed > 0)
    relief = room.offer(least_of_row(cost.relieved_bytes), least_of_row(price))
    return Capacity(room, relief).holds_all((cutoff_s - tail_s) / rows.num_microbatches)
