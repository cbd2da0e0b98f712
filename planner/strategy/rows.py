"""Millions of strategies held at once, as columns.

``StrategyRows`` is a structure of arrays, one row a strategy; ``strategy(i)`` gives the readable object.  Schedules,
dispatchers and reliefs are coded by their index in ``SCHEDULE_NAMES``, ``DISPATCHERS`` and the problem's relief list.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from math import prod
from operator import attrgetter

import numpy as np

from planner.strategy.schedules import BREADTH_FIRST_SCHEDULES, SCHEDULE_NAMES, V_SCHEDULES
from planner.strategy.strategy import DISPATCHERS, Relief, Strategy
from solver.arrays import Ints, Mask

TABLE_A_ROW = 4
"""Distinct rows are found by a table of all possible values where it is not much longer than the rows are many."""
MANY_ROWS, FEW_VALUES = 1_500, 8
"""From so many rows on it is worth while to make the table shorter: by columns of more values than these."""


@dataclass(frozen=True, slots=True)
class StrategyRows:
    """Columns of strategies, each int64[R]; switches are 0 or 1."""

    tp: Ints
    sp: Ints
    cp: Ints
    ring: Ints
    ep: Ints
    etp: Ints
    pp: Ints
    vpp: Ints
    group: Ints
    schedule: Ints
    dp: Ints
    micro_batch_size: Ints
    num_microbatches: Ints
    pp_inner: Ints
    overlap_tp: Ints
    overlap_ep: Ints
    dispatcher: Ints
    dp_replicate: Ints
    zero: Ints
    relief: Ints
    optimizer_offload: Ints
    overlap_grad: Ints
    overlap_param: Ints
    fp8_parameters: Ints

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.tp)

    def take(self, index: Ints | Mask) -> StrategyRows:
        """Rows at ``index`` (positions or mask)."""
        # A mask is turned into positions once, not once a column.
        at = np.flatnonzero(index) if index.dtype == np.bool_ else index
        return StrategyRows(*[column[at] for column in _columns_of(self)])

    def slice(self, start: int, stop: int) -> StrategyRows:
        """Rows ``start`` to ``stop`` as views."""
        return StrategyRows(*[column[start:stop] for column in _columns_of(self)])

    @classmethod
    def concatenate(cls, parts: Sequence[StrategyRows]) -> StrategyRows:
        """All rows of ``parts`` in order."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS))

    def strategy(self, row: int, reliefs: Sequence[Relief]) -> Strategy:
        """Row ``row`` as a ``Strategy``."""
        relief = reliefs[int(self.relief[row])]
        cp = int(self.cp[row])
        kind = "none" if cp == 1 else ("ring" if self.ring[row] else "all_to_all")
        replicate = int(self.dp_replicate[row])
        return Strategy(
            tp=int(self.tp[row]),
            sp=bool(self.sp[row]),
            cp=cp,
            cp_kind=kind,  # type: ignore[arg-type]  # one of the three literals above
            ep=int(self.ep[row]),
            etp=int(self.etp[row]),
            pp=int(self.pp[row]),
            vpp=int(self.vpp[row]),
            dp_replicate=replicate,
            dp_shard=int(self.dp[row]) // replicate,
            micro_batch_size=int(self.micro_batch_size[row]),
            num_microbatches=int(self.num_microbatches[row]),
            schedule=SCHEDULE_NAMES[int(self.schedule[row])],
            microbatch_group_size=int(self.group[row]),
            zero_stage=int(self.zero[row]),
            recompute=relief.recompute,
            recompute_modules=relief.modules,
            optimizer_offload=bool(self.optimizer_offload[row]),
            activation_offload=relief.offload,
            overlap_grad_reduce=bool(self.overlap_grad[row]),
            overlap_param_gather=bool(self.overlap_param[row]),
            overlap_tp=bool(self.overlap_tp[row]),
            overlap_ep=bool(self.overlap_ep[row]),
            dispatcher=DISPATCHERS[int(self.dispatcher[row])],
            fp8_parameters=bool(self.fp8_parameters[row]),
            axis_order="tp-cp-ep-pp-dp" if self.pp_inner[row] else "tp-cp-ep-dp-pp",
        )

    @classmethod
    def of(cls, strategies: Sequence[Strategy], reliefs: Sequence[Relief]) -> StrategyRows:
        """Inverse of ``strategy``: rows of readable strategies; their reliefs must be in ``reliefs``."""
        columns = [_columns(strategy, reliefs) for strategy in strategies]
        return cls(*(np.array(column, dtype=np.int64) for column in zip(*columns, strict=True)))


COLUMNS = tuple(field.name for field in fields(StrategyRows))
"""Names of the columns, in order."""
_columns_of = attrgetter(*COLUMNS)

COLUMN_OF_FIELD: dict[str, str] = {
    "cp_kind": "ring",
    "axis_order": "pp_inner",
    "zero_stage": "zero",
    "microbatch_group_size": "group",
    "overlap_grad_reduce": "overlap_grad",
    "overlap_param_gather": "overlap_param",
}
"""Columns that are not called as their field of a strategy is."""


