"""Families that share keys and values, give layers inputs, or mix states of earlier layers: ``transformers`` 5.23."""

from __future__ import annotations

from planner.model.hf_config.decoder import Decoder, Experts
from planner.model.hf_config.gemma_forms import (
    gemma3n_ends,
    gemma3n_layers,
    gemma3n_streams,
    gemma3n_width,
    gemma4_ends,
    gemma4_layers,
)
from planner.model.hf_config.inkling_forms import inkling2_ends, inkling2_parts, inkling_parts, sliding_heads
from planner.model.hf_config.layer_forms import every, in_turn
from planner.model.hf_config.layer_rules import all_routed, full_every, full_first_and_every, listed_as

_GEMMA4 = Decoder(
    qk_norm="per_head",
    num_norms=4,
    activation="hidden_activation",
    windows=full_first_and_every(6, first=False, last=True),
    shaped=gemma4_layers,
    ends=gemma4_ends,
)
_INKLING = listed_as("hybrid", "hybrid_sliding", period=6, key="sliding_window_size")


SHARED: dict[str, Decoder] = {
    "gemma3n_text": Decoder(
        qk_norm="per_head",
        num_norms=4,
        activation="hidden_activation",
        windows=full_every(5),
        dense_width=gemma3n_width,
        shaped=gemma3n_layers,
        residual=gemma3n_streams,
        ends=gemma3n_ends,
    ),
    "gemma4_text": _GEMMA4,
    "gemma4_unified_text": _GEMMA4,
    "inkling_text": Decoder(
        qkv_bias=False,
        output_bias=False,
        qk_norm="per_head",
        position="none",
        ties=False,
        embedding_norm=True,
        windows=_INKLING,
        experts=Experts(all_routed, count="n_routed_experts", shared="n_shared_experts", score_function="sigmoid"),
        shaped=in_turn(sliding_heads, every(inkling_parts)),
        predicted_layers="num_mtp_layers",
    ),
    "inkling2_text": Decoder(
        qkv_bias=False,
        output_bias=False,
        position="none",
        ties=False,
        embedding_norm=True,
        windows=_INKLING,
        experts=Experts(all_routed, count="n_routed_experts", score_function="sigmoid"),
        shaped=in_turn(sliding_heads, every(inkling2_parts)),
        ends=inkling2_ends,
    ),
}
