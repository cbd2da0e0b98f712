"""The names of the parts of a step: words for the keys of ``breakdown_s``, the same in every report."""

from __future__ import annotations

from collections.abc import Mapping

TERM_WORDS = {
    "compute": "compute",
    "tp": "tensor parallel communication",
    "cp": "context parallel communication",
    "ep": "expert all-to-all",
    "dp": "gradients and parameters (data parallel)",
    "pp_bubble": "pipeline bubble",
    "pp_send": "pipeline sends",
    "optimizer": "optimizer step",
    "recompute": "recompute",
    "offload": "offload",
    "host": "waiting for the host",
}

MEMORY_TERMS = ("weights", "gradients", "optimizer", "activations", "buffers")
"""Parts of a device's memory: keys of a ``MemoryBill``."""

NOTHING = 1e-9
"""Share of a step below which a term is what rounding left: plans of earlier versions hold 1e-16 s where nothing is."""


def told_terms(breakdown_s: Mapping[str, float]) -> list[tuple[str, float]]:
    """(term, seconds) of the terms that take time, the longest first."""
    least_s = NOTHING * sum(breakdown_s.values())
    return sorted(((term, value) for term, value in breakdown_s.items() if value > least_s), key=lambda each: -each[1])


def term_words(term: str) -> str:
    """``pipeline bubble`` for ``pp_bubble``; a key without words of its own reads as it is written."""
    return TERM_WORDS.get(term, term.replace("_", " "))
