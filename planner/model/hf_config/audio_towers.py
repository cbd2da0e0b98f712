"""Audio towers: convolutions over log-mel frames, then a transformer encoder.  One function a kind of tower.

Shapes: ``transformers`` 5.23 modeling files.  A clip is what the encoder's positions hold (30 s of Whisper's 3,000 mel
frames), or ``REFERENCE_FRAMES`` where a tower takes any length.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.layers import divided_heads
from planner.model.hf_config.vision_towers import vision_layer
from planner.model.spec import AttentionSpec, TowerRun, TowerSpec

REFERENCE_FRAMES = 3000
"""Mel frames of a clip where a tower takes any number: 30 s at 100 frames a second."""
KERNEL = 3


@dataclass(frozen=True, slots=True)
class AudioTower:
    """A tower without projector: its layers, its output, and what is not a layer."""

    width: int
    inner: int
    """Width inside the MLPs, of which some projectors take so many features at a time."""
    runs: tuple[TowerRun, ...]
    units: int
    """Frames of one clip behind the last layer."""
    extra_parameters: int
    front_flops: int
    """Forward FLOPs of the front end, one clip."""

    def spec(self, *, tokens: int, matmuls: int, parameters: int) -> TowerSpec:
        """With a projector of ``parameters``, of which ``matmuls`` meet each of the ``tokens``."""
        return TowerSpec(
            modality="audio",
            runs=self.runs,
            tokens_per_item=max(tokens, 1),
            extra_parameters=self.extra_parameters + parameters,
            ends_flops_per_item=self.front_flops + 2 * max(tokens, 1) * matmuls,
        )


def first_of(keys: ClassKeys, *names: str) -> str:
    """The one of some names that the class calls its field."""
    return next(name for name in names if name in keys.defaults)


def _sizes(keys: ClassKeys) -> tuple[int, int, int, int]:
    """Width, heads, width inside the MLP, and layers."""
    width = keys.width(first_of(keys, "hidden_size", "d_model"))
    heads = keys.integer(first_of(keys, "num_attention_heads", "encoder_attention_heads"))
    inner = keys.width(first_of(keys, "intermediate_size", "encoder_ffn_dim"))
    return width, heads, inner, keys.integer(first_of(keys, "num_hidden_layers", "encoder_layers"))


def two_convolutions(keys: ClassKeys, width: int, positions: int) -> tuple[int, int]:
    """Parameters and forward FLOPs of Whisper's front end: two convolutions, of which the second halves the frames."""
    first, second = KERNEL * keys.integer("num_mel_bins") * width, KERNEL * width * width
    return first + second + 2 * width, 2 * (2 * positions * first + positions * second)


def whisper_tower(keys: ClassKeys, *, table: bool = True, window: str | None = None) -> AudioTower:
    """Whisper's encoder: keys without bias, layer norms, one more at the end.

    ``table``: whether its positions are a table of parameters; ``window``: key of the frames that attention stays in.
    """
    width, heads, inner, layers = _sizes(keys)
    head_dim = divided_heads(
        keys.reader, first_of(keys, "num_attention_heads", "encoder_attention_heads"), width, heads
    )
    positions = keys.integer(first_of(keys, "max_source_positions", "max_position_embeddings"))
    layer = vision_layer(width, heads, inner, gated=False, norm="layer")
    changed = {
        "key_bias": False,
        "num_kv_heads": keys.optional("num_key_value_heads") or heads
        if "num_key_value_heads" in keys.defaults
        else heads,
        "sliding_window": keys.integer(window) if window else None,
        "head_dim": head_dim,
    }
    layer = layer.model_copy(update={"attention": AttentionSpec(**{**layer.attention.model_dump(), **changed})})
    parameters, flops = two_convolutions(keys, width, positions)
    run = TowerRun(
        count=layers, layer=layer, hidden_size=width, units_per_item=positions, rope=not table and not window
    )
    extra = parameters + 2 * width + (positions * width if table else 0)
    return AudioTower(width, inner, (run,), positions, extra, flops)


def qwen3_audio_tower(keys: ClassKeys) -> AudioTower:
    """Qwen3's encoder: three convolutions over frequency and time, each halving both, within chunks of frames."""
    width, heads, inner, layers = _sizes(keys)
    divided_heads(keys.reader, "encoder_attention_heads", width, heads)
    channels, bins = keys.integer("downsample_hidden_size"), keys.integer("num_mel_bins")
    chunk, rows, frames = 2 * keys.integer("n_window"), bins, 2 * keys.integer("n_window")
    parameters = flops = 0
    inputs = 1
    for _ in range(3):
        rows, frames = (rows + 1) // 2, (frames + 1) // 2
        weights = KERNEL**2 * inputs * channels
        parameters, flops, inputs = parameters + weights + channels, flops + 2 * weights * rows * frames, channels
    joined = channels * rows * width
    chunks = max(REFERENCE_FRAMES // chunk, 1)
    window = frames * max(keys.integer("n_window_infer") // chunk, 1)
    layer = vision_layer(width, heads, inner, gated=False, norm="layer")
    attention = layer.attention.model_copy(update={"sliding_window": window})
    run = TowerRun(
        count=layers,
        layer=layer.model_copy(update={"attention": attention}),
        hidden_size=width,
        units_per_item=chunks * frames,
    )
    front = chunks * (flops + 2 * frames * joined)
    return AudioTower(width, inner, (run,), chunks * frames, parameters + joined + 2 * width, front)