def scheduled_as(rows: StrategyRows, names: Collection[str]) -> Mask:
    """Rows whose schedule is one of ``names``."""
    return np.array([name in names for name in SCHEDULE_NAMES])[rows.schedule]


def waiting_head(rows: StrategyRows) -> Mask:
    """Rows in which every micro-batch waits at the head before the first one goes back: gpipe and looped_bfs."""
    return scheduled_as(rows, BREADTH_FIRST_SCHEDULES)


def v_placed(rows: StrategyRows) -> Mask:
    """Rows whose chunks lie in a V, so that the head is on the first stage."""
    return scheduled_as(rows, V_SCHEDULES)


def schedule_class(rows: StrategyRows) -> Ints:
    """All that costs know of a row's schedule beside its number of chunks: equal numbers, equal costs."""
    return np.array([_class_of(name) for name in SCHEDULE_NAMES])[rows.schedule]


def _class_of(schedule: str) -> int:
    # Hops of 1f1b go back and forth, a V has both ends on one stage, breadth first all activations wait at the head.
    return (schedule == "1f1b") + 2 * (schedule in V_SCHEDULES) + 4 * (schedule in BREADTH_FIRST_SCHEDULES)


def distinct_rows(columns: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Distinct rows of non-negative integer columns: [D, C], and each row's index into them: [R]."""
    first, index = first_of_each(columns)
    return np.stack([column[first] for column in columns], axis=1), index


def first_of_each(columns: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Where each distinct row of non-negative integer columns comes first: [D], and each row's index into them: [R].

    They ascend in the rows' values.  Rows are packed into one integer each, which sorts much faster than rows do.
    """
    count, sizes = len(columns[0]), [int(column.max(initial=0)) + 1 for column in columns]
    if count >= MANY_ROWS and prod(sizes) > TABLE_A_ROW * count:
        columns, sizes = _ranked(columns, sizes)
    if prod(sizes) >= 2**62:  # more than one integer holds
        _, first, index = np.unique(np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True)
        return first, index.reshape(-1)
    packed = columns[0]
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        packed = packed * size + column
    return _first_by_table(packed, prod(sizes)) if prod(sizes) <= TABLE_A_ROW * count else _first_by_sorting(packed)


def _ranked(columns: Sequence[Ints], sizes: Sequence[int]) -> tuple[list[Ints], list[int]]:
    """Columns with the rank of each value among those of its column, where few values are far apart; their sizes.

    Of degrees and micro-batches, which divide something, a table of what there is is short enough then.
    """
    ranked, counts = list(columns), list(sizes)
    for place, (column, size) in enumerate(zip(columns, sizes, strict=True)):
        if FEW_VALUES < size <= len(column):
            rank = np.cumsum(np.bincount(column) > 0) - 1
            ranked[place], counts[place] = rank[column], int(rank[-1]) + 1
    return ranked, counts


def _first_by_sorting(values: Ints) -> tuple[Ints, Ints]:
    """``first_of_each`` of one column, as ``numpy.unique`` does it."""
    order = values.argsort(kind="stable")
    ordered, begins = values[order], np.ones(len(values), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    index = np.empty(len(values), dtype=np.int64)
    index[order] = np.cumsum(begins) - 1
    return order[begins], index


def _first_by_table(values: Ints, size: int) -> tuple[Ints, Ints]:
    """``first_of_each`` of one column of values below ``size``, without sorting."""
    first = np.full(size, -1, dtype=np.int64)
    # Of several writes to one place the last one stays: the first row, when they come backwards.
    first[values[::-1]] = np.arange(len(values) - 1, -1, -1)
    found = np.flatnonzero(first >= 0)
    index = np.empty(size, dtype=np.int64)
    index[found] = np.arange(len(found))
    return first[found], index[values]


def relief_of(strategy: Strategy) -> Relief:
    """The memory relief that a strategy names."""
    return Relief(strategy.recompute, strategy.recompute_modules, strategy.activation_offload)


def _columns(strategy: Strategy, reliefs: Sequence[Relief]) -> tuple[int, ...]:
    return (
        strategy.tp,
        int(strategy.sp),
        strategy.cp,
        int(strategy.cp_kind == "ring"),
        strategy.ep,
        strategy.etp,
        strategy.pp,
        strategy.vpp,
        strategy.microbatch_group_size,
        SCHEDULE_NAMES.index(strategy.schedule),
        strategy.dp,
        strategy.micro_batch_size,
        strategy.num_microbatches,
        int(strategy.axis_order == "tp-cp-ep-pp-dp"),
        int(strategy.overlap_tp),
        int(strategy.overlap_ep),
        DISPATCHERS.index(strategy.dispatcher),
        strategy.dp_replicate,
        strategy.zero_stage,
        list(reliefs).index(relief_of(strategy)),
        int(strategy.optimizer_offload),
        int(strategy.overlap_grad_reduce),
        int(strategy.overlap_param_gather),
        int(strategy.fp8_parameters),
    )
