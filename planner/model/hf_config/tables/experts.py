"""Mixtures of experts; shapes of ``transformers`` 5.23 modeling files."""

from __future__ import annotations

from dataclasses import replace

from planner.model.hf_config.decoder import Decoder, Experts
from planner.model.hf_config.layer_rules import (
    after_max_window_layers,
    all_routed,
    chunks,
    dense_first,
    dense_then_every,
    ernie_steps,
    every_layer,
    flint_windows,
    full_every,
    listed,
    llama4_steps,
    one_window,
    qwen_steps,
    switched_even_windows,
    switched_windows,
)
from planner.model.hf_config.tables.bases import DEEPSEEK_EXPERTS, LATENT

_GRANITE = Experts(all_routed, count="num_local_experts", width="intermediate_size")
_GRANITE_SHARED = Experts(
    all_routed, count="num_local_experts", width="intermediate_size", shared_width="shared_intermediate_size"
)

ROUTED: dict[str, Decoder] = {
    "aria_text": Decoder(
        mlp_bias="mlp_bias",
        experts=Experts(
            all_routed,
            count="moe_num_experts",
            top_k="moe_topk",
            width="intermediate_size",
            shared="moe_num_shared_experts",
            shared_bias="mlp_bias",
        ),
    ),
    "cohere2_moe": Decoder(
        norm="layer_no_bias",
        parallel=True,
        epsilon="layer_norm_eps",
        windows=full_every("sliding_window_pattern"),
        experts=Experts(all_routed, width="intermediate_size", shared="num_shared_experts"),
    ),
    "deepseek_v2": replace(
        LATENT,
        mlp_bias="mlp_bias",
        experts=replace(DEEPSEEK_EXPERTS, layers=dense_then_every, shared_bias="mlp_bias", score_function="softmax"),
    ),
    "deepseek_v3": replace(
        LATENT,
        experts=replace(DEEPSEEK_EXPERTS, layers=dense_then_every),
        predicted_layers="num_mtp_layers",
    ),
    "dots1": Decoder(qk_norm="per_head", windows=after_max_window_layers, experts=DEEPSEEK_EXPERTS),
    "ernie4_5_moe": Decoder(
        head_dim=None,
        qkv_bias="use_bias",
        output_bias="use_bias",
        mlp_bias="use_bias",
        head_bias="use_bias",
        experts=Experts(
            ernie_steps,
            count="moe_num_experts",
            top_k="moe_k",
            shared="moe_num_shared_experts",
            shared_bias="use_bias",
            router_bias=True,
        ),
    ),
    "exaone_moe": Decoder(
        qkv_bias=False,
        output_bias=False,
        qk_norm="per_head",
        windows=full_every("sliding_window_pattern"),
        experts=Experts(
            dense_first("first_k_dense_replace"), shared="num_shared_experts", score_function="sigmoid", groups=True
        ),
    ),
    "flex_olmo": Decoder(
        head_dim=None,
        qk_norm="full_width",
        norm_placement="post_branch",
        experts=Experts(all_routed, width="intermediate_size"),
    ),
    "flint": Decoder(
        qk_norm="per_head",
        sinks=True,
        windows=flint_windows,
        experts=Experts(qwen_steps, shared_width="shared_expert_intermediate_size"),
    ),
    "glm4_moe": Decoder(
        output_bias=False,
        qk_norm="per_head",
        qk_norm_key="use_qk_norm",
        experts=DEEPSEEK_EXPERTS,
        predicted_layers="num_mtp_layers",
    ),
    "glm4_moe_lite": replace(LATENT, experts=replace(DEEPSEEK_EXPERTS, layers=dense_first(1))),
    "gpt_oss": Decoder(
        sinks=True,
        windows=full_every(2),
        experts=replace(_GRANITE, expert_bias=True, router_bias=True),
    ),
    "granitemoe": Decoder(head_dim=None, experts=_GRANITE),
    "granitemoe_swa": Decoder(
        head_dim=None, sinks=True, windows=full_every(4, first_full=True), experts=_GRANITE_SHARED
    ),
    "granitemoeshared": Decoder(head_dim=None, experts=_GRANITE_SHARED),
    "hunyuan_v1_moe": Decoder(
        qk_norm="per_head",
        experts=Experts(all_routed, top_k="moe_topk", width="intermediate_size", shared=1),
    ),
    "hy_v3": Decoder(
        qk_norm="per_head",
        mlp_bias="mlp_bias",
        experts=Experts(dense_first(1), shared="num_shared_experts", shared_bias="mlp_bias", score_function="sigmoid"),
    ),
    "kolibri1": Decoder(
        qkv_bias=False,
        output_bias=False,
        qk_norm="per_head",
        num_norms=4,
        windows=full_every(5),
        experts=Experts(all_routed, shared_width="shared_expert_intermediate_size"),
    ),
    "llama4_text": Decoder(
        dense_intermediate="intermediate_size_mlp",
        without_parameters=("use_qk_norm",),
        windows=chunks,
        experts=Experts(
            llama4_steps,
            count="num_local_experts",
            width="intermediate_size",
            shared=1,
            score_function="sigmoid",
        ),
    ),
    "mellum": Decoder(
        qk_norm="per_head",
        windows=listed,
        experts=Experts(all_routed),
        predicted_layers="num_nextn_predict_layers",
    ),
    "minimax_m2": Decoder(
        qkv_bias=False,
        output_bias=False,
        qk_norm="full_width",
        experts=Experts(all_routed, count="num_local_experts", width="intermediate_size", score_function="sigmoid"),
    ),
    "mistral4": replace(LATENT, experts=replace(DEEPSEEK_EXPERTS, score_function="softmax")),
    "mixtral": Decoder(divided_heads=True, qkv_bias=False, output_bias=False, windows=one_window, experts=_GRANITE),
    "olmoe": Decoder(head_dim=None, qk_norm="full_width", experts=Experts(all_routed, width="intermediate_size")),
    "phimoe": Decoder(
        norm="layer",
        head_dim=None,
        windows=every_layer,
        head_bias="lm_head_bias",
        experts=Experts(all_routed, count="num_local_experts", only_top_k=2, width="intermediate_size"),
    ),
    "qwen2_moe": Decoder(
        qkv_bias="qkv_bias",
        output_bias=False,
        windows=switched_even_windows,
        experts=Experts(qwen_steps, shared_width="shared_expert_intermediate_size", shared_gate=True),
    ),
    "qwen3_moe": Decoder(qk_norm="per_head", windows=switched_windows, experts=Experts(qwen_steps)),
    "solar_open": Decoder(output_bias=False, experts=replace(DEEPSEEK_EXPERTS, layers=all_routed)),
}
