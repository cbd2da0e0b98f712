"""The experts of a launch of Megatron-DeepSpeed in the words of Megatron-LM.

microsoft/Megatron-DeepSpeed f4157bea ``megatron/arguments.py``: ``--num-experts``, of which every
``--expert-interval``-th layer (2 by default) has that many, one chosen by default (``--topk``), over
``--moe-expert-parallel-size`` devices, each expert whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.model.megatron_flags import MegatronFlags
from profiles.validation import Finding

_MOST_LAYERS = 10_000


def megatron_words(words: Sequence[str], where: str) -> tuple[tuple[str, ...], list[Finding]]:
    """The words with what Megatron-LM calls the same, and a finding for each that cannot be said so."""
    said = MegatronFlags(words, where)
    counts = said.words("num-experts")
    layers = said.integer("num-layers")
    if len(counts) > 1:
        said.refuse("num-experts", "has a number for each layer", "describe the model in YAML")
    if len(counts) != 1 or counts == ["1"] or layers is None or layers > _MOST_LAYERS:
        without = [word for word in words if counts != ["1"] or word != "--num-experts"]
        return tuple(without), said.findings
    more = ["--moe-router-topk", str(said.integer("topk") or 1), "--expert-tensor-parallel-size", "1"]
    more += ["--expert-model-parallel-size", str(said.integer("moe-expert-parallel-size") or 1)]
    period = said.integer("expert-interval") or 2
    more += ["--moe-layer-freq", str([int((layer + 1) % period == 0) for layer in range(layers)])]
    return (*words, *more), said.findings
