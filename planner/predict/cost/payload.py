"""The bytes of each collective of a micro-batch, and how often a pass runs it.

One place for what is sent: ``planner.predict.cost.layer`` and ``planner.predict.cost.model_cost`` turn these sizes into
seconds, ``planner.plan.communication_bill`` adds them up.  Sizes follow ``planner.predict.collective``: all_reduce the
tensor, all_gather the gathered output, reduce_scatter the input, all_to_all what one rank holds before the exchange.

Counts of one layer (Korthikanti et al., arXiv 2205.05198, section 4.2.2): each row-parallel matmul ends in one
all_reduce, forward and backward; under sequence parallelism in a reduce_scatter and an all_gather, and the backward
pass gathers the kept, split input once more.  Shape letter: K keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from planner.model.operator import SCANS, Operator
from planner.predict.collective import Collective
from planner.predict.distinct_parts import distinct_parts, routing_of
from planner.predict.layer_keys import LayerKeys
from planner.predict.memory.framework_kept import separate_outputs
from planner.strategy.strategy import Relief
from solver.arrays import Array

TrafficAxis = Literal["tp", "cp", "ep", "etp", "dp_shard", "dp_replicate", "edp_shard", "edp_replicate", "pp"]
"""Axes of ``planner.strategy.mesh``; dp_shard holds the context-parallel ranks too, edp_* are those of the experts."""

ELEMENT_BYTES = 2.0
"""Hidden states, keys, values and their gradients travel at 16 bit."""
NARROW_DISPATCH_FRACTION = (1.0 + 4.0 / 128.0) / ELEMENT_BYTES
"""Of 16-bit hidden states, what a token dispatched in 8 bit takes: an element a byte, and an fp32 scale for 128."""
RING_BACKWARD = 2.0
"""Rounds of the ring in the backward pass: keys and values go around again, with their gradients."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One kind of collective of one operator, and how often one micro-batch runs it forward and backward: [K]."""

    axis: TrafficAxis
    operation: Collective
    size_bytes: Array
    group_size: Array
    forward: Array
    backward: Array


def reduced_bytes(operator: Operator, keys: LayerKeys) -> Array:
    """Output of a row-parallel matmul, summed over tp: [K]."""
    return keys.tokens * operator.out_features * ELEMENT_BYTES


def gathered_bytes(size_bytes: Array, *, narrow: float) -> Array:
    """What sequence parallelism gathers for a tensor of ``size_bytes`` at 16 bit: [K].

    ``narrow``: bytes of an element of narrow matmuls, 0 = 16 bit.  TransformerEngine casts before it gathers
    (pytorch/distributed.py, ``gather_along_first_dim``); sums stay in 16 bit.
    """
    return narrow / ELEMENT_BYTES * size_bytes if narrow else size_bytes


def vocabulary_bytes(keys: LayerKeys, hidden_size: int) -> Array:
    """Hidden-wide rows that a vocabulary-split table sums over tp, once a micro-batch: [K]."""
    return keys.tokens * hidden_size * ELEMENT_BYTES


def key_value_bytes(operator: Operator, keys: LayerKeys) -> Array:
    """Keys and values of this rank's tokens, which the ring passes around: [K]."""
    return keys.tokens * _key_value_heads(operator, keys) * (operator.qk_dim + operator.v_dim) * ELEMENT_BYTES


def exchanged_bytes(operator: Operator, keys: LayerKeys) -> tuple[Array, Array]:
    """What all-to-all context parallelism trades: queries with outputs, and keys with values: two [K].

    After the exchange each device holds whole heads; with fewer key/value heads than cp, every device needs one all
    the same, so heads are sent several times.
    """
    heads = _key_value_heads(operator, keys)
    sent = key_value_bytes(operator, keys) / heads * np.maximum(heads, keys.cp)
    width = operator.qk_dim + operator.v_dim
    return keys.tokens * operator.num_heads / keys.tp * width * ELEMENT_BYTES, sent


