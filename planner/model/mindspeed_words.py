"""A launch of MindSpeed or MindSpeed-LLM in the words of Megatron-LM.

Both patch Megatron-LM core_v0.12.1 and read its arguments; what they add is written here as the arguments of
Megatron-LM that say the same, so that one reader reads both.  Facts: MindSpeed 028de58c, MindSpeed-LLM c77308a1.

- ``--noop-layers``: layers of ``--num-layers`` that do nothing (pipeline_parallel/noop_layers); what is left stays on
  the chunks on which it was.
- ``--schedules-method dualpipev``: two chunks a stage (pipeline_parallel/dualpipev_feature.py).
- ``--first-k-dense-replace K``: dense layers before layer K, experts on every ``--moe-layer-freq``-th one from there on
  (MindSpeed-LLM core/transformer/transformer_block.py:163); -1 of the former leaves no layer
  dense, -1 of the latter is 1.
- ``--n-shared-experts N``: a shared expert of N times an expert's width (features_manager/moe/shared_expert.py:16).
- ``--moe-tp-extend-ep``: whole experts over tp times ep devices (features_manager/moe/tp_extend_ep.py).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

from planner.model.argument_lists import known_arguments
from planner.model.megatron_flags import MegatronFlags
from planner.model.megatron_split import LAYOUT, STAGES
from profiles.validation import Finding

_SIGNS = frozenset({
    "context-parallel-algo", "handler-name", "moe-fb-overlap", "noop-layers", "recompute-activation-function",
    "recompute-norm", "reuse-fp32-param", "schedules-method", "swap-attention", "swap-optimizer", "use-ascend-coc",
    "use-ascend-mc2", "use-fused-rmsnorm", "use-fused-rotary-pos-emb", "use-fused-swiglu",
})  # fmt: skip
"""Arguments that no other software has that trains from Megatron-LM's arguments."""
_ENVIRONMENT = re.compile(
    r"^[^#\n]*\b(?:HCCL_\w+|PYTORCH_NPU_ALLOC_CONF|ASCEND_\w+|mindspeed(?:_llm)?)\b", re.MULTILINE
)
_SAME = {
    "moe-fb-overlap": "overlap-moe-expert-parallel-comm",
    "moe-intermediate-size": "moe-ffn-hidden-size",
    "multi-head-latent-attention": "multi-latent-attention",
    "n-group": "moe-router-num-groups",
    "partial-rotary-factor": "rotary-percent",
    "qk-nope-head-dim": "qk-head-dim",
    "qk-rope-head-dim": "qk-pos-emb-head-dim",
    "shared-expert-gate": "moe-shared-expert-gate",
    "swap-attention": "fine-grained-activation-offloading",
    "swap-optimizer": "optimizer-cpu-offload",
    "topk-group": "moe-router-group-topk",
    "use-ascend-mc2": "tp-comm-overlap",
    "use-mc2": "tp-comm-overlap",
}
"""Argument -> the one of Megatron-LM that says the same; its value is kept."""
_CP_ALGORITHMS = {"megatron_cp_algo": "p2p", "ulysses_cp_algo": "a2a"}
_MODULES = {"recompute-norm": "norm", "recompute-activation-function": "activation"}
DUALPIPEV = "dualpipev"


def is_mindspeed(flags: MegatronFlags, text: str) -> bool:
    """Whether a launch runs MindSpeed: by its arguments, or by the script's settings for Ascend devices."""
    return bool(_SIGNS & flags.names) or _ENVIRONMENT.search(text) is not None


def megatron_words(words: Sequence[str], where: str) -> tuple[tuple[str, ...], list[Finding]]:
    """The words with what Megatron-LM calls the same, and a finding for each that cannot be said so."""
    said = MegatronFlags(words, where)
    more = list[str]()
    for name, known in _SAME.items():
        if name in said.names and known not in said.names:
            more += [f"--{known}", *said.values_of(name)]
    algorithm = said.text("context-parallel-algo")
    if algorithm in _CP_ALGORITHMS:
        more += ["--cp-comm-type", _CP_ALGORITHMS[algorithm]]
    shared, width = said.integer("n-shared-experts", minimum=0), _width(said)
    if shared and width and not said.has("moe-shared-expert-intermediate-size"):
        more += ["--moe-shared-expert-intermediate-size", str(shared * width)]
    if said.has("moe-tp-extend-ep"):
        tp, ep = said.integer("tensor-model-parallel-size") or 1, said.integer("expert-model-parallel-size") or 1
        more += ["--expert-model-parallel-size", str(tp * ep), "--expert-tensor-parallel-size", "1"]
    dropped, layers = _layers(said)
    for name in sorted(known_arguments("mindspeed").other_models & said.names):
        said.findings.append(
            Finding(f"/--{name}", f"--{name} trains what the planner has no description of", "leave it out to estimate")
        )
    return (*_without(words, dropped), *more, *layers), said.findings


