"""Recurrent families, shared transformer blocks and attention made of experts; shapes of ``transformers`` 5.23."""

from __future__ import annotations

from planner.model.hf_config.decoder import Decoder, Experts
from planner.model.hf_config.layer_forms import every
from planner.model.hf_config.layer_rules import all_routed
from planner.model.hf_config.recurrent_forms import (
    channel_mix,
    cpmant_tables,
    expert_attention,
    experts_bias,
    griffin_mixers,
    griffin_windows,
    half_width,
    mlstm_mixers,
    wkv_mixers,
    xlstm_width,
    zamba2_blocks,
    zamba2_mixers,
    zamba_blocks,
    zamba_mixers,
)

RECURRENT: dict[str, Decoder] = {
    "cpmant": Decoder(
        kv_heads=None,
        head_dim="dim_head",
        intermediate="dim_ff",
        positions=None,
        position="none",
        activation="",
        epsilon="eps",
        qkv_bias=False,
        output_bias=False,
        ties=False,
        ends=cpmant_tables,
    ),
    "jetmoe": Decoder(
        activation="activation_function",
        qkv_bias=False,
        output_bias=False,
        mixers=expert_attention,
        experts=Experts(all_routed, count="num_local_experts", width="intermediate_size"),
        shaped=every(experts_bias),
    ),
    "recurrent_gemma": Decoder(
        positions=None,
        activation="hidden_activation",
        output_bias=True,
        mlp_bias=True,
        dense_width=half_width,
        mixers=griffin_mixers,
        windows=griffin_windows,
    ),
    "rwkv": Decoder(
        positions="context_length",
        position="none",
        activation="",
        epsilon="layer_norm_epsilon",
        norm="layer",
        embedding_norm=True,
        gated=False,
        qkv_bias=False,
        output_bias=False,
        mixers=wkv_mixers,
        shaped=every(channel_mix),
    ),
    "xlstm": Decoder(
        positions=None,
        position="none",
        activation="",
        epsilon="norm_eps",
        qkv_bias=False,
        output_bias=False,
        ties=False,
        refused=(("use_bias", "biases of norms and projections"),),
        dense_width=xlstm_width,
        mixers=mlstm_mixers,
    ),
    "zamba": Decoder(position="none", without_mlp=True, mixers=zamba_mixers, shaped=zamba_blocks),
    "zamba2": Decoder(position="none", without_mlp=True, mixers=zamba2_mixers, shaped=zamba2_blocks),
}
