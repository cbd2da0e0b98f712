"""The ``config.json`` of encoder-decoders: the T5 and BART kinds, without dropout.

What a class cannot be set to differs when the file is read back, and is refused (``model_config.why_not_buildable``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.model.spec import AttentionSpec, LayerSpec, ModelSpec

_TOKENS = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0, "use_cache": False}


def _sides(spec: ModelSpec) -> tuple[list[LayerSpec], list[LayerSpec]]:
    """The encoder's layers and the decoder's."""
    layers = [spec.layer_kinds[kind] for kind in spec.layer_kind_sequence()]
    first = spec.encoder.num_layers if spec.encoder else 0
    return layers[:first], layers[first:]


def _width(layer: LayerSpec) -> int:
    return layer.mlp.intermediate_size if layer.mlp else 1


def _t5(spec: ModelSpec) -> dict[str, Any]:
    encoder, decoder = _sides(spec)
    attention, mlp, activation = encoder[0].attention, encoder[0].mlp, spec.activation_function
    gated = mlp is not None and mlp.gated
    bias = attention.position_bias if isinstance(attention, AttentionSpec) else None
    return {
        "model_type": spec.family,
        "vocab_size": spec.vocab_size,
        "d_model": spec.hidden_size,
        "d_kv": attention.head_dim if isinstance(attention, AttentionSpec) else 1,
        "d_ff": _width(encoder[0]),
        "num_layers": len(encoder),
        "num_decoder_layers": len(decoder),
        "num_heads": attention.num_heads,
        "relative_attention_num_buckets": bias.buckets if bias else 1,
        # The class reads gated-gelu as the tanh form.
        "feed_forward_proj": f"gated-{'gelu' if activation == 'gelu_new' else activation}" if gated else activation,
        "layer_norm_epsilon": spec.norm_epsilon,
        "dropout_rate": 0.0,
        **_TOKENS,
    }


def _bart(spec: ModelSpec) -> dict[str, Any]:
    encoder, decoder = _sides(spec)
    sides: dict[str, Any] = {}
    for name, layers in (("encoder", encoder), ("decoder", decoder)):
        sides |= {
            f"{name}_layers": len(layers),
            f"{name}_attention_heads": layers[0].attention.num_heads,
            f"{name}_ffn_dim": _width(layers[0]),
            f"{name}_layerdrop": 0.0,
        }
    return {
        "model_type": spec.family,
        "vocab_size": spec.vocab_size,
        "d_model": spec.hidden_size,
        **sides,
        "max_position_embeddings": spec.max_sequence_length,
        "activation_function": spec.activation_function,
        "tie_word_embeddings": spec.tie_embeddings,
        **dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.0),
        "forced_eos_token_id": None,
        **_TOKENS,
    }


SEQ2SEQ_WRITERS: dict[str, Callable[[ModelSpec], dict[str, Any]]] = {
    **dict.fromkeys(("t5", "mt5", "umt5"), _t5),
    **dict.fromkeys(
        ("bart", "blenderbot", "blenderbot-small", "m2m_100", "marian", "mbart", "mvp", "pegasus", "plbart"), _bart
    ),
}
