"""Attention within blocks, and to tokens that stand for the whole sequence.

* ``summary_block`` (LongT5, arXiv 2112.07916, section 3.1): of so many tokens the sum is normed and projected to one
  more key and value by the weights of the tokens' own.
* ``global_tokens`` (PEGASUS-X, arXiv 2208.04347, section 3.1): learned tokens that see every token and that every token
  sees; ``RowsSpec.further`` runs them through the projections of the layer.  Their attention to each other is left out.

Forward FLOPs of a token: ``2 (window + s / summary_block + 2 global_tokens) heads * 2 head_dim`` beside the
projections.  ``window`` counts the tokens that the class multiplies: its block, or three blocks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from planner.model.mixers.kinds import EqualHeads
from planner.model.mixers.parts import projection
from planner.model.mixers.softmax import PositionBias
from planner.model.operator import Operator


class LocalGlobalSpec(EqualHeads):
    """Block-local attention of an encoder layer, with global keys."""

    causal: ClassVar[bool] = False
    kind: Literal["local_global"] = "local_global"
    window: int = Field(gt=0, description="tokens that a token's block sees")
    summary_block: int | None = Field(default=None, gt=0, description="tokens that one summary key stands for")
    global_tokens: int = Field(default=0, ge=0, description="learned tokens that see all, and that all see")
    position_bias: PositionBias | None = Field(
        default=None, description="biases by distance, one table for tokens and one for summaries"
    )


def local_global_operators(mixer: LocalGlobalSpec, hidden_size: int, *, input_from: str) -> tuple[Operator, ...]:
    """From the normed input of the layer to the output projection."""
    width, bias = mixer.num_heads * mixer.head_dim, mixer.position_bias
    buckets = mixer.num_heads * bias.buckets if bias is not None and not bias.shared else 0
    local = _core(mixer, "attention_core", keys=1.0, window=mixer.window, parameters=buckets)
    summaries = _summaries(mixer, hidden_size, buckets) if mixer.summary_block else ()
    tokens = _global_tokens(mixer, hidden_size) if mixer.global_tokens else ()
    return (
        projection("qkv", hidden_size, 3 * width, "column", saved_from=input_from),
        *summaries,
        *tokens,
        local,
        projection("output_projection", width, hidden_size, "row", saved_from="attention_core"),
    )


def _core(
    mixer: LocalGlobalSpec, name: str, *, keys: float, window: int | None, parameters: int = 0, stride: int = 1
) -> Operator:
    """One product of queries and keys; ``keys`` and values kept, of a token's share of them."""
    width = mixer.num_heads * mixer.head_dim
    first = name == "attention_core"
    return Operator(
        name=name,
        op_class="attention",
        module="attention_core",
        shard="heads",
        parameters=parameters,
        read_width=width + round(2 * width * keys),
        write_width=width,
        num_heads=mixer.num_heads,
        num_kv_heads=mixer.num_heads,
        qk_dim=mixer.head_dim,
        v_dim=mixer.head_dim,
        window=window,
        stride=stride,
        causal=False,
        saved_width=(width if first else 0) + 2 * width * keys,
        saved_shard="heads",
        saved_from="qkv" if first else "",
    )


def _summaries(mixer: LocalGlobalSpec, hidden_size: int, buckets: int) -> tuple[Operator, ...]:
    """Sums of blocks, their norm, their keys and values, and the attention to them."""
    block = mixer.summary_block or 1
    width, share = mixer.num_heads * mixer.head_dim, 1.0 / block
    norm = Operator(
        name="summary_norm",
        op_class="norm",
        module="attention",
        shard="sequence",
        parameters=hidden_size,
        replicated_parameters=hidden_size,
        read_width=hidden_size,
        write_width=round(hidden_size * share),
        saved_width=hidden_size * share,
        saved_shard="sequence",
    )
    # Keys and values of summaries are made by the weights that make those of tokens.
    key_values = replace(
        projection("summary_key_values", hidden_size, 2 * width, "column", parameters=0, saved_from="summary_norm"),
        tokens_per_token=share,
        read_width=round(hidden_size * share),
        write_width=round(2 * width * share),
        saved_width=hidden_size * share,
    )
    return norm, key_values, _core(mixer, "summary_core", keys=share, window=None, stride=block, parameters=buckets)


def _global_tokens(mixer: LocalGlobalSpec, hidden_size: int) -> tuple[Operator, ...]:
    """The norm of the learned tokens, what tokens see of them, and what they see of tokens."""
    norm = Operator(
        name="global_norm",
        op_class="norm",
        module="attention",
        shard="sequence",
        parameters=2 * hidden_size,
        replicated_parameters=2 * hidden_size,
    )
    seen, seeing = (
        _core(mixer, name, keys=0.0, window=mixer.global_tokens) for name in ("global_core", "from_global_core")
    )
    return norm, seen, seeing
