"""What are the parts of a step called?  Words for the keys of ``breakdown_s``, the same in every report."""

from __future__ import annotations

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


def term_words(term: str) -> str:
    """``pipeline bubble`` for ``pp_bubble``; a key without words of its own reads as it is written."""
    return TERM_WORDS.get(term, term.replace("_", " "))
