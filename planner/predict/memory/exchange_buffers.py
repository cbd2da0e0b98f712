"""The memory that the exchange of routed tokens takes on the hottest rank, by the dispatcher that sends them.

With ``T`` tokens of a rank (after sequence parallelism) of ``b = 2 h`` bytes (``h``: the latent width, where experts
have one), ``k`` experts a token, ``u`` tokens of the hottest rank over the mean, and the degrees ep and etp::

                while a layer exchanges                              all the time
    alltoall    (3 k + 1) T b u, or with etp > 1 k T b u (3 etp + 2)
    allgather   k T b + 3 T ep etp b + 2 T b                         T ep etp b
    deepep      (k + D(ep)) T b u + T b                              rings
    hybridep    k T b u + T b                                        T ep (65/64 b + 4 E)

Megatron-Core 0.19.2, transformer/moe/token_dispatcher.py.  All-to-all: gradients of the rows as they are sorted, sent,
and sorted by expert (:665, :698, :775-781), and of the tokens; over etp the rows of all ranks, their fp32 copy and its
sum (:817-826).  All-gather: tokens of all ranks in one buffer that every layer shares and that stays (:296-298 with
tensor_parallel/mappings.py:143), whole tokens restored from the rows (:343-349) and cast to the probabilities' fp32
before they are scattered (:361-364), however they are routed; the backward pass makes the same.  What experts keep of
their rows is theirs (``planner.model.mlp_operators``); routing maps and probabilities of all ranks, 5 bytes an expert
and token beside 8 h, are left out.

DeepEP (deepseek-ai/DeepEP @04b06f7a) brings a token once to a device and holds rings that do not grow with the tokens,
as its two configurations ask (deep_ep/buffer.py:164-203; core fused_a2a.py:47-57): over NVLink ``c n r (b + m)`` with
``c`` channels, ``n`` peers of a node and ``r`` tokens a ring (csrc/config.hpp:45-65), beyond a node ``2 c N r (b + m +
16)`` for ``N`` nodes (:67-91), ``m`` bytes of meta data a token.  HybridEP (branch hybrid-ep @94a9f8f6) holds all
tokens of all ranks, as if one expert drew them all, with scales and probabilities of its E experts
(csrc/hybrid_ep/buffer/intranode.cu:126-129 and 253-261; dispatch shares it, :204-208), of 512 tokens a rank at least
(csrc/hybrid_ep/config.cuh:386), and writes the experts' rows itself.

Where the exchange of one micro-batch hides behind the compute of another (``overlap_ep``), both are there at once.

Shape letter: K keys.
"""

from __future__ import annotations

import numpy as np

from planner.model.operator import Operator
from planner.model.spec import ModelSpec, MoeSpec
from planner.predict.distinct_parts import distinct_parts, routing_of
from planner.predict.layer_keys import LayerKeys
from planner.predict.memory.activations import ELEMENT_BYTES, layer_input_bytes
from planner.strategy.strategy import DISPATCHERS, Dispatcher
from solver.arrays import Array

CHANNELS = 10.0
"""Half of the multiprocessors that Megatron-Core gives DeepEP (core token_dispatcher.py:1278)."""
NODE_PEERS = 8
"""Ranks that DeepEP takes as one node (``NUM_MAX_NVL_PEERS``)."""
NVLINK_RINGS = ((8, 256), (64, 288), (128, 560), (160, 720))
"""Groups of up to so many ranks: tokens a ring between two peers of a node (deep_ep/buffer.py:164-203)."""
RDMA_RINGS = ((64, 140), (160, 132))
"""Tokens a ring between two nodes: 128, rounded up to whole chunks (csrc/config.hpp:39), the larger of the two."""
TOKEN_META_BYTES = 8 + 128 * (8 + 4 + 4)
"""Beside a token's hidden state: where it came from; numbers and weights of 128 experts, 128 scales."""
RDMA_META_BYTES = TOKEN_META_BYTES + 16
HYBRID_TOKENS = 512
"""Fewest tokens a rank that HybridEP makes its buffers for."""


def standing_exchange_bytes(model: ModelSpec, keys: LayerKeys) -> Array:
    """Bytes that the exchange of routed tokens holds all the time, for the model's widest mixture: [K]."""
    mixtures = {layer.moe for layer in model.layer_kinds if layer.moe is not None}
    held = [_standing(moe, moe.latent_size or model.hidden_size, keys) for moe in mixtures]
    return np.where(keys.ep > 1, np.max(held, axis=0), 0.0) if held else np.zeros(len(keys))


def _standing(moe: MoeSpec, width: int, keys: LayerKeys) -> Array:
    token_bytes = ELEMENT_BYTES * width
    own = layer_input_bytes(keys, width)
    most = np.maximum(own / token_bytes, HYBRID_TOKENS) * keys.ep
    return _by_dispatcher(
        keys,
        {
            "alltoall": np.zeros(len(keys)),
            "allgather": own * keys.ep * keys.etp,
            "deepep": deepep_ring_bytes(token_bytes, keys.ep),
            "hybridep": most * (token_bytes * (1.0 + 1.0 / 64.0) + 4.0 * moe.num_experts),
        },
    )


def passing_exchange_bytes(operator: Operator, keys: LayerKeys) -> Array:
    """Bytes that one permutation of routed tokens and what it belongs to make while they run: [K]."""
    routed = operator.tokens_per_token
    width = (operator.read_width + operator.write_width) / (3.0 * routed + 1.0)
    own = ELEMENT_BYTES * width * keys.tokens / keys.sequence_split
    hottest = keys.hottest(operator.num_experts)
    rows = routed * own * hottest
    arrived = distinct_parts(routing_of(operator), keys.ep) * own * hottest
    apart = np.where(keys.etp > 1, rows * (3.0 * keys.etp + 2.0), 0.0)
    made = _by_dispatcher(
        keys,
        {
            "alltoall": np.maximum(3.0 * rows + own, apart),
            "allgather": routed * own + own * (3.0 * keys.ep * keys.etp + 2.0),
            "deepep": rows + arrived + own,
            "hybridep": rows + own,
        },
    )
    several = np.where(keys.overlap_ep > 0, 2.0, 1.0)
    # Ranks of an expert's tensor parallelism gather rows from each other whether or not experts are dealt out.
    return np.where(keys.ep > 1, made * several, np.maximum(3.0 * rows + own, apart))


def _by_dispatcher(keys: LayerKeys, held: dict[Dispatcher, Array]) -> Array:
    return np.choose(keys.dispatcher.astype(int), [held[name] for name in DISPATCHERS])


def deepep_ring_bytes(token_bytes: float, ranks: Array) -> Array:
    """Bytes of the rings of one device in a group of ``ranks``: [K]."""
    nodes = ranks / NODE_PEERS
    inside = CHANNELS * np.minimum(ranks, NODE_PEERS) * _ring_tokens(NVLINK_RINGS, ranks)
    across = np.where(nodes > 1, 2.0 * CHANNELS * nodes * _ring_tokens(RDMA_RINGS, ranks), 0.0)
    return inside * (token_bytes + TOKEN_META_BYTES) + across * (token_bytes + RDMA_META_BYTES)


def _ring_tokens(rings: tuple[tuple[int, int], ...], ranks: Array) -> Array:
    return np.select([ranks <= group for group, _ in rings], [float(tokens) for _, tokens in rings], rings[-1][1])
