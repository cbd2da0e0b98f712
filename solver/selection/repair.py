"""The first selections that fit: memory gets dearer until what message passing decodes fits."""

from __future__ import annotations

import numpy as np

from solver.selection.dual import Dual
from solver.selection.messages import sweep
from solver.selection.prices import add_prices, fill_usage, fits
from solver.selection.reduced import Reduced

MOST_ATTEMPTS = 60
GROWTH = 1.3


def repair(dual: Dual) -> bool:
    """Raise all prices step by step and offer what fits; whether something did."""
    reduced: Reduced = dual.reduced
    graph, memory = reduced.graph, reduced.memory
    if reduced.num_rows == 0:
        return False
    spread = float(np.ptp(dual.costs.unary)) + 1.0
    floor = max(float(dual.best_price.mean()), spread / float(np.maximum(memory.slack, 1).max()) / 100)
    price = dual.best_price + 1e-3 * floor
    messages, values = dual.best_messages.copy(), dual.values.copy()
    usage, priced = np.zeros(reduced.num_rows, np.int64), np.zeros_like(dual.priced)
    for _ in range(MOST_ATTEMPTS):
        if dual.pool.incumbent.stopped():
            return False
        add_prices(graph, memory, dual.costs.unary, price, priced)
        sweep(graph, priced, dual.costs.table, dual.start, messages, 4, values)
        dual.pool.incumbent.spend(16 * reduced.num_cells)
        fill_usage(memory, values, usage)
        if fits(usage, memory.slack) and dual.pool.offer(values, "repair") is not None:
            return True
        over = np.maximum(usage - memory.slack, 0) / np.maximum(memory.slack, 1)
        price = price * np.where(over > 0, GROWTH, 1.0) + floor * 0.1 * np.minimum(over, 1.0)
    return False
