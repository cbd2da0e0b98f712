"""An operator and its costs, before any hardware is known.

An ``Operator`` is what one layer (or the embedding, or the head) runs for each token, unsharded.  The cost model
turns it into FLOPs, bytes and collectives for a given sharding; ``planner.model.operators`` lists them for a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SCANS = ("chunk_scan", "selective_scan")
"""Classes that run along the sequence with a state: context parallelism has to give them whole sequences."""
OperatorClass = Literal[
    "matmul",  # weight matrix times tokens
    "grouped_matmul",  # one weight matrix an expert
    "attention",  # scaled dot-product attention, fused (flash)
    "chunk_scan",  # recurrence over the sequence by chunks: small matmuls on tensor cores
    "selective_scan",  # recurrence of each channel, without tensor cores (Mamba-1)
    "convolution",  # short depthwise convolution over the sequence, with what is fused around it
    "gate",  # point-wise activation or gate inside a token mixer
    "index_scores",  # scores of all earlier tokens and the best of them (sparse attention)
    "norm",
    "activation",  # point-wise non-linearity, gated or not
    "rope",
    "residual",
    "router",  # expert scores, top-k
    "permute",  # gather / scatter of tokens to experts, memory bound
    "embedding",
    "cross_entropy",
    "weight_pass",  # reads and writes a weight itself, whatever the tokens (dequantisation, norms of DoRA)
]

Shard = Literal[
    "column",  # output features split over tp; input replicated over tp (all-gathered under sp)
    "row",  # input features split over tp; output summed over tp (reduce-scattered under sp)
    "replicated",  # every tp rank does all of it (router, small projections); under sp: on its own tokens
    "sequence",  # point-wise on hidden-wide data: tokens split over tp under sp, else replicated
    "heads",  # attention core: heads split over tp
    "features",  # point-wise on tp-split features
    "expert_column",  # as column, over etp, experts over ep
    "expert_row",  # as row, over etp, experts over ep
    "expert_features",  # point-wise on etp-split features of dispatched tokens
    "vocabulary",  # vocabulary split over tp
]

Module = Literal[
    "norm",
    "attention_core",
    "attention",
    "residual",
    "mlp",
    "moe",
    "shared_expert",
    "embedding",
    "head",
    "mtp",
    "traced",
]


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of one layer, for one token of the micro-batch.

    matmul-like: ``flops = 2 * in_features * out_features`` a token (times ``tokens_per_token``).
    attention:   ``flops = 2 * context * num_heads * (qk_dim + v_dim)`` a token; context = (s + 1) / 2 when causal,
                 limited by ``window``.
    index_scores: ``flops = 2 * context * num_heads * qk_dim`` a token, the whole causal context.
    scans, convolution: ``flops`` as their mixer states them.
    point-wise:  reads ``read_width`` and writes ``write_width`` elements a token.

    ``read_width``, ``write_width`` and ``saved_width`` are for one token of the *layer*: ``tokens_per_token`` is
    already multiplied in.  ``in_features`` and ``out_features`` are for one row of the operator.
    """

    name: str
    op_class: OperatorClass
    module: Module
    shard: Shard
    parameters: int = 0
    """Learned scalars (weights and biases), unsharded, all experts included."""
    replicated_parameters: int = 0
    """Part of ``parameters`` that tensor parallelism does not split (row-parallel biases, norms, router)."""
    in_features: int = 0
    out_features: int = 0
    tokens_per_token: float = 1.0
    """Rows of the operator for each token of the layer: top_k for routed experts."""
    read_width: int = 0
    write_width: int = 0
    flops: float = 0.0
    """Forward FLOPs of one token where widths do not state them: scans and convolutions, unsharded."""
    kernel: str = ""
    """chunk_scan: which recurrence (``planner.predict.cost.scan_time``)..."""
    chunk: int = 0
    """... and tokens of one of its chunks."""
    num_heads: int = 0
    num_kv_heads: int = 0
    qk_dim: int = 0
    v_dim: int = 0
    window: int | None = None
    stride: int = 1
    """attention, index_scores: tokens that one key stands for (compressed keys)."""
    causal: bool = True
    num_experts: int = 0
    num_groups: int = 1
    """Groups of experts of group-limited routing..."""
    top_k_groups: int = 1
    """... and those that one token may reach."""
    saved_width: float = 0.0
    """Elements a token that autograd keeps for the backward pass, at the activation precision, unsharded."""
    saved_shard: Shard | None = None
    """How the kept elements are split; None = as ``shard`` splits the input."""
    saved_bytes_per_element: float | None = None
    """Overrides the activation precision (1 for masks, 4 for fp32 statistics)."""
    kept_scores: int = 0
    """Heads whose scores' biases, one for each pair of tokens, are made here and kept beside the rest."""
    saved_from: str = ""
    """Name of the operator whose output the kept elements are; "" = the layer's input.

    Recomputing a region frees a kept tensor only if the region makes it: see ``planner.model.recompute``.
    """
    of_source: bool = False
    """Whether its rows are tokens of the encoder's sequence; of attention, whether it sees those instead of its own."""
    further_rows: int = 0
    """matmul: rows of every sequence besides those of its tokens."""
    frozen: bool = False
    """Whether the parameters do not learn: no weight gradient and no state but their own bytes."""
    stored_bytes: float = 2.0
    """Bytes of a frozen parameter as it is stored."""
    passed_weights: int = 0
    """weight_pass: weights that are passed over..."""
    passed_bytes: float = 0.0
    """... and bytes read and written for each."""
    passes_back: bool = True
    """weight_pass: whether the backward pass repeats it."""
