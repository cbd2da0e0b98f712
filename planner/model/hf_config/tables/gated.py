"""Families whose layers have gates, norms, scales or convolutions besides; shapes of ``transformers`` 5.23."""

from __future__ import annotations

from dataclasses import replace

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.decoder import Decoder, Experts
from planner.model.hf_config.layer_forms import (
    attention_gate,
    cycled_stacks,
    differential_heads,
    doge_parts,
    every,
    gate_bias_by_head,
    heads_by_layer,
    in_turn,
    inner_norms,
    laguna_gate,
    learned_activation,
    longcat_pairs,
    mimo_windows_heads,
    norm_behind_experts,
    zaya_parts,
    zaya_router,
)
from planner.model.hf_config.layer_rules import (
    all_routed,
    dense_first,
    full_every,
    full_first_and_every,
    listed,
    listed_as,
)
from planner.model.hf_config.mixer_rules import bailing_attention, bailing_delta, listed_mixers
from planner.model.hf_config.tables.bases import LATENT, ONE_DENSE_FIRST
from planner.model.spec import PartSpec

_Parts = tuple[PartSpec, ...]


def _first_state(_: ClassKeys, hidden: int) -> tuple[_Parts, _Parts]:
    """The state that the low stack starts from (hrm_text)."""
    return (PartSpec(name="first_state", kind="scale", in_features=hidden),), ()


def _entry_scale(_: ClassKeys, hidden: int) -> tuple[_Parts, _Parts]:
    """A scale and a constant on the embedding (zaya)."""
    return (PartSpec(name="entry_scale", kind="scale", in_features=hidden, bias=True),), ()


GATED: dict[str, Decoder] = {
    "afmoe": Decoder(
        qk_norm="per_head",
        num_norms=4,
        windows=full_every("global_attn_every_n_layers"),
        experts=Experts(
            dense_first("num_dense_layers"), shared="num_shared_experts", router_bias=True, score_function="sigmoid"
        ),
        shaped=every(attention_gate()),
    ),
    "apertus": Decoder(qk_norm="per_head", gated=False, shaped=every(learned_activation)),
    "axk1": replace(LATENT, experts=ONE_DENSE_FIRST, shaped=every(norm_behind_experts)),
    "bailing_hybrid": replace(
        LATENT,
        mixers=listed_mixers(bailing_delta, bailing_attention),
        experts=replace(ONE_DENSE_FIRST, layers=dense_first("first_k_dense_replace", 2), count="num_local_experts"),
        ties=False,
        predicted_layers="num_mtp_layers",
        shaped=every(attention_gate(per_head=True)),
    ),
    "beam": Decoder(
        qk_norm="per_head",
        num_norms=4,
        windows=full_first_and_every(6, first=False, last=True),
        experts=Experts(dense_first(3), score_function="sigmoid", groups=True),
        shaped=every(attention_gate(), gate_bias_by_head),
    ),
    "bitnet": Decoder(shaped=every(inner_norms)),
    "cohere_compass_text": Decoder(
        norm="layer_no_bias", parallel=True, epsilon="layer_norm_eps", windows=full_every(4)
    ),
    "diffllama": Decoder(shaped=differential_heads),
    "doge": Decoder(
        qk_norm="per_head",
        mlp_bias="mlp_bias",
        windows=listed,
        refused=(("is_moe", "experts that are rows of an embedding"),),
        shaped=every(doge_parts),
    ),
    "hrm_text": Decoder(
        kv_heads=None,
        norm="none_affine",
        output_gate=True,
        mlp_bias="mlp_bias",
        shaped=cycled_stacks,
        ends=_first_state,
    ),
    "laguna": Decoder(
        qk_norm="per_head",
        windows=listed,
        experts=Experts(
            dense_first(1), shared_width="shared_expert_intermediate_size", router_bias=True, score_function="sigmoid"
        ),
        shaped=in_turn(heads_by_layer, every(laguna_gate)),
    ),
    "longcat_flash": replace(
        LATENT,
        layers="num_layers",
        intermediate="ffn_hidden_size",
        experts=Experts(
            all_routed,
            count="n_routed_experts",
            top_k="moe_topk",
            width="expert_ffn_hidden_size",
            router_bias="router_bias",
        ),
        shaped=longcat_pairs,
    ),
    "mimo_v2_flash": Decoder(
        output_bias=False,
        windows=full_first_and_every(6, first=True, last=False),
        experts=Experts(dense_first(1), count="n_routed_experts", score_function="sigmoid", groups=True),
        shaped=mimo_windows_heads,
    ),
    "zaya": Decoder(
        head_bias="lm_head_bias",
        experts=Experts(all_routed),
        windows=listed_as("hybrid", "hybrid_sliding"),
        shaped=in_turn(zaya_router, every(zaya_parts)),
        ends=_entry_scale,
    ),
}
