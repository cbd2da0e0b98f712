"""Language models of 2025 and 2026 that stand behind towers only; shapes of ``transformers`` 5.23 modeling files."""

from __future__ import annotations

from dataclasses import replace

from planner.model.hf_config.decoder import Decoder, Experts
from planner.model.hf_config.later_forms import (
    delay_scale,
    image_experts,
    inner_layer_norms,
    large4_layers,
    latent_expert_norms,
    pooled_indexer,
    residual_gates,
    segments,
    sliding_query_heads,
    text_expert_width,
)
from planner.model.hf_config.layer_forms import attention_gate, every, in_turn
from planner.model.hf_config.layer_rules import all_routed, dense_first, every_layer, full_from_end, listed
from planner.model.hf_config.mixer_rules import attention_every, kimi_delta, listed_mixers
from planner.model.hf_config.sparse_forms import mixed_streams
from planner.model.hf_config.tables.bases import DEEPSEEK_EXPERTS, LATENT, OLDER


def _kosmos(*, attention: bool) -> Decoder:
    return replace(
        OLDER,
        hidden="embed_dim",
        layers="layers",
        heads="attention_heads",
        intermediate="ffn_dim",
        activation="activation_function",
        position="none",  # sinusoids, without weights
        shaped=every(inner_layer_norms(attention=attention)),
        ends=None if attention else segments,
        refused=(("add_cross_attention", "cross-attention"),) if attention else (),
    )


LATER_TEXTS: dict[str, Decoder] = {
    "ernie4_5_vl_moe_text": Decoder(
        head_dim=None,
        qkv_bias="use_bias",
        output_bias="use_bias",
        mlp_bias="use_bias",
        experts=Experts(
            dense_first(1),
            count="moe_num_experts",
            top_k="moe_k",
            width=text_expert_width,
            shared="moe_num_shared_experts",
            shared_bias="use_bias",
            router_bias=True,
        ),
        shaped=image_experts,
    ),
    "glm5_next_text": replace(
        LATENT,
        position="none",
        indexer=True,
        unindexed=("linear_attention", "full_attention"),
        mixers=listed_mixers(
            kimi_delta, attention_every(4), ("linear_attention",), ("full_attention", "indexed_attention")
        ),
        experts=replace(DEEPSEEK_EXPERTS, layers=dense_first(3)),
        residual=mixed_streams,
        shaped=pooled_indexer,
    ),
    "kosmos_2_text_model": _kosmos(attention=True),
    "kosmos_2_5_text_model": _kosmos(attention=False),
    "mistral_large4_text": replace(
        LATENT,
        indexer=True,
        indexer_reads_latent=False,
        experts=replace(DEEPSEEK_EXPERTS, score_function="softmax"),
        shaped=large4_layers,
    ),
    "muse_glimmer_text": Decoder(
        num_norms=4,
        activation="hidden_activation",
        windows=full_from_end(4),
        shaped=every(attention_gate()),
    ),
    "muse_spark_text": Decoder(
        windows=full_from_end(4),
        experts=Experts(all_routed, count="num_local_experts", score_function="sigmoid"),
        shaped=in_turn(every(attention_gate(), residual_gates), latent_expert_norms),
    ),
    "phi4_multimodal": Decoder(qkv_bias=False, output_bias=False, head_dim=None, windows=every_layer),
    "step3p5": Decoder(
        qk_norm="per_head",
        windows=listed,
        experts=Experts(
            dense_first(3),
            count="n_routed_experts",
            shared_width="share_expert_dim",
            score_function="sigmoid",
        ),
        shaped=in_turn(sliding_query_heads, every(attention_gate(per_head=True))),
        predicted_layers="num_nextn_predict_layers",
    ),
    "voxtral_realtime_text": Decoder(qkv_bias=False, output_bias=False, windows=every_layer, shaped=every(delay_scale)),
}
