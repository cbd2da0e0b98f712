"""The small form of a diffusion transformer: its class with small arguments, read as any other config."""

from __future__ import annotations

from planner.model.diffusers_config import model_from_diffusers_config
from planner.model.spec import ModelSpec

TEXT_TOKENS = 8
_HEADS, _HEAD_DIM, _NARROW = 4, 16, 32
_WIDTH = _HEADS * _HEAD_DIM
_SMALL: dict[str, dict[str, object]] = {
    "AuraFlowTransformer2DModel": {"caption_projection_dim": _WIDTH, "joint_attention_dim": _NARROW},
    "CogVideoXTransformer3DModel": {
        "time_embed_dim": _NARROW,
        "text_embed_dim": _NARROW,
        "max_text_seq_length": TEXT_TOKENS,
    },
    # The mask of padding is scaled by torchvision, which a small form does without.
    "CosmosTransformer3DModel": {"text_embed_dim": _NARROW, "adaln_lora_dim": 8, "concat_padding_mask": False},
    "HunyuanVideoTransformer3DModel": {
        "text_embed_dim": _NARROW,
        "pooled_projection_dim": _NARROW,
        "rope_axes_dim": [4, 6, 6],
    },
    "PixArtTransformer2DModel": {"cross_attention_dim": _WIDTH, "caption_channels": _NARROW, "sample_size": 32},
    "WanTransformer3DModel": {"ffn_dim": 4 * _WIDTH, "text_dim": _NARROW, "freq_dim": _NARROW},
    "LTXVideoTransformer3DModel": {"cross_attention_dim": _WIDTH, "caption_channels": _NARROW},
    "FluxTransformer2DModel": {
        "joint_attention_dim": _NARROW,
        "pooled_projection_dim": _NARROW,
        "axes_dims_rope": [4, 6, 6],
    },
    "SD3Transformer2DModel": {
        "caption_projection_dim": _WIDTH,
        "joint_attention_dim": _NARROW,
        "pooled_projection_dim": _NARROW,
    },
    "QwenImageTransformer2DModel": {"joint_attention_dim": _NARROW, "axes_dims_rope": [4, 6, 6]},
}
"""Widths by class; channels, patches, biases and norms stay."""
_OF_TWO_KINDS = {
    "AuraFlowTransformer2DModel": ("num_mmdit_layers", "num_single_dit_layers"),
    "FluxTransformer2DModel": ("num_layers", "num_single_layers"),
    "HunyuanVideoTransformer3DModel": ("num_layers", "num_single_layers"),
}
"""Arguments that count layers of two streams and of one."""


def tiny_sample(model: ModelSpec) -> tuple[tuple[int, int, int], int]:
    """Frames, height and width of a sample of 32 latent tokens, and its whole sequence."""
    assert model.denoiser is not None
    (time, space), patch = model.denoiser.compression, model.denoiser.patch
    grid = (1, 4, 8) if model.denoiser.usual_sample[0] == 1 else (2, 4, 4)
    frames = (grid[0] * patch[0] - 1) * time + 1
    sample = (frames, grid[1] * space * patch[1], grid[2] * space * patch[2])
    return sample, model.denoiser.sample_tokens(*sample, tiny_text(model))


def tiny_text(model: ModelSpec) -> int:
    """Text tokens of a sample; where a picture stands beside them, the class takes no fewer than it does."""
    assert model.denoiser is not None
    return model.denoiser.text_tokens if dict(model.denoiser.config).get("image_dim") else TEXT_TOKENS


def tiny_denoiser(model: ModelSpec, num_layers: int) -> ModelSpec:
    """``model`` with ``num_layers`` small layers; of layers of one and of two streams some stay, where it has both."""
    assert model.denoiser is not None
    kind, config = model.denoiser.class_name, dict(model.denoiser.config)
    layers: dict[str, object] = {"num_layers": num_layers}
    if kind in _OF_TWO_KINDS:
        joint = sum(run.count for run in model.layer_runs if model.layer_kinds[run.kind].joint is not None)
        double = max(1, min(num_layers - 1, round(num_layers * joint / model.num_layers))) if joint else 0
        double = num_layers if joint == model.num_layers else double
        layers = dict(zip(_OF_TWO_KINDS[kind], (double, num_layers - double), strict=True))
    heads = {"num_attention_heads": _HEADS, "attention_head_dim": _HEAD_DIM}
    picture = {"image_dim": _NARROW, "added_kv_proj_dim": _WIDTH} if config.get("image_dim") else {}
    data = {"_class_name": kind, **config, **heads, **layers, **_SMALL[kind], **picture}
    return model_from_diffusers_config(data, f"tiny-{model.name}", "the small form")
