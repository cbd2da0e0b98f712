"""The best dealing of layers and memory relief for one strategy.

One chunk a device: dynamic programming over every dealing (``line_split``), exact but for what it says it left open.
Several chunks a device: every member of the declared family (``family_split``), exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from planner.predict.candidate import Candidate
from planner.search.evaluate import evaluate_split
from planner.search.family_split import best_of_family, given_split
from planner.search.line_split import LeftOpen, best_line
from planner.search.row_context import RowContext
from planner.search.split_terms import SplitRules

SplitSolver = Callable[[RowContext, SplitRules, float, LeftOpen | None], Candidate | None]


def best_split(
    context: RowContext, rules: SplitRules, cutoff_s: float = math.inf, left: LeftOpen | None = None
) -> Candidate | None:
    """Best candidate of a strategy that is faster than ``cutoff_s`` and fits; None when there is none.

    ``left`` hears of what was not looked at.
    """
    if rules.even:
        return even_split(context, rules, cutoff_s)
    if context.strategy.vpp > 1:
        return best_of_family(context, rules, cutoff_s)
    # Without a cutoff a near-even dealing comes first: its time cuts the dynamic program down to spans that can win.
    known = None if math.isfinite(cutoff_s) else best_of_family(context, rules, cutoff_s)
    return best_line(context, rules, cutoff_s, known, left)


def near_even_split(
    context: RowContext, rules: SplitRules, cutoff_s: float = math.inf, left: LeftOpen | None = None
) -> Candidate | None:
    """The best of the declared family alone, for any number of chunks a device; ``left`` hears nothing."""
    return best_of_family(context, rules, cutoff_s)


def even_split(
    context: RowContext, rules: SplitRules, cutoff_s: float = math.inf, left: LeftOpen | None = None
) -> Candidate | None:
    """The dealing of equally many layers to every chunk; None where the layers do not divide or it does not fit."""
    chunks = context.strategy.num_chunks
    count, rest = divmod(context.costs.model.num_layers, chunks)
    split = None if rest else given_split(context, rules, (count,) * chunks)
    found = None if split is None else evaluate_split(context, split)
    return found if found is not None and found.step_time_s < cutoff_s else None
