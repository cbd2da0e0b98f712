"""The number of layers that recompute or offload under a strategy: words of ``recompute`` and offload.

A ``Strategy`` names the policy.  Which layers use it is said beside it:

* ``recompute=full``, ``recompute=selective``, ``activation_offload=true``: every layer of the model;
* ``recompute=full-where-needed``, ``recompute=selective-where-needed``, ``activation_offload=where-needed``: on every
  stage as few layers as its memory demands, the same number in every chunk where the back-end has one setting for all;
* ``recompute=full-first-4``: the first 4 layers of every chunk, or all of a shorter one.  Megatron-LM:
  ``--recompute-method block --recompute-num-layers 4`` (core 0.19.2 core/transformer/transformer_block.py:
  ``_checkpointed_forward`` counts the layers of one chunk).

A search that is told nothing of recompute and offload takes as few layers as memory demands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

ReliefLayers = Literal["every", "where_needed"] | int | tuple[int, ...]
"""Every layer; as few as memory demands; the first layers of each chunk; so many of each chunk, one number a stage."""

WHERE_NEEDED = "where-needed"
RECOMPUTE_WORDS = ("none", "selective", "full", f"selective-{WHERE_NEEDED}", f"full-{WHERE_NEEDED}")
_FIRST = re.compile(r"full-first-([1-9][0-9]{0,5})")


def first_layers(number: int) -> str:
    """The word for full recompute of the first layers of every chunk."""
    return f"full-first-{number}"


def is_recompute_word(word: str) -> bool:
    """Whether ``recompute`` may be this."""
    return word in RECOMPUTE_WORDS or _FIRST.fullmatch(word) is not None


def policies(values: Mapping[str, Any]) -> dict[str, Any]:
    """Strategy fields with the policy alone: ``recompute`` and ``activation_offload`` as a ``Strategy`` has them."""
    plain = dict(values)
    if "recompute" in plain:
        plain["recompute"] = str(plain["recompute"]).partition("-")[0]
    if plain.get("activation_offload") == WHERE_NEEDED:
        plain["activation_offload"] = True
    return plain


def relief_layers(values: Mapping[str, Any]) -> ReliefLayers:
    """Which layers some given fields mean; as few as needed where they say nothing of it.

    Where recompute and offload are both on, recompute says it: one number of layers serves both.
    """
    recompute = str(values.get("recompute", "selective" if "recompute_modules" in values else "none"))
    offload = values.get("activation_offload", False)
    if (first := _FIRST.fullmatch(recompute)) is not None:
        return int(first[1])
    if recompute != "none":
        return "where_needed" if recompute.endswith(WHERE_NEEDED) else "every"
    return "every" if offload is True else "where_needed"


def relief_word(field: str, value: Any, layers: ReliefLayers) -> Any:
    """The word for a policy with these layers: ``full`` as ``full-where-needed``; other values stay as they are."""
    if layers == "where_needed":
        if field == "recompute" and value != "none":
            return f"{value}-{WHERE_NEEDED}"
        return WHERE_NEEDED if field == "activation_offload" and value is True else value
    return first_layers(layers) if isinstance(layers, int) and (field, value) == ("recompute", "full") else value
