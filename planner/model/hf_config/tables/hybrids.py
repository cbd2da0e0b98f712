"""Families whose layers mix tokens in more than one way; shapes of ``transformers`` 5.23 modeling files."""

from __future__ import annotations

from dataclasses import replace

from planner.model.hf_config.decoder import Decoder, Experts
from planner.model.hf_config.layer_forms import attention_gate, every
from planner.model.hf_config.layer_rules import (
    all_routed,
    dense_first,
    granite_routed,
    jamba_routed,
    lfm3_windows,
    qwen_steps,
)
from planner.model.hf_config.mixer_rules import (
    all_other,
    attention_at_indices,
    attention_every,
    attention_in_full_indices,
    falcon_mamba2,
    gated_delta,
    granite_mamba2,
    jamba_attention,
    jamba_mamba1,
    kimi_attention,
    kimi_delta,
    lfm2_width,
    lfm3_conv,
    lfm3_layers,
    lightning,
    listed_mixers,
    olmo_attention,
    pure_mamba1,
    pure_mamba2,
    short_conv,
)
from planner.model.hf_config.tables.bases import DEEPSEEK_EXPERTS, LATENT

_QWEN = Decoder(
    qk_norm="per_head",
    output_gate=True,
    mixers=listed_mixers(gated_delta, attention_every("full_attention_interval")),
)
_QWEN_EXPERTS = Experts(all_routed, shared_width="shared_expert_intermediate_size", shared_gate=True)
_INDEXED = replace(
    LATENT,
    indexer=True,
    experts=DEEPSEEK_EXPERTS,
    predicted_layers="num_nextn_predict_layers",
    without_parameters=("mlp_bias",),
)
_MAMBA = Decoder(
    positions=None,
    position="none",
    epsilon="layer_norm_epsilon",
    without_mlp=True,
    mixers=listed_mixers(pure_mamba1, all_other),
)
_LFM2 = Decoder(
    head_dim=None,
    activation="",
    epsilon="norm_eps",
    qkv_bias=False,
    output_bias=False,
    qk_norm="per_head",
    mixers=listed_mixers(short_conv, attention_in_full_indices, ("conv",)),
)

HYBRIDS: dict[str, Decoder] = {
    "bamba": Decoder(head_dim=None, mlp_bias="mlp_bias", mixers=listed_mixers(granite_mamba2, attention_at_indices)),
    "deepseek_v32": _INDEXED,
    "falcon_h1": Decoder(head_dim=None, mlp_bias="mlp_bias", beside=falcon_mamba2),
    "falcon_mamba": _MAMBA,
    "glm_moe_dsa": _INDEXED,
    "granitemoehybrid": Decoder(
        head_dim=None,
        position="none",
        dense_intermediate="shared_intermediate_size",
        mixers=listed_mixers(granite_mamba2, all_other),
        experts=Experts(
            granite_routed,
            count="num_local_experts",
            width="intermediate_size",
            shared_width="shared_intermediate_size",
        ),
    ),
    "jamba": Decoder(
        head_dim=None,
        qkv_bias=False,
        output_bias=False,
        position="none",
        mixers=listed_mixers(jamba_mamba1, jamba_attention),
        experts=Experts(jamba_routed, width="intermediate_size"),
    ),
    "kimi_linear": replace(
        LATENT,
        position="none",
        ties=False,
        mixers=listed_mixers(kimi_delta, kimi_attention),
        experts=replace(DEEPSEEK_EXPERTS, count="num_local_experts"),
    ),
    "lfm2": replace(_LFM2, dense_width=lfm2_width),
    "lfm2_moe": replace(_LFM2, experts=Experts(dense_first("num_dense_layers"), score_function="sigmoid")),
    "lfm3": Decoder(
        activation="",
        epsilon="norm_eps",
        qk_norm="per_head",
        four_norms="use_sandwich_norm",
        mixers=listed_mixers(lfm3_conv, lfm3_layers, ("conv",), attention=("full_attention", "sliding_attention")),
        windows=lfm3_windows,
        shaped=every(attention_gate(per_head=True, switch="use_attention_gate")),
    ),
    "mamba": _MAMBA,
    "mamba2": replace(_MAMBA, mixers=listed_mixers(pure_mamba2, all_other)),
    "minimax": Decoder(
        qkv_bias=False,
        output_bias=False,
        mixers=listed_mixers(lightning, attention_every(2)),
        experts=Experts(all_routed, count="num_local_experts", width="intermediate_size"),
    ),
    "olmo_hybrid": Decoder(
        head_dim=None,
        qk_norm="full_width",
        norm_placement="post_branch",
        mixers=listed_mixers(gated_delta, olmo_attention),
        mixer_norm_placement="pre",
    ),
    "qwen3_5_moe_text": replace(_QWEN, experts=_QWEN_EXPERTS),
    "qwen3_5_text": _QWEN,
    "qwen3_next": replace(_QWEN, experts=replace(_QWEN_EXPERTS, layers=qwen_steps)),
}
