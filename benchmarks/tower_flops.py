"""Torch's FLOPs of an audio or vision tower, for the survey of model types."""

from __future__ import annotations

import inspect
import math
from typing import Any

from planner.model.hf_config.audio_towers import REFERENCE_FRAMES
from planner.model.spec import ModelSpec


def vision_flops(model: Any, spec: ModelSpec) -> int:
    """Torch's count for one image through the vision tower and its projector, on the CPU.

    A square image: of the side that the class fixes, or of as many patches as the description counts.
    """
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    if spec.vision is None:
        raise ValueError(f"{spec.name} has no vision tower")
    vision = model.config.vision_config
    work = getattr(model, "get_image_features", None) or model.model.get_image_features
    asked = inspect.signature(work).parameters
    patch = _side(getattr(vision, "patch_size", 1))
    if "image_grid_thw" in asked:
        side = math.isqrt(spec.vision.patches_per_image)
        channels = int(getattr(vision, "in_channels", getattr(vision, "num_channels", 3)))
        width = channels * int(getattr(vision, "temporal_patch_size", 1)) * patch**2
        known = {"pixel_values": torch.zeros(side**2, width), "image_grid_thw": torch.tensor([[1, side, side]])}
    else:
        free = math.isqrt(spec.vision.patches_per_image) * patch
        side = free if "image_sizes" in asked else _side(vision.image_size)
        # Where a sample may hold several images, they have a dimension of their own.
        shape = (1, 1, 3, side, side) if "pixel_attention_mask" in asked else (1, 3, side, side)
        known = {"pixel_values": torch.zeros(shape), "image_sizes": torch.tensor([[side, side]])}
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        work(**{name: value for name, value in known.items() if name in asked})
    return int(counter.get_total_flops())


def _side(size: Any) -> int:
    """Of a square that a configuration gives by one number or by two."""
    return int(size[0] if isinstance(size, list | tuple) else size)


def tower_flops(model: Any, spec: ModelSpec) -> int:
    """Torch's count for one clip through the audio tower and its projector, on the CPU."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    (tower,) = spec.further_towers
    audio = getattr(model.config, "audio_config", None) or model.config.encoder_config
    # Whisper's convolutions halve the frames; the others take chunks of a reference clip, or their inputs as they are.
    positions = getattr(audio, "max_source_positions", None) or getattr(audio, "max_position_embeddings", 0)
    units = tower.runs[0].units_per_item
    frames = 2 * positions if positions == units else REFERENCE_FRAMES
    whole = hasattr(audio, "input_dim")
    known = {
        "input_features": torch.zeros(1, units, audio.input_dim)
        if whole
        else torch.zeros(1, audio.num_mel_bins, frames),
        "input_features_mask": torch.ones(1, frames, dtype=torch.long),
        "padding_mask": torch.ones(1, 160 * frames, dtype=torch.long),
        "input_ids": torch.full((1, tower.tokens_per_item), getattr(model.config, "audio_token_id", None) or 0),
        "feature_attention_mask": torch.ones(1, frames, dtype=torch.long),
    }
    inner = getattr(model, "model", model)
    work = getattr(inner, "get_audio_features", None)
    if work is None:  # the class has no method for it

        def work(input_features: Any) -> Any:
            return inner.multi_modal_projector(inner.audio_tower(input_features).last_hidden_state)

    asked = {name: value for name, value in known.items() if name in inspect.signature(work).parameters}
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        work(**asked)
    return int(counter.get_total_flops())
