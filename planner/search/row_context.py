"""What the exact inner search knows about one strategy: its row, its costs, and running sums along the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np

from planner.predict.cost.hardware import Hardware
from planner.predict.cost.model_cost import ModelCost
from planner.predict.cost.row_cost import CostModel, RowCost
from planner.predict.stage_memory import StageMemory, end_seconds, head_stage, stage_memory
from planner.question.problem import Problem
from planner.strategy.rows import StrategyRows, relief_of
from planner.strategy.strategy import Relief, Strategy
from solver.arrays import Array, Ints

Columns = TypeVar("Columns")


def take(columns: Columns, at: Ints | slice) -> Columns:
    """Rows ``at`` of a dataclass of arrays, nested dataclasses included."""
    kind: Any = type(columns)
    # Nearly every column is an array, and there are a hundred of them: no call of ours for each.
    values = _values_of(kind)(columns)
    if isinstance(at, slice):
        part: Columns = kind(*[value[at] if type(value) is np.ndarray else _taken(value, at) for value in values])
        return part
    # As ``rows_at`` where a column has a second axis.
    picked: Columns = kind(
        *[
            (value[at] if value.ndim == 1 else value.take(at, axis=0))
            if type(value) is np.ndarray
            else _taken(value, at)
            for value in values
        ]
    )
    return picked


def _taken(value: Any, at: Ints | slice) -> Any:
    return None if value is None else take(value, at)


@cache
def _values_of(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    """All columns of a dataclass, which has several."""
    return attrgetter(*_names(kind))


def joined(parts: Sequence[Columns]) -> Columns:
    """All rows of several dataclasses of arrays, one after the other, nested dataclasses included."""
    kind: Any = type(parts[0])
    columns: Columns = kind(*(_joined([getattr(part, name) for part in parts]) for name in _names(kind)))
    return columns


def _joined(values: Sequence[Any]) -> Any:
    if isinstance(values[0], np.ndarray):
        return np.concatenate(values)
    return None if values[0] is None else joined(values)


@cache
def _names(kind: type) -> tuple[str, ...]:
    """Columns of a dataclass: asked for thousands of times a search."""
    return tuple(field.name for field in fields(kind))


@dataclass(frozen=True, slots=True)
class Prefix:
    """Running sums of layer columns along the model: float64[L + 1] each."""

    forward_s: Array
    backward_s: Array
    weight_gradient_s: Array
    tp_s: Array
    cp_s: Array
    ep_s: Array
    compute_s: Array
    host_s: Array
    relief_s: Array
    saved_bytes: Array
    saving_bytes: Array
    dense: Array
    expert: Array
    frozen_bytes: Array
    moments_bytes: Array
    """Of ``frozen_bytes``, what is further moments of the optimizer."""


@dataclass(frozen=True, slots=True)
class RowContext:
    """One row (arrays of length one) with everything derived from it; ``key`` indexes ``table``."""

    costs: CostModel
    table: ModelCost
    row: StrategyRows
    cost: RowCost
    strategy: Strategy
    memory: StageMemory
    prefix: Prefix
    ends_s: Array
    head_stage: int

    @property
    def key(self) -> int:
        """Sharding key in ``table``."""
        return int(self.cost.key[0])


def row_context(costs: CostModel, table: ModelCost, row: StrategyRows, cost: RowCost) -> RowContext:
    """Derive the context of a single row from batch columns taken at that row."""
    stages, cost = int(row.pp[0]), cost.under_schedules(row)
    return RowContext(
        costs=costs,
        table=table,
        row=row,
        cost=cost,
        strategy=row.strategy(0, costs.reliefs),
        memory=stage_memory(row, cost, costs.reliefs, stages),
        prefix=_prefix(costs, table, cost),
        ends_s=end_seconds(row, cost, stages)[0],
        head_stage=int(head_stage(row, stages)[0]),
    )


def without_relief(context: RowContext) -> RowContext:
    """The same strategy with nothing recomputed and no activations offloaded: the first relief of every list."""
    row = replace(context.row, relief=np.zeros_like(context.row.relief))
    return row_context(context.costs, context.table, row, context.costs.rows(row, (context.table, context.cost.key)))


def _prefix(costs: CostModel, table: ModelCost, cost: RowCost) -> Prefix:
    kinds = np.array(costs.kind_sequence)
    layers, key = table.layers, int(cost.key[0])
    by_kind = Prefix(
        forward_s=cost.layer_forward_s[0],
        backward_s=cost.layer_backward_s[0],
        weight_gradient_s=cost.layer_weight_gradient_s[0],
        tp_s=layers.tp_s[key],
        cp_s=layers.cp_s[key],
        ep_s=layers.ep_s[key],
        compute_s=layers.compute_s[key],
        host_s=layers.host_s[key],
        relief_s=cost.relief_s[0],
        saved_bytes=cost.saved_bytes[0],
        saving_bytes=cost.saved_bytes[0] - cost.relieved_bytes[0],
        dense=cost.layer_dense[0],
        expert=cost.layer_expert[0],
        frozen_bytes=cost.frozen.layer[0],
        moments_bytes=cost.frozen.moments_layer[0],
    )
    columns = np.array(_values_of(Prefix)(by_kind))
    running = np.zeros((len(columns), len(kinds) + 1))
    np.cumsum(columns[:, kinds], axis=1, out=running[:, 1:])
    return Prefix(*running)


def strategy_context(problem: Problem, hardware: Hardware, strategy: Strategy) -> RowContext:
    """Costs of one legal strategy; an illegal one has degrees that divide by zero."""
    row, reliefs = strategy_row(strategy)
    costs = CostModel(problem.model, problem.workload, hardware, reliefs)
    keyed = costs.keyed(row)
    return row_context(costs, keyed[0], row, costs.rows(row, keyed))


def strategy_row(strategy: Strategy) -> tuple[StrategyRows, tuple[Relief, ...]]:
    """The strategy as one row, and the reliefs that the row counts."""
    reliefs = tuple(dict.fromkeys([Relief(), relief_of(strategy)]))
    return StrategyRows.of([strategy], reliefs), reliefs
