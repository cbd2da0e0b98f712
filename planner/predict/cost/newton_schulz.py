"""The seconds in which Muon orthogonalizes the momentum of a layer's matrices.

A matrix with ``s`` rows and ``l >= s`` columns (transposed where it is taller) goes through five iterations

    A = X X^T,  B = b A + c A A,  X = a X + B X           4 s s l + 2 s s s FLOPs each

with 16-bit operands (torch 2.13.0 optim/_muon.py; emerging_optimizers orthogonalized_optimizers/muon_utils.py, where
``fp32_matmul_prec`` medium casts to bf16).  DeepSpeed's default iterates on ``X X^T`` instead (0.19.8
runtime/zero/muon/original_muon.py, zeropower_via_gram_newtonschulz): 8 s s l + 28 s s s FLOPs in all, and the five
iterations above for square matrices.

Every rank needs whole matrices, after tensor and expert parallelism (Megatron's ``--muon-tp-mode blockwise`` takes the
local block).  From ZeRO-1 on the data-parallel ranks share the matrices out: Megatron's layer-wise optimizer by size,
DeepSpeed's stages 1 and 2 by partition, stage 3 in turn; a rank then has its part of the work, and no less than the
longest matrix.  Below ZeRO-1 every rank does all of it.

The part of a stage goes by its parameters, ends included: right for a model in one stage, and a mean over stages in a
pipeline.  Gate and up of a gated MLP are one matrix here, and so are query, key and value, which Megatron splits before
it iterates.  Not counted: the collectives that bring whole gradients and momenta to a rank under ZeRO-3, and matrices
of vision towers.

Shape letters: K keys, N layer kinds, R rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.model.operator import Operator
from planner.model.operators import layer_operators
from planner.model.spec import ModelSpec
from planner.predict.cost.further_moments import matrix_of
from planner.predict.cost.hardware import Hardware
from planner.predict.cost.model_cost import ModelCost
from planner.predict.cost.step_payload import DataParallelism, Orthogonalization
from planner.predict.layer_keys import LayerKeys
from planner.predict.trained_operators import trained_operators
from planner.question.optimizers import OPTIMIZERS
from planner.question.problem import Workload
from solver.arrays import Array, Ints, Mask

ITERATIONS = 5.0
GRAM_WIDE_PRODUCTS, GRAM_SQUARE_PRODUCTS = 4.0, 14.0
"""Products with the whole matrix, and of its Gram matrix with its like, in DeepSpeed's form of five iterations."""


@dataclass(frozen=True, slots=True)
class OrthogonalizationTable:
    """Seconds of all matrices of each layer kind, and of the longest one, on one device: dense and expert, [K, N]."""

    dense_s: Array
    expert_s: Array
    longest_dense_s: Array
    longest_expert_s: Array


def with_orthogonalization(
    parallels: tuple[DataParallelism, DataParallelism],
    costs: tuple[ModelSpec, Workload, Hardware],
    cost: ModelCost,
    key: Ints,
    shared_table: Mask,
) -> tuple[DataParallelism, DataParallelism]:
    """Dense and expert parameters with what their update computes; as they are where it takes no matrices whole.

    ``shared_table``: rows in which the head's copy of the token table is not billed.
    """
    model, workload, hardware = costs
    if not OPTIMIZERS[workload.optimizer].orthogonalizes:
        return parallels
    table, layers = orthogonalization_table(model, workload, hardware, cost.keys), cost.layers
    kind_counts = np.bincount(model.layer_kind_sequence(), minlength=len(model.layer_kinds)).astype(float)
    ends = cost.embedding.dense_parameters + cost.head.dense_parameters, cost.head.expert_parameters
    found = []
    for seconds, longest_s, parameters, end in (
        (table.dense_s, table.longest_dense_s, layers.dense_parameters, ends[0]),
        (table.expert_s, table.longest_expert_s, layers.expert_parameters, ends[1]),
    ):
        billed = (parameters @ kind_counts + end)[key]
        if end is ends[0]:
            billed = billed - np.where(shared_table, cost.table_copy_parameters[key], 0.0)
        each_s = (seconds @ kind_counts)[key] / np.maximum(billed, 1.0)
        found.append(Orthogonalization(each_s, longest_s.max(axis=1)[key]))
    dense, expert = (replace(each, orthogonalization=of) for each, of in zip(parallels, found, strict=True))
    return dense, expert


def orthogonalization_table(
    model: ModelSpec, workload: Workload, hardware: Hardware, keys: LayerKeys
) -> OrthogonalizationTable:
    """Seconds of each layer kind."""
    parts: list[list[Array]] = [[], [], [], []]
    for kind in range(len(model.layer_kinds)):
        operators = trained_operators(layer_operators(model, kind), workload.trained)
        for index, experts in enumerate((False, True)):
            total_s, longest_s = _seconds([op for op in operators if _is_expert(op) is experts], keys, hardware)
            parts[index].append(total_s)
            parts[index + 2].append(longest_s)
    return OrthogonalizationTable(*(np.stack(each, axis=1) for each in parts))


def _is_expert(operator: Operator) -> bool:
    return operator.shard.startswith("expert")


def _seconds(operators: Sequence[Operator], keys: LayerKeys, hardware: Hardware) -> tuple[Array, Array]:
    """Seconds of all matrices of some operators, and of the longest: two [K]."""
    total_s = longest_s = np.zeros(len(keys))
    for operator in operators:
        count, rows, columns = matrix_of(operator)
        if not count:
            continue
        tall, wide, copies = np.full(len(keys), float(rows)), np.full(len(keys), float(columns)), np.ones(len(keys))
        if _is_expert(operator):
            tall, wide = _cut(tall, wide, operator.shard == "expert_column", keys.etp)
            copies = count / keys.ep
        elif operator.shard in ("column", "row"):
            tall, wide = _cut(tall, wide, operator.shard == "column", keys.tp)
        one_s = matrix_s(np.minimum(tall, wide), np.maximum(tall, wide), hardware)
        total_s, longest_s = total_s + copies * one_s, np.maximum(longest_s, one_s)
    return total_s, longest_s


def _cut(rows: Array, columns: Array, by_columns: bool, ways: Array) -> tuple[Array, Array]:
    return (rows, columns / ways) if by_columns else (rows / ways, columns)


def matrix_s(short: Array, long: Array, hardware: Hardware) -> Array:
    """Seconds to orthogonalize a matrix with these sides: [K]."""
    product, factor = hardware.rates.wide_matmul_s, hardware.factors.compute
    wide_s, square_s = product(short, long, short), product(short, short, short)
    plain_s = ITERATIONS * (product(short, short, long) + square_s + wide_s)
    if hardware.physics.newton_schulz == "standard":
        return factor * plain_s
    half = GRAM_WIDE_PRODUCTS / 2.0
    gram_s = half * (product(short, short, long) + wide_s) + GRAM_SQUARE_PRODUCTS * square_s
    return factor * np.where(long > short, gram_s, plain_s)
