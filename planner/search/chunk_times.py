"""The time of each model chunk on a micro-batch, for one dealing of the layers or for many of one strategy.

A chunk takes what its layers take, and what their relief adds; the embedding stands on the first chunk, the head on the
last, and what a stage loses on every micro-batch (``stage_host_s``, ``regather_s``) is shared by its chunks alike.
Shape letters: F dealings, C chunks, P stages.
"""

from __future__ import annotations

import numpy as np

from planner.predict.cost.row_cost import RowCost
from planner.predict.schedule.paths import ChunkTimes
from planner.search.row_context import RowContext
from solver.arrays import Array, Ints

HOST_FORWARD_SHARE = 1.0 / 3.0
"""Part of a stage's host overhead in its forward pass: the backward pass launches about twice as many kernels."""


def chunk_times(context: RowContext, sizes: Ints, relieved: Ints) -> ChunkTimes:
    """Times of every chunk: [..., C] each, of dealings ``sizes`` [..., C] with ``relieved`` [..., P] layers a chunk."""
    prefix, strategy = context.prefix, context.strategy
    stops = np.cumsum(sizes, axis=-1)
    starts = stops - sizes
    stages = np.array([strategy.chunk_stage(chunk) for chunk in range(strategy.num_chunks)])
    again = starts + np.minimum(relieved[..., stages], sizes)
    ends_s = end_times(context, strategy.num_chunks)

    def over(column: Array, ends: Ints = stops) -> Array:
        spans: Array = column[ends] - column[starts]
        return spans

    forward_s = over(prefix.forward_s) + ends_s[0]
    backward_s = over(prefix.backward_s) + over(prefix.relief_s, again) + ends_s[1]
    return ChunkTimes(forward_s, backward_s, over(prefix.weight_gradient_s) + ends_s[2])


def end_times(context: RowContext, chunks: int) -> tuple[Array, Array, Array]:
    """Forward, backward and weight-gradient seconds of each chunk beside those of its layers: [C] each."""
    cost, table = context.cost, context.table
    host_s = float(cost.stage_host_s[0] + cost.regather_s[0]) / context.strategy.vpp
    forward_s = np.full(chunks, HOST_FORWARD_SHARE * host_s)
    backward_s, gradient_s = np.full(chunks, (1.0 - HOST_FORWARD_SHARE) * host_s), np.zeros(chunks)
    for chunk, part, seconds in (
        (0, table.embedding, (cost.embedding_forward_s, cost.embedding_backward_s)),
        (-1, table.head, (cost.head_forward_s, cost.head_backward_s)),
    ):
        forward_s[chunk] += seconds[0][0]
        backward_s[chunk] += seconds[1][0]
        gradient_s[chunk] += part.weight_gradient_s[context.key]
    return forward_s, backward_s, gradient_s


def weight_gradients_s(cost: RowCost, kind_counts: Array) -> Array:
    """Weight gradients of one micro-batch in ``kind_counts`` [N] layers and both ends, where split off: [R]."""
    ends_s = cost.embedding_weight_gradient_s + cost.head_weight_gradient_s
    return np.asarray(cost.layer_weight_gradient_s @ kind_counts + ends_s)
