"""What ring context parallelism costs beside its bytes: partial kernels, merges, launches of every step.

A device attends to one block of keys and values after the other, cp blocks in all (arXiv 2310.01889).  Causal masks are
balanced by giving each rank a part of the front and the mirrored part of the back, so that every step has the same
work: of the first block half of the pairs, of any other all queries to half of the keys or half of the queries to all
keys (TransformerEngine's and PyTorch's context parallelism)::

    forward    cp kernels over s / cp tokens and fewer, and cp - 1 merges of a partial output into the running one
    backward   cp kernels likewise, and cp - 1 sums of partial gradients of queries, keys and values

A kernel runs at the rate of its own, shorter rows.  A merge rescales by the two log-sum-exps and adds: it reads the
partial result, reads and writes the running one, 16 bit each; under a causal mask half of the merges touch half of the
rows.  Nothing here is fitted.  All-to-all context parallelism holds whole rows and pays none of it.  Shape letter: K
keys.
"""

from __future__ import annotations

import numpy as np

from planner.model.operator import Operator
from planner.predict.cost.efficiency import LAUNCH_S, DeviceRates
from planner.predict.layer_keys import LayerKeys
from solver.arrays import Array

MERGED_BYTES = 6.0
"""Bytes that a merge moves for each element of a partial result."""
CAUSAL_ROWS = 0.75
"""Mean part of the rows that a merge touches under a balanced causal mask, all of them or half; and the mean of s / cp
over the causal length that a further kernel runs like: 1, or a half."""
STEP_KERNELS = 2.0
"""Launches of a further step beside the attention's own: the merge, and one group of a send and a receive."""


def further_steps(keys: LayerKeys) -> Array:
    """Steps of the ring beyond the first; 0 without a ring: [K]."""
    return np.where(keys.ring > 0, keys.cp - 1.0, 0.0)


def row_tokens(keys: LayerKeys, *, causal: bool = True) -> Array:
    """Tokens of the causal rows that run at the mean rate of the kernels: [K].

    A kernel without mask runs like causal rows of twice its keys.  The first block is causal over s / cp tokens; of the
    others half have s / 2 cp keys and half s / cp.  Rates are ``s / (s + half)``, so that lengths average harmonically:
    ``(s / cp) cp / (1 + 3/4 (cp - 1))``.  Packed documents are cut over the ring each by itself, ``s`` is then theirs.
    """
    steps = further_steps(keys)
    return keys.longest / (1.0 + (CAUSAL_ROWS if causal else 1.0) * steps)


def steps_s(operator: Operator, keys: LayerKeys, rates: DeviceRates) -> tuple[Array, Array]:
    """Seconds of merges and further launches, forward and backward, of one micro-batch: two [K]."""
    steps = further_steps(keys)
    if not np.any(steps):
        return steps, steps
    rows = keys.tokens * (CAUSAL_ROWS if operator.causal else 1.0) / keys.tp
    output = rows * operator.num_heads * operator.v_dim
    gradients = rows * operator.num_heads * operator.qk_dim
    gradients = gradients + rows * operator.num_kv_heads * (operator.qk_dim + operator.v_dim)
    # Each step launches its kernel and its merge.
    forward_s = steps * (MERGED_BYTES * output / rates.memory_bytes_per_s + 2.0 * LAUNCH_S)
    backward_s = steps * (MERGED_BYTES * gradients / rates.memory_bytes_per_s + 2.0 * LAUNCH_S)
    return forward_s, backward_s