def scanned_bytes(operator: Operator, keys: LayerKeys) -> tuple[Array, Array]:
    """What a scan trades for whole sequences under context parallelism of either kind: inputs, and outputs: two [K]."""
    each = keys.tokens / keys.tp * ELEMENT_BYTES
    return each * operator.read_width, each * operator.write_width


def token_bytes(operator: Operator, keys: LayerKeys) -> Array:
    """Hidden states of the tokens that this rank routes, once, at 16 bit: [K]."""
    return keys.tokens / keys.sequence_split * operator.out_features * ELEMENT_BYTES


def routed_bytes(operator: Operator, keys: LayerKeys) -> Array:
    """The same, once for each of their experts: [K]."""
    return token_bytes(operator, keys) * operator.tokens_per_token


def gathered_token_bytes(operator: Operator, keys: LayerKeys) -> tuple[Array, Array]:
    """Tokens of all ranks that share the experts, as they are gathered, and their fp32 sums: two [K].

    Megatron-Core scatters the sums in the routing probabilities' fp32 (core 0.19.2
    transformer/moe/token_dispatcher.py:361-366), and gathers their gradients in it.
    """
    whole = token_bytes(operator, keys) * keys.ep * keys.etp
    return whole, 2.0 * whole


def dispatched_fraction(*, narrow: bool, eight_bit: bool) -> float:
    """Of 16-bit hidden states, what a dispatch carries: 8 bit and scales where the back-end and the run have them."""
    return NARROW_DISPATCH_FRACTION if narrow and eight_bit else 1.0


def ends_experts(operator: Operator) -> bool:
    """Whether the operator is the last matmul of routed experts, where their exchange is counted."""
    return operator.shard == "expert_row" and operator.op_class == "grouped_matmul"


def runs_again(axis: TrafficAxis, operator: str, relief: Relief, replayed: frozenset[str]) -> bool:
    """Whether a replay of the operators ``replayed`` repeats the forward collectives of one operator.

    The reduction of a replayed row-parallel matmul, the exchange of a replayed mixture, everything of a whole layer.
    """
    if relief.recompute == "full":
        return True
    if axis == "tp":
        return operator in replayed
    return axis in ("ep", "etp") and "moe" in relief.modules


def exchanges(
    operator: Operator, keys: LayerKeys, *, narrow: float, column_reductions: float = 1.0, dispatched: float = 1.0
) -> tuple[Exchange, ...]:
    """Every collective of one operator of a layer; counts are zero where a key does not use it.

    ``narrow``: as of ``gathered_bytes``; ``dispatched``: ``dispatched_fraction``.
    """
    if operator.shard == "row":
        return _row_exchanges(operator, keys, column_reductions, narrow=narrow)
    if operator.op_class == "attention" and not operator.of_source:
        return _context_exchanges(operator, keys)
    if operator.op_class in SCANS:
        one = np.ones(len(keys))
        return tuple(Exchange("cp", "all_to_all", size, keys.cp, one, one) for size in scanned_bytes(operator, keys))
    if ends_experts(operator):
        return _expert_exchanges(operator, keys, dispatched)
    return ()


def column_reductions(operators: Sequence[Operator]) -> dict[str, float]:
    """Column-parallel matmuls before each row-parallel one, by its name: a fused qkv is three, a gated up is two.

    So often a back-end with ``reduces_each_column`` sums an input gradient in the backward pass.
    """
    counts: dict[str, float] = {}
    found = 0
    for operator in operators:
        if operator.shard == "row":
            counts[operator.name], found = float(max(found, 1)), 0
        elif operator.shard == "column" and operator.op_class == "matmul":
            found += len(separate_outputs(operator, operators))
    return counts


