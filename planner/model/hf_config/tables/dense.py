"""Dense decoders with RMS norm and a gated MLP, mostly; shapes of ``transformers`` 5.23 modeling files."""

from __future__ import annotations

from planner.model.hf_config.decoder import Decoder
from planner.model.hf_config.layer_rules import every_layer, full_every, listed, one_window, switched_windows
from planner.model.hf_config.tables.bases import LATENT

_LLAMA = Decoder(divided_heads=True, mlp_bias="mlp_bias")
_BIASED = Decoder(mlp_bias="mlp_bias")
_MISTRAL = Decoder(divided_heads=True, qkv_bias=False, output_bias=False, windows=one_window)
_MINISTRAL = Decoder(qkv_bias=False, output_bias=False, windows=every_layer)

DENSE: dict[str, Decoder] = {
    "arcee": Decoder(gated=False, mlp_bias="mlp_bias"),
    "cohere_compass_text": Decoder(norm="layer_no_bias", parallel=True, epsilon="layer_norm_eps", windows=listed),
    "cwm": Decoder(qkv_bias=False, output_bias=False, windows=full_every(4, first_full=True)),
    "ernie4_5": Decoder(qkv_bias="use_bias", output_bias="use_bias", mlp_bias="use_bias"),
    "exaone4": Decoder(
        qkv_bias=False,
        output_bias=False,
        qk_norm="per_head",
        norm_placement="post_branch",
        windows=full_every("sliding_window_pattern"),
    ),
    "gemma": Decoder(),
    "glm": Decoder(output_bias=False),
    "glm4": Decoder(output_bias=False, num_norms=4),
    "granite": _LLAMA,
    "granite_swa": Decoder(head_dim=None, mlp_bias="mlp_bias", sinks=True, windows=full_every(4, first_full=True)),
    "helium": Decoder(output_bias=False, mlp_bias="mlp_bias", even_heads=True),
    "hunyuan_v1_dense": Decoder(qk_norm="per_head"),
    "hyperclovax": Decoder(mlp_bias="mlp_bias", four_norms="use_post_norm"),
    "internlm3": _BIASED,
    "iquestcoder": _BIASED,
    "jais2": Decoder(norm="layer", gated=False, mlp_bias="mlp_bias", epsilon="layer_norm_eps"),
    "llama": _LLAMA,
    "minicpm3": LATENT,
    "ministral": _MINISTRAL,
    "ministral3": _MINISTRAL,
    "mistral": _MISTRAL,
    "nanochat": Decoder(norm="none_affine", head_dim=None, gated=False),
    "nemotron": Decoder(norm="layer", gated=False, mlp_bias="mlp_bias", epsilon="norm_eps"),
    "olmo": Decoder(norm="none_affine", head_dim=None, epsilon=None),
    "olmo2": Decoder(divided_heads=True, qk_norm="full_width", norm_placement="post_branch"),
    "olmo3": Decoder(head_dim=None, qk_norm="full_width", norm_placement="post_branch", windows=full_every(4)),
    "phi3": _MISTRAL,
    "qwen2": Decoder(divided_heads=True, qkv_bias=True, output_bias=False, windows=switched_windows),
    "qwen3": Decoder(qk_norm="per_head", windows=switched_windows),
    "seed_oss": Decoder(output_bias="attention_out_bias", mlp_bias="mlp_bias"),
    "smollm3": Decoder(head_dim=None, mlp_bias="mlp_bias", windows=listed),
    "vaultgemma": Decoder(softcap="attn_logit_softcapping", activation="hidden_activation", windows=full_every(2)),
    "youtu": LATENT,
}
"""``smollm3`` and ``exaone4`` leave rotary positions out of some layers: no parameter differs."""
