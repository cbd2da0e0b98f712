"""Patterns of ``case``."""

from __future__ import annotations

import fnmatch


def matches(text: str, pattern: str, raw: str) -> bool:
    """Whether a text matches an expanded pattern; a quoted pattern is plain text."""
    if raw[:1] in ("'", '"') and raw[-1:] == raw[:1]:
        return text == pattern
    return fnmatch.fnmatchcase(text, pattern)
