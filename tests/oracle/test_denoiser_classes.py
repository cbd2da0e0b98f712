"""Diffusion transformers against diffusers: parameters exactly, FLOPs within 0.5 % of torch's counter."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from planner.model.diffusers_config import DENOISERS, model_from_diffusers_config
from planner.model.flops import forward_flops_per_token
from planner.model.parameters import total_parameters

diffusers = pytest.importorskip("diffusers")
torch = pytest.importorskip("torch")

PERTURBED: dict[str, list[dict[str, Any]]] = {
    "WanTransformer3DModel": [
        {"num_layers": 30, "num_attention_heads": 12, "ffn_dim": 8960},  # Wan 2.1 1.3B
        {
            "num_layers": 30,
            "num_attention_heads": 24,
            "ffn_dim": 14336,
            "in_channels": 48,
            "out_channels": 48,
        },  # 2.2 5B
        {"num_layers": 2, "num_attention_heads": 6, "attention_head_dim": 96, "cross_attn_norm": False},
        {"num_layers": 3, "in_channels": 36, "text_dim": 768, "freq_dim": 128, "patch_size": [2, 2, 4]},
        {"in_channels": 36, "image_dim": 1280, "added_kv_proj_dim": 5120},  # Wan 2.1 I2V 14B
        {"num_layers": 2, "num_attention_heads": 6, "image_dim": 96, "added_kv_proj_dim": 768},
    ],
    "HunyuanVideoTransformer3DModel": [
        {"in_channels": 33, "image_condition_type": "latent_concat"},  # HunyuanVideo-I2V
        {"guidance_embeds": False, "num_layers": 2, "num_single_layers": 3, "num_refiner_layers": 1, "mlp_ratio": 3.0},
        {"num_layers": 0, "num_single_layers": 2, "num_attention_heads": 6, "patch_size_t": 2, "text_embed_dim": 512},
        {"num_layers": 3, "num_single_layers": 0, "pooled_projection_dim": 96, "out_channels": 8},
    ],
    "AuraFlowTransformer2DModel": [
        {"pos_embed_max_size": 4096},  # AuraFlow 0.2
        {"num_mmdit_layers": 2, "num_single_dit_layers": 0, "joint_attention_dim": 512, "out_channels": 8},
        {
            "num_mmdit_layers": 1,
            "num_single_dit_layers": 3,
            "num_attention_heads": 6,
            "attention_head_dim": 64,
            "caption_projection_dim": 384,
        },
    ],
    "CosmosTransformer3DModel": [
        {"num_layers": 36, "num_attention_heads": 40},  # Cosmos 1.0 14B
        {"in_channels": 17, "extra_pos_embed_type": None, "num_layers": 3, "adaln_lora_dim": 64},
        {"num_layers": 2, "text_embed_dim": 512, "mlp_ratio": 3.0, "max_size": [32, 64, 64], "out_channels": 8},
    ],
    "FluxTransformer2DModel": [
        {"guidance_embeds": True},  # FLUX.1-dev
        {"num_layers": 3, "num_single_layers": 0, "num_attention_heads": 6, "in_channels": 32},
        {"num_layers": 0, "num_single_layers": 4, "attention_head_dim": 64, "axes_dims_rope": [8, 28, 28]},
        {"num_layers": 2, "num_single_layers": 3, "joint_attention_dim": 512, "out_channels": 16},
    ],
    "LTXVideoTransformer3DModel": [
        {"num_layers": 48, "attention_head_dim": 128, "cross_attention_dim": 4096},  # LTX-Video 0.9.7 13B
        {"num_layers": 3, "norm_elementwise_affine": True, "attention_bias": False},
        {"num_layers": 2, "attention_out_bias": False, "caption_channels": 1024, "in_channels": 64},
    ],
    "CogVideoXTransformer3DModel": [
        {"num_attention_heads": 48, "num_layers": 42, "use_rotary_positional_embeddings": True},  # CogVideoX-5b
        {"num_layers": 2, "patch_size_t": 2, "ofs_embed_dim": 512, "use_rotary_positional_embeddings": True},
        {"num_layers": 2, "attention_bias": False, "norm_elementwise_affine": False, "patch_bias": False},
        {"num_layers": 3, "time_embed_dim": 256, "text_embed_dim": 768, "out_channels": 8},
    ],
    "SD3Transformer2DModel": [
        {"num_layers": 24, "num_attention_heads": 24, "caption_projection_dim": 1536, "pos_embed_max_size": 192},  # 3.0
        {"num_layers": 38, "num_attention_heads": 38, "caption_projection_dim": 2432, "qk_norm": "rms_norm"},  # 3.5
        {"num_layers": 4, "joint_attention_dim": 512, "pooled_projection_dim": 96, "out_channels": 4},
    ],
    "QwenImageTransformer2DModel": [
        {"num_layers": 3, "num_attention_heads": 8},
        {"num_layers": 2, "joint_attention_dim": 512, "in_channels": 32, "out_channels": 8},
    ],
    "PixArtTransformer2DModel": [
        {"caption_channels": 4096},  # PixArt-XL-2-1024-MS
        {"caption_channels": 4096, "sample_size": 64, "use_additional_conditions": False},
        {"num_layers": 2, "attention_bias": False, "out_channels": 4, "use_additional_conditions": True},
    ],
}
LAYERS, MOST_LAYERS = ("num_layers", "num_single_layers", "num_mmdit_layers", "num_single_dit_layers"), 4
"""Of the counted pass: torch's counter takes a minute for the sixty layers of Qwen-Image."""
WITHOUT_A_MASK = {"CosmosTransformer3DModel": {"concat_padding_mask": False}}
"""In the counted pass: torchvision, which is not installed here, scales the mask."""
CASES = [(kind, changes) for kind in DENOISERS for changes in ({}, *PERTURBED[kind])]


def _built(kind: str, changes: dict[str, Any]) -> Any:
    with torch.device("meta"):
        return getattr(diffusers, kind)(**changes)


@pytest.mark.parametrize("kind", DENOISERS)
def test_table_has_every_argument_of_the_class_with_its_default(kind: str) -> None:
    signature = inspect.signature(getattr(diffusers, kind).__init__)
    known = {name: each.default for name, each in signature.parameters.items() if name != "self"}
    assert dict(DENOISERS[kind][0].defaults) == known


@pytest.mark.parametrize(("kind", "changes"), CASES)
def test_parameters_are_those_of_the_class(kind: str, changes: dict[str, Any]) -> None:
    spec = model_from_diffusers_config({"_class_name": kind, **changes}, "m", "test")
    module = _built(kind, changes)
    assert total_parameters(spec) == sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize(("kind", "changes"), CASES)
def test_flops_of_a_forward_pass_are_those_of_torchs_counter(kind: str, changes: dict[str, Any]) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    from tests.oracle.denoiser_inputs import SAMPLES

    layers = {
        key: min(changes.get(key, MOST_LAYERS), MOST_LAYERS) for key in LAYERS if key in DENOISERS[kind][0].defaults
    }
    changes = changes | layers | WITHOUT_A_MASK.get(kind, {})
    spec = model_from_diffusers_config({"_class_name": kind, **changes}, "m", "test")
    module = _built(kind, changes)
    assert spec.denoiser is not None
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        sample = SAMPLES[kind](module.config)
        module(**sample.inputs)
    source = sample.source_tokens
    tokens = sample.latent_tokens + (source if spec.denoiser.text_in_sequence else 0)
    predicted = tokens * forward_flops_per_token(spec, tokens, source_length=source)
    assert predicted == pytest.approx(counter.get_total_flops(), rel=0.005)
