"""The names of a table in titles, in captions and in file names."""

from __future__ import annotations

import re

from profiles.plots.size_labels import byte_words, count_words, short_words
from profiles.prediction.fit_summary import MOVED_AXIS, axis_name, site_names
from profiles.prediction.profile import TableOrigin


def table_title(origin: TableOrigin) -> str:
    """``attention bf16, head size 128``; ``matmul bf16, dgrad``."""
    words = f"{origin.operator.replace('_', ' ')} {origin.dtype}"
    if not origin.variant:
        return words
    return f"{words}, head size {origin.variant}" if origin.variant.isdecimal() else f"{words}, {origin.variant}"


def file_stem(*parts: str) -> str:
    """Parts joined with ``-``, safe as a file name everywhere and in an address."""
    return "-".join(re.sub(r"[^a-z0-9]+", "-", part.casefold()).strip("-") for part in parts if part)


def size_words(origin: TableOrigin, value: float) -> str:
    """One size on the axis of a table."""
    return byte_words(value) if axis_name(origin.operator) == MOVED_AXIS else count_words(value)


def site_words(origin: TableOrigin, site: tuple[float, ...]) -> str:
    """``n 4,096, k 16k``; empty for memory-bound classes, which have one curve."""
    named = zip(site_names(origin.operator), site, strict=False)
    return ", ".join(f"{short_words(name)} {count_words(value)}" for name, value in named)


def measured_on(origin: TableOrigin) -> str:
    """``on h100-sxm5-80gb with vllm 0.24.0``."""
    return f"on {origin.device}" + (f" with {origin.environment}" if origin.environment else "")
