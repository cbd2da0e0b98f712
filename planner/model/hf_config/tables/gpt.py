"""Decoders with layer norm or a plain MLP, the older ones; shapes of ``transformers`` 5.23 modeling files."""

from __future__ import annotations

from dataclasses import replace

from planner.model.hf_config.decoder import Decoder
from planner.model.hf_config.layer_rules import every_layer, full_every
from planner.model.hf_config.relative_forms import masked_token, relative_mixers, with_segments
from planner.model.hf_config.tables.bases import OLDER

_OF_GPT = replace(
    OLDER,
    hidden="n_embd",
    layers="n_layer",
    heads="n_head",
    intermediate="n_inner",
    positions="n_positions",
    activation="activation_function",
    epsilon="layer_norm_epsilon",
)
_GPTJ = replace(_OF_GPT, qkv_bias=False, output_bias=False, parallel=True, rotary_dim="rotary_dim", head_bias=True)
_LEARNED = replace(OLDER, position="learned", learned_positions=True)

GPT: dict[str, Decoder] = {
    "biogpt": replace(_LEARNED, extra_positions=2),
    "codegen": _GPTJ,
    "cohere": Decoder(
        norm="layer_no_bias",
        parallel=True,
        epsilon="layer_norm_eps",
        head_dim=None,
        qk_norm="full_width",
        qk_norm_key="use_qk_norm",
    ),
    "cohere2": Decoder(norm="layer_no_bias", parallel=True, epsilon="layer_norm_eps", windows=full_every(4)),
    "ctrl": replace(_OF_GPT, intermediate="dff", activation="hidden_act", position="none", head_bias=True),
    "gptj": _GPTJ,
    "gpt2": replace(
        _OF_GPT, position="learned", learned_positions=True, refused=(("add_cross_attention", "cross-attention"),)
    ),
    "gpt_neo": replace(
        _LEARNED,
        layers="num_layers",
        heads="num_heads",
        activation="activation_function",
        epsilon="layer_norm_epsilon",
        qkv_bias=False,
    ),
    "openai-gpt": replace(
        _OF_GPT,
        activation="afn",
        norm_placement="post_residual",
        position="learned",
        learned_positions=True,
        final_norm=False,
    ),
    "persimmon": replace(OLDER, qk_norm="per_head", qk_norm_key="qk_layernorm", qk_norm_bias=True),
    "phi": replace(
        OLDER,
        kv_heads="num_key_value_heads",
        qk_norm="per_head",
        qk_norm_key="qk_layernorm",
        qk_norm_bias=True,
        parallel=True,
        head_bias=True,
    ),
    "stablelm": Decoder(
        head_dim=None,
        qkv_bias="use_qkv_bias",
        output_bias=False,
        norm="layer",
        parallel="use_parallel_residual",
        epsilon="layer_norm_eps",
        refused=(("qk_layernorm", "a norm of its own for each head"),),
    ),
    "starcoder2": replace(
        OLDER,
        kv_heads="num_key_value_heads",
        qkv_bias="use_bias",
        output_bias="use_bias",
        mlp_bias="use_bias",
        windows=every_layer,
        epsilon="norm_epsilon",
    ),
    "xglm": replace(
        OLDER,
        hidden="d_model",
        layers="num_layers",
        heads="attention_heads",
        intermediate="ffn_dim",
        activation="activation_function",
        epsilon=None,
        position="none",
        refused=(("add_cross_attention", "cross-attention"),),
    ),
    "xlnet": replace(
        OLDER,
        hidden="d_model",
        layers="n_layer",
        heads="n_head",
        intermediate="d_inner",
        positions=None,
        activation="ff_activation",
        qkv_bias=False,
        output_bias=False,
        mixers=relative_mixers,
        shaped=with_segments,
        ends=masked_token,
        norm_placement="post_residual",
        position="none",
        final_norm=False,
        head_bias=True,
    ),
}
"""``ctrl`` and ``xglm`` add sinusoids that are not learned; ``gpt_neo``'s local layers are counted as full ones."""
