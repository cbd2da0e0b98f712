"""Meta-device inputs of diffusers classes: one sample of latents with its text, and the tokens that it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

TEXT = 64
"""Text tokens of a sample."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What ``forward`` takes, and the latent tokens of it."""

    inputs: dict[str, Any]
    latent_tokens: int
    source_tokens: int = TEXT
    """Text, and what stands beside it."""


def _text(config: Any, width: str) -> torch.Tensor:
    return torch.empty(1, TEXT, config[width])


def _time() -> torch.Tensor:
    return torch.empty(1)


def _video(config: Any, patch: tuple[int, int, int], frames: int = 4, rows: int = 32) -> tuple[torch.Tensor, int]:
    shape = (frames * patch[0], rows * patch[1], rows * patch[2])
    return torch.empty(1, config["in_channels"], *shape), frames * rows * rows


def wan(config: Any) -> Sample:
    """Latents as channels, frames, rows, columns."""
    latents, tokens = _video(config, tuple(config["patch_size"]))
    inputs = {"hidden_states": latents, "timestep": _time(), "encoder_hidden_states": _text(config, "text_dim")}
    if config["image_dim"] is None:
        return Sample(inputs, tokens)
    inputs["encoder_hidden_states"] = torch.empty(1, 512, config["text_dim"])
    inputs["encoder_hidden_states_image"] = torch.empty(1, 257, config["image_dim"])
    return Sample(inputs, tokens, 512 + 257)


def hunyuan_video(config: Any) -> Sample:
    """Latents as channels, frames, rows, columns; no text is masked."""
    patch = config["patch_size_t"], config["patch_size"], config["patch_size"]
    latents, tokens = _video(config, patch)
    inputs = {
        "hidden_states": latents,
        "timestep": _time(),
        "encoder_hidden_states": _text(config, "text_embed_dim"),
        "encoder_attention_mask": torch.ones(1, TEXT),
        "pooled_projections": torch.empty(1, config["pooled_projection_dim"]),
        "guidance": _time() if config["guidance_embeds"] else None,
    }
    return Sample(inputs, tokens)


def cosmos(config: Any) -> Sample:
    """Latents as channels, frames, rows, columns, without a mask of padding."""
    latents, tokens = _video(config, tuple(config["patch_size"]))
    text = _text(config, "text_embed_dim")
    return Sample({"hidden_states": latents, "timestep": _time(), "encoder_hidden_states": text, "fps": 24}, tokens)


def auraflow(config: Any) -> Sample:
    """A picture as large as the table of positions; eight registers stand before the text."""
    rows = int(config["pos_embed_max_size"] ** 0.5)
    size = rows * config["patch_size"]
    inputs = {
        "hidden_states": torch.empty(1, config["in_channels"], size, size),
        "encoder_hidden_states": _text(config, "joint_attention_dim"),
        "timestep": _time(),
    }
    return Sample(inputs, rows * rows, TEXT + 8)


def ltx(config: Any) -> Sample:
    """Latents already packed."""
    tokens = 4 * 32 * 32
    inputs = {
        "hidden_states": torch.empty(1, tokens, config["in_channels"]),
        "timestep": _time(),
        "encoder_hidden_states": _text(config, "caption_channels"),
        "encoder_attention_mask": torch.empty(1, TEXT),
        "num_frames": 4,
        "height": 32,
        "width": 32,
    }
    return Sample(inputs, tokens)


def pixart(config: Any) -> Sample:
    """A picture of the size of the class's table of positions."""
    size = config["sample_size"]
    width = "cross_attention_dim" if config["caption_channels"] is None else "caption_channels"
    inputs = {
        "hidden_states": torch.empty(1, config["in_channels"], size, size),
        "timestep": _time(),
        "encoder_hidden_states": _text(config, width),
        "added_cond_kwargs": {"resolution": torch.empty(1, 2), "aspect_ratio": torch.empty(1, 1)},
    }
    return Sample(inputs, (size // config["patch_size"]) ** 2)


def flux(config: Any) -> Sample:
    """Latents packed by two rows and columns."""
    tokens = 64 * 64
    inputs = {
        "hidden_states": torch.empty(1, tokens, config["in_channels"]),
        "encoder_hidden_states": _text(config, "joint_attention_dim"),
        "pooled_projections": torch.empty(1, config["pooled_projection_dim"]),
        "timestep": _time(),
        "img_ids": torch.empty(tokens, 3),
        "txt_ids": torch.empty(TEXT, 3),
        "guidance": _time() if config["guidance_embeds"] else None,
    }
    return Sample(inputs, tokens)


def sd3(config: Any) -> Sample:
    """A picture no larger than the table of positions."""
    rows = min(config["pos_embed_max_size"], 64)
    size = rows * config["patch_size"]
    inputs = {
        "hidden_states": torch.empty(1, config["in_channels"], size, size),
        "encoder_hidden_states": _text(config, "joint_attention_dim"),
        "pooled_projections": torch.empty(1, config["pooled_projection_dim"]),
        "timestep": _time(),
    }
    return Sample(inputs, rows * rows)


def qwen_image(config: Any) -> Sample:
    """Latents packed by two rows and columns."""
    inputs = {
        "hidden_states": torch.empty(1, 64 * 64, config["in_channels"]),
        "encoder_hidden_states": _text(config, "joint_attention_dim"),
        "encoder_hidden_states_mask": None,
        "timestep": _time(),
        "img_shapes": [[(1, 64, 64)]],
    }
    return Sample(inputs, 64 * 64)


def cogvideox(config: Any) -> Sample:
    """Frames before channels; rotary positions come from outside."""
    patch, frames = config["patch_size"], config["patch_size_t"] or 1
    count, rows, columns = 4 * frames, config["sample_height"], config["sample_width"]
    tokens = 4 * (rows // patch) * (columns // patch)
    rotary = (torch.empty(tokens, config["attention_head_dim"]),) * 2
    inputs = {
        "hidden_states": torch.empty(1, count, config["in_channels"], rows, columns),
        "encoder_hidden_states": torch.empty(1, config["max_text_seq_length"], config["text_embed_dim"]),
        "timestep": _time(),
        "image_rotary_emb": rotary if config["use_rotary_positional_embeddings"] else None,
        "ofs": _time() if config["ofs_embed_dim"] else None,
    }
    return Sample(inputs, tokens, config["max_text_seq_length"])


SAMPLES: dict[str, Callable[[Any], Sample]] = {
    "AuraFlowTransformer2DModel": auraflow,
    "CogVideoXTransformer3DModel": cogvideox,
    "CosmosTransformer3DModel": cosmos,
    "FluxTransformer2DModel": flux,
    "HunyuanVideoTransformer3DModel": hunyuan_video,
    "LTXVideoTransformer3DModel": ltx,
    "PixArtTransformer2DModel": pixart,
    "QwenImageTransformer2DModel": qwen_image,
    "SD3Transformer2DModel": sd3,
    "WanTransformer3DModel": wan,
}
