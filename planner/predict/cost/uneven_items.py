"""How many more images or clips the fullest rank has than a typical one, where samples have unequal numbers: [R].

In units of the variation (deviation over mean) of one sample; ``E(N)``: the expected largest of ``N`` normal values::

    data-parallel ranks     E(dp) / sqrt(m b)              they meet once a step, with m b samples each
    pipeline                E(min(p, m)) / sqrt(b) part    micro-batches in flight pass at the pace of the fullest of
                                                           them once the pipe is full (``uneven_rows.pipeline_part``)

Their sum stands in ``LayerKeys.spread``, for the towers of all modalities.
"""

from __future__ import annotations

import numpy as np

from planner.predict.cost.uneven_rows import pipeline_part
from planner.predict.order_statistics import expected_maximum
from planner.question.item_counts import SURELY, ItemCounts
from planner.question.problem import Workload
from planner.strategy.rows import StrategyRows
from solver.arrays import Array, Ints


def item_spread(rows: StrategyRows, workload: Workload) -> Array:
    """Items of the fullest over those of a typical rank, less 1, over the variation of a sample: [R]."""
    batch = rows.micro_batch_size * workload.trained.sequences_per_sample
    once = _largest(rows.dp) / np.sqrt(batch * rows.num_microbatches)
    piped = _largest(np.minimum(rows.pp, rows.num_microbatches)) / np.sqrt(batch)
    spread: Array = once + piped * pipeline_part(rows.pp, rows.num_microbatches)
    return spread


def spread_column(rows: StrategyRows, workload: Workload) -> tuple[Array, list[Ints]]:
    """Distinct values of ``item_spread``, and a column with the place of each row's; none of equal samples."""
    if not workload.counted:
        return np.zeros(1), []
    values, place = np.unique(item_spread(rows, workload), return_inverse=True)
    return values, [place.reshape(-1)]


def fullest_items(counts: ItemCounts | None, samples: Array) -> Array:
    """Items of the fullest micro-batch over those of a typical one, for so many samples in it: what memory is for.

    One in a million has more; none has more than every sample's most.
    """
    if counts is None:
        return np.ones(np.shape(samples))
    surely = 1.0 + SURELY * counts.variation / np.sqrt(samples)
    return np.minimum(surely, counts.most / counts.expected)


def _largest(ranks: Ints) -> Array:
    values, place = np.unique(ranks, return_inverse=True)
    return np.array([expected_maximum(int(each)) for each in values])[place.reshape(-1)]
