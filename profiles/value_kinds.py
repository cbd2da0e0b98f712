"""Values of another kind than their field: truth values for numbers, numbers for truth values, quoted numbers.

Pydantic reads ``true`` as 1, ``1`` as true and ``"64"`` as 64, so that a slip in a question silently becomes another
question.  The data are compared with the document that was made of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from profiles.validation import Finding, pointer_to


def value_kinds(data: Any, made: Any, *, quoted: bool, pointer: str = "") -> Iterator[Finding]:
    """Findings of ``data``, of which ``made`` was read.

    ``quoted``: numbers between quotes are findings too.  Files may have them, and quantities with units are texts.
    """
    if isinstance(data, Mapping):
        for key, value in data.items():
            part = _part(made, key)
            if part is not None:
                yield from value_kinds(value, part, quoted=quoted, pointer=pointer + pointer_to(str(key)))
    elif isinstance(data, (list, tuple)):
        if isinstance(made, (list, tuple)) and len(made) == len(data):
            for index, (value, part) in enumerate(zip(data, made, strict=True)):
                yield from value_kinds(value, part, quoted=quoted, pointer=f"{pointer}/{index}")
    elif isinstance(made, (bool, int, float)):
        yield from _wrong_kind(data, made, quoted=quoted, pointer=pointer)


def _part(made: Any, key: Any) -> Any:
    """What a document or a mapping has under a key; None where the key meant something else once."""
    if isinstance(made, Mapping):
        return made.get(key)
    fields = getattr(type(made), "model_fields", {})
    return getattr(made, key) if key in fields else None


def _wrong_kind(data: Any, made: float, *, quoted: bool, pointer: str) -> Iterator[Finding]:
    if isinstance(made, bool):
        if not isinstance(data, bool):
            yield Finding(pointer, "must be true or false", f"write {str(made).lower()}")
    elif isinstance(data, bool):
        yield Finding(pointer, f"must be a number, not {str(data).lower()}", "give the number")
    elif quoted and isinstance(data, str) and _is_number(data):
        yield Finding(pointer, "must be a number, not a text", "write it without quotes")


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
