"""The memory in use on a device while one layer runs backward, beyond what the layer kept.

Operators go back in reverse order.  When operator j runs, what the operators after it kept is gone, what j and those
before it kept is still there, and three kinds of gradients exist beside it::

    alive_j = sum_{i <= j} kept_i  +  stream + out_j + in_j  +  sum_{i >= j} 2 parameters_i
    working = max_j alive_j - sum_i kept_i

``stream``: gradient of the residual stream, which passes by every branch.  ``out_j`` and ``in_j``: gradients of what j
wrote and read.  The last sum: 16-bit gradients of the weights, whole until the layer's backward pass has ended.

A matmul that reads a branch's input reads it whole, on every tensor-parallel rank, and so makes a whole gradient of it;
several of them (queries, keys, values; gate and up) make one each, of which two and their sum are there at once.  Under
sequence parallelism the input itself is gathered again, and a row-parallel matmul gathers its output's gradient
(Korthikanti et al., arXiv 2205.05198, section 4.2.2).  A row-parallel matmul without sequence parallelism, and a
residual sum, pass the stream's own gradient on.

Shape letter: K keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from planner.model.operator import Operator
from planner.predict.layer_keys import LayerKeys
from planner.predict.memory.activations import ELEMENT_BYTES, saved_bytes_of_operator
from planner.predict.memory.exchange_buffers import passing_exchange_bytes
from planner.predict.memory.framework_memory import gates_by_name
from solver.arrays import Array

WEIGHT_GRADIENT_BYTES = 2.0
SUMMED_GRADIENTS = 3.0
"""Gradients of one tensor alive while several are added: two, and their sum."""


def local_parameters(operator: Operator, keys: LayerKeys) -> Array:
    """Parameters of one operator on one device, before any sharding over data-parallel ranks: [K]."""
    split = operator.parameters - operator.replicated_parameters
    if operator.shard.startswith("expert"):
        return split / (keys.ep * keys.etp) + operator.replicated_parameters / keys.ep
    if operator.shard in ("column", "row", "heads", "features", "vocabulary"):
        return split / keys.tp + operator.replicated_parameters
    return np.full(len(keys), float(operator.parameters))


def backward_working_bytes(operators: Sequence[Operator], keys: LayerKeys, hidden_size: int) -> Array:
    """Bytes alive at the fullest moment of a layer's backward pass beyond what the layer keeps: [K]."""
    if not operators:
        return np.zeros(len(keys))
    gates = gates_by_name(operators)
    paired = {gate.saved_from for gate in gates.values()}
    so_far = list(accumulate(_kept_by_reader(operators, gates, keys)))
    each_bytes = [0.0 if operator.frozen else WEIGHT_GRADIENT_BYTES for operator in operators]
    weights = [size * local_parameters(operator, keys) for size, operator in zip(each_bytes, operators, strict=True)]
    after = list(accumulate(reversed(weights)))[::-1]
    stream = ELEMENT_BYTES * hidden_size * keys.tokens / keys.sequence_split
    alive = [
        before + stream + _gradients(operator, keys, several=operator.name in paired) + made
        for operator, before, made in zip(operators, so_far, after, strict=True)
    ]
    working: Array = np.maximum(np.max(alive, axis=0) - so_far[-1], 0.0)
    return working


def _kept_by_reader(operators: Sequence[Operator], gates: Mapping[str, Operator], keys: LayerKeys) -> list[Array]:
    """Bytes kept for each operator; what an unfused gate wrote is kept for the product, which runs with the gate."""
    kept = {operator.name: saved_bytes_of_operator(operator, keys) for operator in operators}
    for operator in operators:
        beyond = operator.saved_width - operator.read_width
        if operator.saved_from in gates and beyond > 0:
            moved = kept[operator.name] * beyond / operator.saved_width
            kept[operator.name] = kept[operator.name] - moved
            kept[operator.saved_from] = kept[operator.saved_from] + moved
    return list(kept.values())


def _gradients(operator: Operator, keys: LayerKeys, *, several: bool) -> Array:
    """Gradients of what an operator wrote and read, beside the stream's: [K].  ``several`` matrices read its input."""
    token = ELEMENT_BYTES * keys.tokens
    gathers = (keys.tp > 1) & (keys.sp > 0)
    if operator.shard == "row":
        return token * (operator.read_width / keys.tp + np.where(gathers, operator.write_width, 0.0))
    if operator.shard == "column":
        inputs = SUMMED_GRADIENTS if several or operator.num_kv_heads else 1.0
        return token * (operator.write_width / keys.tp + operator.read_width * (inputs + gathers))
    if operator.op_class == "residual":
        return np.zeros(len(keys))
    if operator.op_class == "permute":
        return passing_exchange_bytes(operator, keys)
    split = keys.tp if operator.shard in ("heads", "features") else keys.sequence_split
    return token * (operator.read_width + operator.write_width) / split
