"""Sizes from the shape columns of Ascend tables: ``"4096,1024;1024,4096"``, whatever quotes stand around it.

Tensors are separated by ``;``, an empty one is a scalar; the text may stand in up to three quotes and in brackets.
Sizes of a product come from its first input and its output, both in plain format (``ND``): the second input may be
stored in blocks (``FRACTAL_NZ``) or transposed, so its own dimensions prove nothing.
"""

from __future__ import annotations

from profiles.importing.dtype_names import dtype_of

_PLAIN_FORMATS = ("ND", "NCHW", "")
_MAX_TENSORS = 256
_MAX_DIMENSIONS = 16
_LONGEST = 160


def tensor_shapes(text: str) -> list[list[int]] | None:
    """Dimensions of each tensor; None for a text that is no list of shapes (``N/A``, garbage)."""
    plain = text.strip().strip('"').strip()
    if not plain or plain == "N/A":
        return None
    parts = plain.split(";")
    if len(parts) > _MAX_TENSORS:
        return None
    found = []
    for part in parts:
        sizes = [size.strip() for size in part.strip().strip("[]").split(",") if size.strip()]
        if len(sizes) > _MAX_DIMENSIONS or not all(
            size.isascii() and size.isdigit() and len(size) < 16 for size in sizes
        ):
            return None
        found.append([int(size) for size in sizes])
    return found


def product_shape(inputs: str, outputs: str, formats: str, output_formats: str) -> dict[str, int]:
    """m, n, k of a product of two matrices; empty where they cannot be known for certain."""
    given, made = tensor_shapes(inputs), tensor_shapes(outputs)
    if not given or not made or len(given[0]) != 2 or len(made[0]) != 2:
        return {}
    if _first(formats) not in _PLAIN_FORMATS or _first(output_formats) not in _PLAIN_FORMATS:
        return {}
    rows, columns = made[0]
    left, right = given[0]
    if left == rows:
        return {"m": rows, "n": columns, "k": right}
    return {"m": rows, "n": columns, "k": left} if right == rows else {}


def common_dtype(text: str) -> str:
    """The number format of the first tensor: ``DT_BF16;DT_BF16`` is bf16."""
    return dtype_of(_first(text).removeprefix("DT_"))


def tidy(text: str) -> str:
    """A shape or format column for the detail: no quotes, of limited length."""
    plain = text.strip().strip('"').strip()
    return "" if plain == "N/A" else plain[:_LONGEST]


def _first(text: str) -> str:
    return text.strip().strip('"').strip().split(";", 1)[0].strip()
