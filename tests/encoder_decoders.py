"""Small encoder-decoders for tests: a T5 as its config says it, and random ones."""

from __future__ import annotations

import random
from typing import Any

from planner.model.encoder import EncoderSpec
from planner.model.hf_config import model_from_hf_config
from planner.model.mixers.cross import CrossAttentionSpec
from planner.model.spec import AttentionSpec, LayerRun, LayerSpec, MlpSpec, ModelSpec

T5: dict[str, Any] = {
    "model_type": "t5",
    "d_model": 96,
    "d_kv": 16,
    "d_ff": 112,
    "num_heads": 6,
    "num_layers": 5,
    "num_decoder_layers": 4,
    "vocab_size": 1024,
}


def t5(**changes: Any) -> ModelSpec:
    """A small T5 with keys changed."""
    return model_from_hf_config(T5 | changes, "small", "config.json")


def random_encoder_decoder(draw: random.Random) -> ModelSpec:
    """Two to three layers on each side, of the same width or not, with heads that few degrees divide."""
    heads = draw.choice([4, 6, 8])
    hidden = heads * 128
    width = draw.choice([hidden, hidden, hidden // 2])

    def layer(decoder: bool) -> LayerSpec:
        own = hidden if decoder else width
        attention = AttentionSpec(
            num_heads=heads, num_kv_heads=heads, head_dim=own // heads, v_head_dim=own // heads, causal=decoder
        )
        cross = CrossAttentionSpec(num_heads=heads, num_kv_heads=heads, head_dim=128, source_width=width)
        return LayerSpec(
            attention=attention,
            cross=cross if decoder else None,
            mlp=MlpSpec(intermediate_size=own * draw.choice([2, 4]), gated=draw.random() < 0.5),
            num_norms=3 if decoder else 2,
        )

    encoder_layers = draw.randint(1, 3)
    return ModelSpec(
        name="random-encoder-decoder",
        family="custom",
        hidden_size=hidden,
        vocab_size=draw.choice([4_000, 32_000]),
        layer_kinds=(layer(False), layer(True)),
        layer_runs=(LayerRun(kind=0, count=encoder_layers), LayerRun(kind=1, count=draw.randint(1, 3))),
        tie_embeddings=draw.random() < 0.5,
        max_sequence_length=4096,
        position="none",
        encoder=EncoderSpec(num_layers=encoder_layers, num_kinds=1, hidden_size=width if width != hidden else None),
    )
