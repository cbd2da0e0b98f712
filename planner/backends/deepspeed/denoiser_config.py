"""The config of a diffusion transformer's diffusers class, and the samples that the emitted script feeds it."""

from __future__ import annotations

from typing import Any

from planner.model.denoiser import DenoiserSpec
from planner.model.spec import ModelSpec

PACKED_CLASSES = ("FluxTransformer2DModel", "LTXVideoTransformer3DModel", "QwenImageTransformer2DModel")
"""Classes that take latents already packed: tokens, then channels."""
FED_CLASSES = (*PACKED_CLASSES, "SD3Transformer2DModel", "WanTransformer3DModel")
"""Classes that the script feeds."""
_LONGEST = 1024


def denoiser_config(denoiser: DenoiserSpec) -> dict[str, Any]:
    """What ``from_config`` of the class reads; arguments left out are its defaults."""
    given = {key: list(value) if isinstance(value, tuple) else value for key, value in denoiser.config}
    return {"_class_name": denoiser.class_name, **given}


def why_not_fed(model: ModelSpec) -> str | None:
    """Why the script feeds this diffusion transformer no samples; None where it does."""
    denoiser = model.denoiser
    if denoiser is None or denoiser.class_name in FED_CLASSES:
        return None
    return f"the script feeds no {denoiser.class_name}; it feeds {', '.join(FED_CLASSES)}"


def drops_last_text(model: ModelSpec) -> bool:
    """Whether the last layer makes text that nothing reads, so that the weights behind it get no gradient.

    diffusers 0.42.1: transformer_qwenimage.py, and transformer_flux.py without single layers.
    """
    joint = model.layer_kinds[model.layer_runs[-1].kind].joint
    return joint is not None and not joint.text_ends


def longest_side(model: ModelSpec) -> int:
    """Tokens of one side: what the class's table of positions holds."""
    config = dict(model.denoiser.config) if model.denoiser else {}
    named = config.get("rope_max_seq_len") or config.get("pos_embed_max_size")
    if isinstance(named, int):
        return named
    return 96 if model.family == "SD3Transformer2DModel" else _LONGEST


def sample_shape(denoiser: DenoiserSpec, grid: tuple[int, int, int]) -> tuple[int, ...]:
    """Shape of one sample's latents as the class takes them."""
    volume = denoiser.patch[0] * denoiser.patch[1] * denoiser.patch[2]
    width, tokens = denoiser.entry[0].in_features, grid[0] * grid[1] * grid[2]
    if denoiser.class_name in PACKED_CLASSES:
        return tokens, width
    sides = tuple(size * patch for size, patch in zip(grid, denoiser.patch, strict=True))
    return (width // volume, *(sides if denoiser.class_name == "WanTransformer3DModel" else sides[1:]))
