"""Layers from the keys that most families of Hugging Face configs share."""

from __future__ import annotations

from collections.abc import Sequence

from planner.model.hf_config.reader import MAX_LAYERS, ConfigReader
from planner.model.spec import AttentionSpec

_MAX_VOCABULARY = 10_000_000
_MAX_WIDTH = 10_000_000


def read_num_layers(reader: ConfigReader, *keys: str, default: int) -> int:
    """Number of transformer layers."""
    return reader.integer(*keys, default=default, maximum=MAX_LAYERS)


def read_width(reader: ConfigReader, *keys: str, default: int) -> int:
    """A feature width (hidden, intermediate)."""
    return reader.integer(*keys, default=default, maximum=_MAX_WIDTH)


def read_vocabulary(reader: ConfigReader, default: int) -> int:
    """Rows of the token table."""
    return reader.integer("vocab_size", default=default, maximum=_MAX_VOCABULARY)


def read_heads(
    reader: ConfigReader,
    hidden_size: int,
    *,
    default_heads: int,
    default_kv_heads: int | None,
    default_head_dim: int | None = None,
    reads_head_dim: bool = True,
) -> tuple[int, int, int]:
    """Query heads, key/value heads and head width; checks that they divide what they must."""
    heads = reader.integer("num_attention_heads", default=default_heads)
    kv_heads = reader.optional_integer("num_key_value_heads", default=default_kv_heads) or heads
    if heads % kv_heads:
        reader.refuse("num_key_value_heads", f"must divide num_attention_heads = {heads}, is {kv_heads}")
    head_dim: int | None = None
    if reads_head_dim:
        head_dim = reader.optional_integer("head_dim", default=default_head_dim, maximum=_MAX_WIDTH)
    even_split = head_dim is not None or hidden_size % heads == 0
    if head_dim is None:
        head_dim = divided_heads(reader, "num_attention_heads", hidden_size, heads)
    if even_split and head_dim % 2:
        reader.refuse("head_dim", f"must be even for rotary positions, is {head_dim}")
    return heads, kv_heads, head_dim


def divided_heads(reader: ConfigReader, key: str, hidden_size: int, heads: int) -> int:
    """Head width of a class that splits the hidden width evenly."""
    if hidden_size % heads:
        reader.refuse(key, f"must divide the hidden size {hidden_size}, is {heads}")
    return max(hidden_size // heads, 1)


def read_rope_base(reader: ConfigReader, default: float = 10000.0) -> float:
    """Rotary base: ``rope_theta``, or the same key within ``rope_parameters`` (transformers 5)."""
    if isinstance(reader.data.get("rope_parameters"), dict):
        return reader.child("rope_parameters").number(
            "rope_theta", default=reader.number("rope_theta", default=default)
        )
    return reader.number("rope_theta", default=default)


def read_partial_rotary(reader: ConfigReader, head_dim: int, default: float, *keys: str) -> int | None:
    """Rotated width of a head, or None where all of it rotates."""
    keys = keys or ("partial_rotary_factor",)
    factor = reader.number(*keys, default=default)
    if isinstance(reader.data.get("rope_parameters"), dict):
        factor = reader.child("rope_parameters").number("partial_rotary_factor", default=factor)
    if factor > 1:
        reader.refuse(keys[0], f"must be at most 1, is {factor}")
        return None
    rotated = int(head_dim * factor)
    return rotated if 0 < rotated < head_dim else None


def windowed(attention: AttentionSpec, window: int | None) -> AttentionSpec:
    """The same attention, limited to ``window`` tokens."""
    return attention.model_copy(update={"sliding_window": window})


def read_layer_types(reader: ConfigReader, num_layers: int, default: Sequence[bool]) -> list[bool]:
    """Which layers use a sliding window: ``layer_types`` where given, else ``default``."""
    names = reader.strings("layer_types")
    if names is None:
        return list(default)
    unknown = sorted(set(names) - {"sliding_attention", "full_attention"})
    if unknown:
        reader.refuse("layer_types", f"holds {unknown[0]!r}; full_attention and sliding_attention are supported")
    if len(names) != num_layers:
        reader.refuse("layer_types", f"must hold one entry a layer ({num_layers}), holds {len(names)}")
        return list(default)
    return [name == "sliding_attention" for name in names]