def own_strategy(flags: MegatronFlags) -> dict[str, Any]:
    """Fields of ``Strategy`` that no argument of Megatron-LM says: the schedule, modules that switches recompute."""
    strategy: dict[str, Any] = {}
    method = flags.text("schedules-method")
    if method == DUALPIPEV:
        strategy |= {"schedule": DUALPIPEV, "vpp": 2, "microbatch_group_size": 0}
    elif method is not None:
        flags.refuse("schedules-method", f"'{method}' is not known", f"write {DUALPIPEV}")
    if flags.text("recompute-granularity") != "full":
        modules = tuple(module for flag, module in _MODULES.items() if flags.has(flag))
        if modules:
            strategy |= {"recompute": "selective", "recompute_modules": modules}
    return strategy


def values_not_modelled(flags: MegatronFlags) -> list[str]:
    """Values of used arguments that the planner has no word for."""
    kinds = set(flags.values_of("context-parallel-algo")) - set(_CP_ALGORITHMS)
    found = [f"--context-parallel-algo {kind} (taken as a ring)" for kind in sorted(kinds)]
    if flags.values_of("recompute-granularity") == ["full"]:
        found += [f"--{name} (beside full recompute)" for name in _MODULES if name in flags.names]
    return found


def _width(said: MegatronFlags) -> int | None:
    return said.integer("moe-ffn-hidden-size", "moe-intermediate-size", "ffn-hidden-size")


def _layers(said: MegatronFlags) -> tuple[frozenset[str], list[str]]:
    """Arguments to drop, and those that say the layers, their experts and their chunks instead of them."""
    total, pp = said.integer("num-layers"), said.integer("pipeline-model-parallel-size") or 1
    if total is None or total > 10_000:
        return frozenset(), []
    empty = _noops(said, total)
    real = [layer for layer in range(total) if layer not in empty]
    words, dropped = list[str](), set[str]()
    dense, period = said.integer("first-k-dense-replace", minimum=-1), said.decided_integer("moe-layer-freq") or 1
    if said.values_of("moe-layer-freq") == ["-1"]:
        words, period = ["--moe-layer-freq", "1"], 1  # every number is a multiple of -1
    if dense is not None and dense > 0:
        pattern = [int(layer >= dense and layer % period == 0) for layer in real]
        words += ["--moe-layer-freq", str(pattern)]
    elif empty and period > 1:
        words += ["--moe-layer-freq", str([int(layer % period == 0) for layer in real])]
    if empty:
        words += ["--num-layers", str(len(real))]
    counts = _chunks(said, total, pp)
    if counts is not None and pp > 1:
        starts = [sum(counts[:chunk]) for chunk in range(len(counts) + 1)]
        kept = [sum(low <= layer < high for layer in real) for low, high in itertools.pairwise(starts)]
        words += [f"--{LAYOUT}", f"E{'|'.join('t' * count for count in kept)}L"]
        dropped = {*STAGES, "num-layer-list"}
    return frozenset(dropped), words


def _noops(said: MegatronFlags, total: int) -> frozenset[int]:
    text = said.text("noop-layers")
    if text is None:
        return frozenset()
    layers = frozenset(int(each) for each in text.split(",") if each.strip().isdecimal())
    if not layers or max(layers) >= total or len(layers) >= total or len(layers) != len(text.split(",")):
        said.refuse("noop-layers", f"'{text[:40]}' are no layers of {total}", "write numbers from 0, as in 61,62")
        return frozenset()
    return layers


def _chunks(said: MegatronFlags, total: int, pp: int) -> list[int] | None:
    """Layers of every chunk along the model, empty ones counted; None where Megatron-LM's own arguments say them."""
    listed = said.text("num-layer-list")
    if listed is not None and not said.has("noop-layers"):
        counts = [int(each) for each in listed.split(",") if each.strip().isdecimal()]
        if len(counts) == pp and sum(counts) == total:
            return counts
        said.refuse("num-layer-list", f"'{listed[:40]}' does not place {total} layers on {pp} stages", "correct it")
        return None
    dual = said.text("schedules-method") == DUALPIPEV
    if said.has(LAYOUT) or not (dual or said.has("noop-layers")):
        return None
    each = said.integer(STAGES[1])
    chunks = 2 * pp if dual else pp * (said.integer(STAGES[0]) or 1) if each is None else total // each
    if chunks < 1 or total % chunks:
        said.refuse("num-layers", f"{total} layers must divide over {chunks} chunks", "correct it")
        return None
    return [total // chunks] * chunks


def _without(words: Sequence[str], names: frozenset[str]) -> list[str]:
    """The words without some arguments and their values."""
    kept, dropping = list[str](), False
    for word in words:
        if word.startswith("--"):
            dropping = word[2:].partition("=")[0].replace("_", "-") in names
        if not dropping:
            kept.append(word)
    return kept
