"""What a model weighs and a request costs at least, as numbers for bounds.

Every amount here is a lower bound on what any engine moves or multiplies: norms, embeddings, states of recurrent
mixers, index scores and activations are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from planner.model.mixers.softmax import AttentionSpec
from planner.model.operators import head_operators, layer_operators
from planner.model.spec import ModelSpec
from planner.serving.traffic import Lengths, ServingTraffic

FloatArray = NDArray[np.float64]
STEEPEST_ROUTING = 1.2
"""Exponent of the most uneven power law of routing that kernels are measured with: the fewest distinct experts."""


@dataclass(frozen=True, slots=True)
class ModelAmounts:
    """Of one model, unsharded."""

    attention_weights: int
    """Matrices of token mixers."""
    other_weights: int
    """Matrices of MLPs, shared experts, routers and the head."""
    head_weights: int
    expert_weights: int
    num_experts: int
    experts_per_token: int
    kv_heads: int
    """Heads whose keys and values devices of tp share; 1 where a latent stands for all heads."""
    cache_values_per_token: int
    """Numbers kept for each token, all layers."""
    attention_flops_per_pair: int
    """FLOPs of one query token seeing one token, all layers that see every token."""
    heads: tuple[tuple[int, int], ...]
    """(query heads, kv heads) of each kind of softmax attention."""
    latent_flops_per_pair: int
    """Of latent attention in decode (absorbed form), all layers; 0 for other kinds."""
    residual_values: int
    """Numbers of a token that leave the mixers, all layers with one."""


@dataclass(frozen=True, slots=True)
class RequestAmounts:
    """Means over the requests of a traffic."""

    input_tokens: float
    output_tokens: float
    new_input_tokens: float
    """Input tokens that no prefix cache holds."""
    context_tokens: float
    """Tokens that a request which decodes has kept, mean over time."""
    prompt_pairs: float
    """Pairs of tokens that causal attention of the new input tokens sees."""


@lru_cache(maxsize=32)
def model_amounts(model: ModelSpec) -> ModelAmounts:
    """The amounts of a model."""
    attention = other = experts = cache = pairs = 0
    heads, latent, layers = set[tuple[int, int]](), 0, 0
    for run in model.layer_runs:
        for operator in layer_operators(model, run.kind):
            if operator.op_class == "grouped_matmul":
                experts += run.count * operator.parameters
            elif operator.op_class in {"matmul", "router"}:
                mixer = operator.module in {"attention", "attention_core"}
                attention += run.count * operator.parameters if mixer else 0
                other += 0 if mixer else run.count * operator.parameters
        mixer_spec = model.layer_kinds[run.kind].attention
        if not isinstance(mixer_spec, AttentionSpec):
            continue
        layers += run.count
        heads.add((mixer_spec.num_heads, mixer_spec.num_kv_heads))
        if mixer_spec.kind == "mla":
            rank, rope = mixer_spec.kv_lora_rank or 0, mixer_spec.qk_rope_head_dim or 0
            cache += run.count * (rank + rope)
            latent += run.count * 2 * mixer_spec.num_heads * (2 * rank + rope) if mixer_spec.indexer is None else 0
        elif mixer_spec.sliding_window is None and not mixer_spec.reuses_key_values:
            cache += run.count * mixer_spec.num_kv_heads * (mixer_spec.head_dim + mixer_spec.v_head_dim)
        if mixer_spec.sliding_window is None and mixer_spec.indexer is None:
            pairs += run.count * 2 * mixer_spec.num_heads * (mixer_spec.head_dim + mixer_spec.v_head_dim)
    head = model.vocab_size * model.hidden_size
    if not model.tie_embeddings:
        head = sum(operator.parameters for operator in head_operators(model) if operator.module == "head")
    moe = next((kind.moe for kind in model.layer_kinds if kind.moe is not None), None)
    kv_heads = 1 if latent else max((kv for _, kv in heads), default=1)
    return ModelAmounts(
        attention_weights=attention,
        other_weights=other + head,
        head_weights=head,
        expert_weights=experts,
        num_experts=0 if moe is None else moe.num_experts,
        experts_per_token=0 if moe is None else moe.top_k,
        kv_heads=kv_heads,
        cache_values_per_token=cache,
        attention_flops_per_pair=pairs,
        heads=tuple(sorted(heads)),
        latent_flops_per_pair=latent,
        residual_values=layers * model.hidden_size,
    )


def request_amounts(traffic: ServingTraffic) -> RequestAmounts:
    """The means of a traffic."""
    inputs, input_square = _moments(traffic.input_tokens)
    outputs, output_square = _moments(traffic.output_tokens)
    new = inputs * (1.0 - traffic.prefix_share)
    held = inputs * traffic.prefix_share
    return RequestAmounts(
        input_tokens=inputs,
        output_tokens=outputs,
        new_input_tokens=new,
        context_tokens=inputs + output_square / outputs / 2.0,
        prompt_pairs=new * held + input_square * (1.0 - traffic.prefix_share) ** 2 / 2.0,
    )


def _moments(lengths: Lengths) -> tuple[float, float]:
    """Mean and mean square."""
    if lengths.kind == "uniform":
        low, high = float(lengths.low or 1), float(lengths.high or 1)
        return (low + high) / 2.0, (low * low + low * high + high * high) / 3.0
    if lengths.kind == "table":
        tokens, weights = np.asarray(lengths.tokens, float), np.asarray(lengths.weights, float)
        weights = weights / weights.sum()
        return float(tokens @ weights), float(tokens**2 @ weights)
    mean = float(lengths.mean or 1.0)
    return mean, mean * mean * (1.0 + (lengths.spread or 0.0) ** 2)


def distinct_experts(amounts: ModelAmounts, tokens: FloatArray) -> FloatArray:
    """Experts whose weights a batch of so many tokens reads at least, mean of a layer.

    ``sum over e of 1 - (1 - p_e)^(top_k tokens)`` with ``p_e`` of the steepest power law; choosing without
    replacement, as a router does, meets more.
    """
    if not amounts.num_experts:
        return np.zeros_like(tokens)
    share = np.arange(1, amounts.num_experts + 1, dtype=float) ** -STEEPEST_ROUTING
    share /= share.sum()
    draws = np.maximum(tokens, 1.0) * amounts.experts_per_token
    found: FloatArray = (1.0 - np.exp(np.log1p(-share)[:, None] * draws[None, :])).sum(axis=0)
    return found
