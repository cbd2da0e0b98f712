"""A small part of the space that shows early how fast a plan can surely be.

A search takes strategies in the order of bounds that know little of memory at first: degrees whose states and
activations do not fit come early, and each of them is bounded closely as long as no fast plan is known.  A search over
a small part finds a plan that is nearly as fast as the best one: the degrees of the lowest bounds with every
micro-batch size, one layout for each number of chunks, plain optimizer sharding.  Its step time, a little more, cuts
the whole search; what that finds, and in which order, stays as it is.
"""

from __future__ import annotations

from collections import Counter
from copy import copy

import numpy as np

from planner.search.alternatives import Postponed
from planner.search.search_result import DEGREES
from planner.search.space import Space
from planner.strategy.rows import first_of_each
from solver.arrays import Ints

MOST_DEGREES = 640
MOST_LAYOUTS = 4_096
"""Sets of degrees, and layouts, that are looked at: they bound what looking ahead costs."""
SMALL = {"micro_batch_size": 2, "vpp": 12}
"""Values up to which all are tried, because they keep little or cost little to try; of the larger ones that of the
lowest bound alone."""
GUESSES = (1.6, 2.4, np.inf)
"""How many times the lowest bound the plan that is looked for may take, tried one after the other: every bound costs
less, the nearer the cutoff is."""
JUST_ABOVE = 1 + 1e-9
"""What the step time found is multiplied by, so that the whole search still finds that very plan."""
PLAIN = {"zero_stage": 1, "dp_replicate": 1}
"""What is not tried out, unless the pins say so."""


def promising_cores(cores: Postponed) -> Postponed:
    """Cores of the degrees of the lowest bounds, some micro-batch sizes of each."""
    order = _by_bound(cores)
    first, degrees = first_of_each([getattr(cores.rows, name)[order] for name in DEGREES])
    last = np.sort(first)[:MOST_DEGREES][-1:]
    return _some_of_each(cores.take(order[np.isin(degrees, np.flatnonzero(first <= last))]), "micro_batch_size")


def promising_layouts(layouts: Postponed) -> Postponed:
    """The layouts of the lowest bounds, some numbers of chunks for each core."""
    some = _some_of_each(layouts, "vpp", "micro_batch_size")
    return some.take(np.arange(min(len(some.rows), MOST_LAYOUTS)))


def guesses_s(layouts: Postponed, cutoff_s: float) -> list[float]:
    """Cutoffs under which a plan is looked for in some layouts, until there is one."""
    least_s = float(layouts.bounds.min(initial=np.inf))
    return sorted({min(times * least_s, cutoff_s) for times in GUESSES})


def _some_of_each(what: Postponed, name: str, *more: str) -> Postponed:
    """Rows of finite bound in its order: one of each small value in the column ``name`` and one of whatever value.

    For each set of degrees, overlap and ``more`` columns; of several rows that of the lowest bound.
    """
    order = _by_bound(what)
    columns = [getattr(what.rows, each)[order] for each in (*DEGREES, "overlap_ep", *more)]
    values = getattr(what.rows, name)[order]
    each, _ = first_of_each([*columns, values])
    best, _ = first_of_each(columns)
    return what.take(order[sorted({*each[values[each] <= SMALL[name]].tolist(), *best.tolist()})])


def plain_part(space: Space) -> Space:
    """The space without the shardings that are not plain; counts of its own."""
    part = copy(space)
    part.pins = {**{name: value for name, value in PLAIN.items() if name not in space.pins}, **space.pins}
    part.pruned, part.illegal, part._tables = Counter(), Counter(), {}
    return part


def _by_bound(what: Postponed) -> Ints:
    order = np.argsort(what.bounds, kind="stable")
    return order[: int(np.isfinite(what.bounds).sum())]