def vocabulary_exchanges(keys: LayerKeys, hidden_size: int, *, forward: bool) -> tuple[Exchange, ...]:
    """Sum of a vocabulary-split table's rows: forward after the embedding, backward before the head.

    Sequence parallelism cuts the all_reduce into its two halves, one in each direction, at the same price.
    """
    size, whole, split = vocabulary_bytes(keys, hidden_size), _where(keys.sp == 0), _where(keys.sp > 0)
    none = np.zeros(len(keys))
    return (
        Exchange("tp", "all_reduce", size, keys.tp, *((whole, none) if forward else (none, whole))),
        Exchange("tp", "reduce_scatter", size, keys.tp, *((split, none) if forward else (none, split))),
        Exchange("tp", "all_gather", size, keys.tp, *((none, split) if forward else (split, none))),
    )


def _row_exchanges(operator: Operator, keys: LayerKeys, backward: float, *, narrow: float) -> tuple[Exchange, ...]:
    size, whole, split = reduced_bytes(operator, keys), _where(keys.sp == 0), _where(keys.sp > 0)
    return (
        Exchange("tp", "all_reduce", size, keys.tp, whole, backward * whole),
        Exchange("tp", "reduce_scatter", size, keys.tp, split, split),
        Exchange("tp", "all_gather", gathered_bytes(size, narrow=narrow), keys.tp, split, 2.0 * split),
    )


def _context_exchanges(operator: Operator, keys: LayerKeys) -> tuple[Exchange, ...]:
    ring, trade = _where(keys.ring > 0), _where(keys.ring == 0)
    around = key_value_bytes(operator, keys) * keys.cp
    traded = tuple(
        Exchange("cp", "all_to_all", size, keys.cp, trade, trade) for size in exchanged_bytes(operator, keys)
    )
    return (Exchange("cp", "all_gather", around, keys.cp, ring, RING_BACKWARD * ring), *traded)


def _expert_exchanges(operator: Operator, keys: LayerKeys, dispatched: float) -> tuple[Exchange, ...]:
    """Dispatch and combine each way, counted as one kind where both carry the same; a gather and a scatter over etp."""
    size, one = routed_bytes(operator, keys), _where(~keys.gathered)
    gathered = size * keys.etp
    reached = distinct_parts(routing_of(operator), keys.ep) / operator.tokens_per_token
    sent = size * np.where(keys.once, reached, 1.0)
    parts, times = ((1.0,), 2.0 * one) if dispatched == 1.0 else ((dispatched, 1.0), one)
    return (
        *(Exchange("ep", "all_to_all", part * sent, keys.ep, times, times) for part in parts),
        Exchange("etp", "all_gather", gathered, keys.etp, one, one),
        Exchange("etp", "reduce_scatter", gathered, keys.etp, one, one),
        *_gathered_exchanges(operator, keys),
    )


def _gathered_exchanges(operator: Operator, keys: LayerKeys) -> tuple[Exchange, ...]:
    """Tokens gathered and sums scattered forward, each way back in the backward pass, where a key does so."""
    if not keys.gathered.any():
        return ()
    (tokens, sums), ranks = gathered_token_bytes(operator, keys), keys.ep * keys.etp
    yes, no = _where(keys.gathered), np.zeros(len(keys))
    return (
        Exchange("ep", "all_gather", tokens, ranks, yes, no),
        Exchange("ep", "reduce_scatter", sums, ranks, yes, no),
        Exchange("ep", "reduce_scatter", tokens, ranks, no, yes),
        Exchange("ep", "all_gather", sums, ranks, no, yes),
    )


def repeated(found: Sequence[Exchange], times: float) -> tuple[Exchange, ...]:
    """The same collectives, ``times`` as often."""
    return tuple(
        Exchange(
            each.axis, each.operation, each.size_bytes, each.group_size, times * each.forward, times * each.backward
        )
        for each in found
    )


def _key_value_heads(operator: Operator, keys: LayerKeys) -> Array:
    return np.maximum(operator.num_kv_heads / keys.tp, 1.0)


def _where(condition: NDArray[np.bool_]) -> Array:
    return condition.astype(np.float64)
