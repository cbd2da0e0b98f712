"""A launch of Megatron-DeepSpeed in the words of Megatron-LM.

Facts: ``megatron/arguments.py`` of microsoft/Megatron-DeepSpeed f4157bea and bigscience-workshop/Megatron-DeepSpeed
8387ae17.

- ``--num-experts``, of which every ``--expert-interval``-th layer (2 by default) has that many, one chosen by default
  (``--topk``), over ``--moe-expert-parallel-size`` devices, each whole but for ``--enable-expert-tensor-parallelism``.
- ``--num-key-value-heads``, ``--normalization rmsnorm`` in small letters, ``--rotary-position-embeddings-theta``;
  BigScience's ``--glu-activation``, which leaves the width of the MLP at four times the hidden size.
- ``--ds-sequence-parallel-size``: DeepSpeed's Ulysses, an all-to-all over heads.
- ``--cpu-optimizer``, and an offload or a ZeRO stage that only DeepSpeed's own file says, where the script writes it.
- ``--no-pipeline-parallel``: the engine of plain DeepSpeed runs the model, not its pipeline engine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from planner.model.argument_lists import known_arguments
from planner.model.megatron_flags import MegatronFlags
from profiles.validation import Finding

_MOST_LAYERS = 10_000
_SIGNS = frozenset({"deepspeed", "deepspeed-config", "zero-stage"})
_STAGE = re.compile(r'"stage"\s*:\s*([0-3])\b')
_OFFLOAD = re.compile(r'"offload_optimizer"\s*:\s*\{[^}]*"device"\s*:\s*"(?:cpu|nvme)"')
_WIDE_GRADIENTS = re.compile(r'"grad_accum_dtype"\s*:\s*"(?:fp32|float32)"')
_GATED = {"swiglu": "swiglu", "geglu": "geglu"}
_FP8 = {"fp8-e4m3": "e4m3", "fp8-hybrid": "hybrid"}


def software_of(flags: MegatronFlags) -> str | None:
    """The back-end of a launch of Megatron-DeepSpeed; None for any other."""
    if not flags.names & _SIGNS:
        return None
    plain = "no-pipeline-parallel" in flags.names or "ds-sequence-parallel-size" in flags.names
    return "deepspeed" if plain else "megatron-deepspeed"


def own_workload(text: str) -> dict[str, Any]:
    """How plain DeepSpeed's engine keeps gradients: in the model's type, unless its file says fp32."""
    return {} if _WIDE_GRADIENTS.search(text) else {"gradient_dtype": "bf16"}


def megatron_words(words: Sequence[str], where: str, text: str = "") -> tuple[tuple[str, ...], list[Finding]]:
    """The words with what Megatron-LM calls the same, and a finding for each that cannot be said so.

    ``text``: the script, which may write DeepSpeed's own file.
    """
    said = MegatronFlags(words, where)
    for name in sorted(known_arguments("megatron_deepspeed").other_models & said.names):
        said.findings.append(
            Finding(f"/--{name}", f"--{name} trains what the planner has no description of", "leave it out to estimate")
        )
    if (said.text("mlp-type") or "standard") != "standard":
        said.refuse("mlp-type", "puts an MLP beside the experts", "describe the model in YAML")
    more = [*_model(said), *_degrees(said), *_of_deepspeed(said, text)]
    experts, dropped = _experts(said)
    kept = words if not dropped else [word for word in words if word != "--num-experts"]
    return (*kept, *more, *experts), said.findings


def _model(said: MegatronFlags) -> list[str]:
    words = list[str]()
    groups = said.integer("num-key-value-heads")
    if groups is not None and groups != said.integer("num-attention-heads"):
        words += ["--group-query-attention", "--num-query-groups", str(groups)]
    if (said.text("normalization") or "").lower() == "rmsnorm":
        words += ["--normalization", "RMSNorm"]
    if (theta := said.integer("rotary-position-embeddings-theta")) is not None:
        words += ["--rotary-base", str(theta)]
    gate, hidden = said.text("glu-activation"), said.integer("hidden-size")
    if gate in _GATED and hidden is not None:
        width = said.integer("ffn-hidden-size") or 4 * hidden
        words += [f"--{_GATED[gate]}", "--ffn-hidden-size", str(width)]
    elif gate is not None and gate not in _GATED:
        said.refuse("glu-activation", f"'{gate[:40]}' is not known", f"use {' or '.join(_GATED)}, or YAML")
    return words


def _degrees(said: MegatronFlags) -> list[str]:
    size = said.integer("ds-sequence-parallel-size") or 1
    words = ["--context-parallel-size", str(size), "--cp-comm-type", "a2a"] if size > 1 else []
    return words + [word for name, kind in _FP8.items() if name in said.names for word in ("--fp8-format", kind)]


def _of_deepspeed(said: MegatronFlags, text: str) -> list[str]:
    """What DeepSpeed's engine is told: by arguments, else by the file that the script writes itself."""
    words, stages = list[str](), set(_STAGE.findall(text))
    if "zero-stage" not in said.names and len(stages) == 1:
        words += ["--zero-stage", *stages]
    if "cpu-optimizer" in said.names or _OFFLOAD.search(text):
        words.append("--optimizer-cpu-offload")
    return words


def _experts(said: MegatronFlags) -> tuple[list[str], bool]:
    """What says the experts, and whether ``--num-experts 1`` goes."""
    counts, layers = said.words("num-experts"), said.integer("num-layers")
    if len(counts) > 1:
        said.refuse("num-experts", "has a number for each layer", "describe the model in YAML")
    if len(counts) != 1 or counts == ["1"] or layers is None or layers > _MOST_LAYERS:
        return [], counts == ["1"]
    tp = said.integer("tensor-model-parallel-size") or 1
    etp = tp if said.has("enable-expert-tensor-parallelism") else 1
    more = ["--moe-router-topk", str(said.integer("topk") or 1), "--expert-tensor-parallel-size", str(etp)]
    more += ["--expert-model-parallel-size", str(said.integer("moe-expert-parallel-size") or 1)]
    period = said.integer("expert-interval") or 2
    return [*more, "--moe-layer-freq", str([int((layer + 1) % period == 0) for layer in range(layers)])], False
