"""The bytes that a memory-bound operator moves: what it reads and writes once, forward, in its number format.

    norm            2 tokens x hidden          gated activation   3 tokens x ffn      activation   2 tokens x ffn
    embedding       2 tokens x hidden          cross entropy      2 tokens x vocabulary

The same widths as the planner's operators have, so that a measured curve over bytes can be looked up with theirs.
"""

from __future__ import annotations

from collections.abc import Mapping

_WIDTH_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}
_SIZES = {
    "norm": ("num_tokens", "hidden_size"),
    "activation": ("num_tokens", "ffn_hidden_size"),
    "embedding": ("num_tokens", "hidden_size"),
    "cross_entropy": ("num_tokens", "vocab_size"),
}
MOVED_CLASSES = tuple(_SIZES)


def moved_bytes(operator: str, name: str, dtype: str, shape: Mapping[str, int | None]) -> int | None:
    """Bytes of one forward run; None where the shape does not tell."""
    rows, width = (shape.get(size) for size in _SIZES[operator])
    element_bytes = _WIDTH_BYTES.get(dtype)
    if not rows or not width or element_bytes is None:
        return None
    gated = operator == "activation" and ("mul" in name or "glu" in name)
    return (3 if gated else 2) * rows * width * element_bytes
