"""How much more attention the slowest rank has than a typical one, where sequences hold unequal documents: [R].

``e(n, N)``: of ``planner.predict.packed_rows``, ``n`` sequences a rank between two points where ``N`` ranks wait for
each other; ``b`` sequences a micro-batch, ``m`` micro-batches a step, ``p`` stages::

    data-parallel ranks     e(m b, dp)               they meet once a step
    expert parallelism      e(b, ranks that share experts)                   they meet in every layer; the larger counts
    pipeline                e(b, min(p, m)) (m - 1) / (m + 1.5 p)            micro-batches in flight pass at the pace of
                                                                             the slowest of them once the pipe is full
    ZeRO-2 and 3            e(b, ranks that shard)   gathers and reductions of every micro-batch, in place of the first

The factor of the pipeline is a fit to simulated 1F1B steps with gamma-distributed micro-batches: 0.1 off on average,
0.4 at most (2 stages), over 2 to 16 stages, p to 16 p micro-batches and spreads of 0.1 and 0.3
(``tests/unit/cost/test_packed_rows.py``).  Attention without fused kernels
computes all pairs of a sequence, whatever the documents, and is equal everywhere.
"""

from __future__ import annotations

import numpy as np

from planner.predict.packed_rows import PackedRows
from planner.question.problem import Workload
from planner.strategy.rows import StrategyRows
from solver.arrays import Array, Ints

IN_FLIGHT = 1.5
"""Stages of a pipeline, times which micro-batches have to pass before the slowest in flight sets the pace."""


def pipeline_part(stages: Ints, num_microbatches: Ints) -> Array:
    """Part of the expected slowest of the micro-batches in flight that a step shows: [R]."""
    part: Array = (num_microbatches - 1.0) / (num_microbatches + IN_FLIGHT * stages)
    return np.where(stages > 1, part, 0.0)


def uneven_attention(rows: StrategyRows, documents: PackedRows, workload: Workload) -> Array:
    """Attention of the slowest over that of a typical rank, less 1, whatever is sharded: [R]."""
    batch = rows.micro_batch_size * workload.trained.sequences_per_sample
    once = documents.waiting(batch * rows.num_microbatches, rows.dp)
    sharing = np.clip(rows.ep * rows.etp // (rows.tp * rows.cp), 1, rows.dp)
    layerwise = np.where(rows.ep > 1, documents.waiting(batch, sharing), 0.0)
    piped = documents.waiting(batch, np.minimum(rows.pp, rows.num_microbatches))
    return np.maximum(once, layerwise) + piped * pipeline_part(rows.pp, rows.num_microbatches)


def uneven_column(
    rows: StrategyRows, documents: PackedRows | None, workload: Workload
) -> tuple[Array | None, list[Ints]]:
    """Distinct values of ``uneven_attention``, and a column with the place of each row's; none without packing."""
    if documents is None:
        return None, []
    values, place = np.unique(uneven_attention(rows, documents, workload), return_inverse=True)
    return values, [place.reshape(-1)]


def sharded_attention(rows: StrategyRows, documents: PackedRows, workload: Workload) -> Array:
    """Factor on attention beyond ``uneven_attention``, where ZeRO-2 and 3 make ranks meet in every micro-batch: [R]."""
    batch = rows.micro_batch_size * workload.trained.sequences_per_sample
    met = np.where(rows.zero >= 2, documents.waiting(batch, rows.dp // rows.dp_replicate), 0.0)
    piped = documents.waiting(batch, np.minimum(rows.pp, rows.num_microbatches))
    with_sharding = met + piped * pipeline_part(rows.pp, rows.num_microbatches)
    held = uneven_attention(rows, documents, workload)
    return np.maximum((1.0 + with_sharding) / (1.0 + held), 1.0)


def with_documents(
    layer_s: tuple[Array, Array],
    attention_s: tuple[Array, Array],
    rows: StrategyRows,
    documents: PackedRows | None,
    workload: Workload,
) -> tuple[Array, Array]:
    """Forward and backward times of layers with what ``sharded_attention`` adds to their attention: two [R, N]."""
    if documents is None:
        return layer_s
    more = sharded_attention(rows, documents, workload)[:, None] - 1.0
    return layer_s[0] + more * attention_s[0], layer_s[1] + more * attention_s[1]
