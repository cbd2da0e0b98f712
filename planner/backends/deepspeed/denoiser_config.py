"""The config of a diffusion transformer's diffusers class, and the samples that the emitted script feeds it."""

from __future__ import annotations

from math import isqrt
from typing import Any

from planner.model.denoiser import DenoiserSpec
from planner.model.diffusers_config import DENOISERS
from planner.model.spec import ModelSpec

PACKED_CLASSES = ("FluxTransformer2DModel", "LTXVideoTransformer3DModel", "QwenImageTransformer2DModel")
"""Classes that take latents already packed: tokens, then channels."""
_CHANNELS_FIRST = ("CosmosTransformer3DModel", "HunyuanVideoTransformer3DModel", "WanTransformer3DModel")
_FRAMES_FIRST = ("CogVideoXTransformer3DModel",)
SPLIT_CLASSES = ("FluxTransformer2DModel", "QwenImageTransformer2DModel", "WanTransformer3DModel")
"""Classes that say how ranks share a sample's tokens, and attend without a mask.

diffusers 0.42.1 ``_cp_plan``: transformer_flux.py:573, transformer_qwenimage.py:781, transformer_wan.py:545.  That of
LTX-Video cuts its mask of text too, which is then shorter than the text.
"""
_LONGEST = 1024


def denoiser_config(denoiser: DenoiserSpec) -> dict[str, Any]:
    """What ``from_config`` of the class reads; arguments left out are its defaults."""
    given = {key: list(value) if isinstance(value, tuple) else value for key, value in denoiser.config}
    return {"_class_name": denoiser.class_name, **given}


def drops_last_text(model: ModelSpec) -> bool:
    """Whether the last layer makes text that nothing reads, so that the weights behind it get no gradient.

    diffusers 0.42.1: transformer_qwenimage.py, and transformer_flux.py without single layers.
    """
    joint = model.layer_kinds[model.layer_runs[-1].kind].joint
    return joint is not None and not joint.text_ends


def longest_sides(model: ModelSpec) -> tuple[int, int, int]:
    """Frames, rows and columns of tokens that the class's tables of positions hold."""
    assert model.denoiser is not None
    config = arguments_of(model.denoiser)
    if "max_size" in config:
        frames, rows, columns = (
            size // step for size, step in zip(config["max_size"], model.denoiser.patch, strict=True)
        )
        return frames, rows, columns
    longest = config.get("rope_max_seq_len") or config.get("pos_embed_max_size") or _LONGEST
    if model.family == "AuraFlowTransformer2DModel":
        longest = isqrt(longest)
    return longest, longest, longest


def arguments_of(denoiser: DenoiserSpec) -> dict[str, Any]:
    """Every argument of the class."""
    known = DENOISERS.get(denoiser.class_name)
    return {**(known[0].defaults if known else {}), **dict(denoiser.config)}


def text_is_fixed(denoiser: DenoiserSpec) -> bool:
    """Whether the class takes one number of text tokens only.

    With a picture beside it (diffusers 0.42.1 transformer_wan.py:84), or where positions are added to text and latents
    together (cogvideox_transformer_3d.py, CogVideoXPatchEmbed).
    """
    config = arguments_of(denoiser)
    return config.get("image_dim") is not None or config.get("use_rotary_positional_embeddings") is False


def sample_shape(denoiser: DenoiserSpec, grid: tuple[int, int, int]) -> tuple[int, ...]:
    """Shape of one sample's latents as the class takes them."""
    if denoiser.class_name in PACKED_CLASSES:
        return grid[0] * grid[1] * grid[2], denoiser.entry[0].in_features
    frames, rows, columns = (size * patch for size, patch in zip(grid, denoiser.patch, strict=True))
    channels = arguments_of(denoiser)["in_channels"]
    if denoiser.class_name in _FRAMES_FIRST:
        return frames, channels, rows, columns
    return (channels, frames, rows, columns) if denoiser.class_name in _CHANNELS_FIRST else (channels, rows, columns)
