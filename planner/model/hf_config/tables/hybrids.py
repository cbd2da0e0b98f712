"""Families whose layers mix tokens in more than one way; shapes of ``transformers`` 5.23 modeling files."""

from __future__ import annotations

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

_QWEN_DELTA = listed_mixers(gated_delta, attention_every("full_attention_interval"))
_QWEN_SHARED = "shared_expert_intermediate_size"
_INDEXED = Decoder(
    latent=True,
    head_dim=None,
    indexer=True,
    experts=Experts(
        dense_first("first_k_dense_replace"),
        count="n_routed_experts",
        shared="n_shared_experts",
        score_function="sigmoid",
        groups=True,
    ),
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
    "kimi_linear": Decoder(
        latent=True,
        head_dim=None,
        position="none",
        ties=False,
        mixers=listed_mixers(kimi_delta, kimi_attention),
        experts=Experts(
            dense_first("first_k_dense_replace"),
            count="num_local_experts",
            shared="n_shared_experts",
            score_function="sigmoid",
            groups=True,
        ),
    ),
    "lfm2": Decoder(
        head_dim=None,
        activation="",
        epsilon="norm_eps",
        qkv_bias=False,
        output_bias=False,
        qk_norm="per_head",
        dense_width=lfm2_width,
        mixers=listed_mixers(short_conv, attention_in_full_indices, ("conv",)),
    ),
    "lfm2_moe": Decoder(
        head_dim=None,
        activation="",
        epsilon="norm_eps",
        qkv_bias=False,
        output_bias=False,
        qk_norm="per_head",
        mixers=listed_mixers(short_conv, attention_in_full_indices, ("conv",)),
        experts=Experts(dense_first("num_dense_layers"), score_function="sigmoid"),
    ),
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
    "mamba2": Decoder(
        positions=None,
        position="none",
        epsilon="layer_norm_epsilon",
        without_mlp=True,
        mixers=listed_mixers(pure_mamba2, all_other),
    ),
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
    "qwen3_5_moe_text": Decoder(
        qk_norm="per_head",
        output_gate=True,
        mixers=_QWEN_DELTA,
        experts=Experts(all_routed, shared_width=_QWEN_SHARED, shared_gate=True),
    ),
    "qwen3_5_text": Decoder(qk_norm="per_head", output_gate=True, mixers=_QWEN_DELTA),
    "qwen3_next": Decoder(
        qk_norm="per_head",
        output_gate=True,
        mixers=_QWEN_DELTA,
        experts=Experts(qwen_steps, shared_width=_QWEN_SHARED, shared_gate=True),
    ),
}
