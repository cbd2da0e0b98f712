"""The moments that tables and vectors keep beyond those of a matrix, where an optimizer treats them differently.

``planner.predict.memory.states`` counts every parameter as one of a matrix.  Beside that a device holds, for ``t``
parameters of tables and ``v`` of vectors on it (after tp, ep and etp)::

    t (table - matrix) + v (vector - matrix)     bytes, of moments (``planner.question.optimizers``)
    4 (rows + columns)                           of each matrix and table, where statistics are factored

split over the ranks that share the optimizer from ZeRO-1 on; none on the device when the optimizer is on the host.  Row
and column statistics are counted as split, too: they are some thousandths of a byte a parameter.  Weights that do not
learn keep nothing; vectors of vision towers and of multi-token prediction count as their matrices do.

Shape letters: K keys, N layer kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.model.operator import Operator
from planner.model.operators import embedding_operators, head_operators, layer_operators
from planner.model.spec import ModelSpec
from planner.predict.layer_keys import LayerKeys
from planner.predict.memory.backward import local_parameters
from planner.predict.trained_operators import trained_operators
from planner.question.optimizers import OPTIMIZERS, Optimizer
from planner.question.problem import Workload
from solver.arrays import Array

STATISTIC_BYTES = 4.0
TABLES = frozenset({"token_embedding", "position_embedding", "lm_head"})


@dataclass(frozen=True, slots=True)
class FurtherMoments:
    """Bytes before any sharding over data-parallel ranks: of layers [K, N], of the ends [K]."""

    dense: Array
    expert: Array
    embedding: Array
    head: Array
    table_bytes: float
    """More that a parameter of a second copy of the token table keeps than one of a matrix."""


def further_moments(model: ModelSpec, workload: Workload, keys: LayerKeys) -> FurtherMoments | None:
    """What the workload's optimizer keeps so; None where every parameter keeps the same."""
    optimizer, training = OPTIMIZERS[workload.optimizer], workload.trained
    if optimizer.uniform:
        return None
    kinds = [trained_operators(layer_operators(model, kind), training) for kind in range(len(model.layer_kinds))]
    dense, expert = (
        np.stack([_bytes([op for op in each if _is_expert(op) is wanted], optimizer, keys) for each in kinds], axis=1)
        for wanted in (False, True)
    )
    ends = (embedding_operators(model), head_operators(model))
    embedding, head = (_bytes(trained_operators(each, training), optimizer, keys) for each in ends)
    return FurtherMoments(dense, expert, embedding, head, optimizer.table_bytes - optimizer.matrix_bytes)


def matrix_of(operator: Operator) -> tuple[int, int, int]:
    """Number, rows and columns of the matrices of an operator, unsharded; none where it has no matrix."""
    if operator.frozen or not operator.parameters or not operator.in_features:
        return 0, 0, 0
    if operator.op_class == "grouped_matmul":
        return operator.num_experts, operator.in_features, operator.out_features
    whole = operator.op_class in ("matmul", "router") and operator.in_features * operator.out_features
    return (1, operator.in_features, operator.out_features) if 0 < whole <= operator.parameters else (0, 0, 0)


def _is_expert(operator: Operator) -> bool:
    return operator.shard.startswith("expert")


def _bytes(operators: Sequence[Operator], optimizer: Optimizer, keys: LayerKeys) -> Array:
    """Further bytes of some operators: [K]."""
    found: Array = np.zeros(len(keys))
    for operator in operators:
        if operator.frozen or not operator.parameters:
            continue
        if operator.name in TABLES:
            found = found + (optimizer.table_bytes - optimizer.matrix_bytes) * local_parameters(operator, keys)
            continue
        count, rows, columns = matrix_of(operator)
        vectors = operator.parameters - count * rows * columns
        whole = min(vectors, operator.replicated_parameters)
        left = replace(operator, parameters=vectors, replicated_parameters=whole)
        found = found + (optimizer.vector_bytes - optimizer.matrix_bytes) * local_parameters(left, keys)
        if optimizer.factored:
            split = keys.ep if operator.op_class == "grouped_matmul" else 1.0
            found = found + STATISTIC_BYTES * count * (rows + columns) / split
    return found
