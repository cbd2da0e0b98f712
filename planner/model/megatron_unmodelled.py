"""What became of each argument of a launch script: used, without influence on the plan, not modelled, unknown.

The lists are those of ``argument_lists``; here are the values that make an argument harmless, the values of used
arguments that the planner has no word for, and the arguments of launchers.  Facts: megatron-core 0.19.2
training/arguments.py and core/transformer/transformer_config.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from planner.model.argument_lists import known_arguments
from planner.model.megatron_dispatcher import dispatcher_of
from planner.model.megatron_flags import MegatronFlags
from planner.model.megatron_strategy import DEALT, FP8_RECIPES, OPTIMIZERS
from planner.model.mindspeed_words import values_not_modelled
from profiles.validation import Finding

_ASSUMED: dict[str, frozenset[str]] = {
    **dict.fromkeys(("main-grads-dtype", "megatron-fsdp-main-params-dtype"), frozenset({"fp32"})),
    **dict.fromkeys(("hidden-dropout", "attention-dropout"), frozenset({"0", "0.0"})),
    **dict.fromkeys(("optimizer-offload-fraction", "activation-offload-fraction"), frozenset({"1", "1.0"})),
    **dict.fromkeys(("cpu-offloading-num-layers", "empty-unused-memory-level", "vocab-extra-ids"), frozenset({"0"})),
    "attention-backend": frozenset({"auto", "flash", "fused"}),
    "transformer-impl": frozenset({"transformer_engine"}),
    "cuda-graph-impl": frozenset({"none"}),
    "outer-dp-sharding-strategy": frozenset({"no_shard"}),
    "moe-router-load-balancing-type": frozenset({"aux_loss", "seq_aux_loss", "global_aux_loss"}),
    "moe-router-dtype": frozenset({"fp32"}),
    "decoder-seq-length": frozenset(),
}
"""Values with which the prediction is that of the script."""
_MODULES = frozenset({"shared_experts", "gdn_norm_out"})
_OTHER_MODELS = frozenset({
    "heterogeneous-layers-config-path", "heterogeneous-layers-config-encoded-json", "hybrid-layer-pattern",
    "hybrid-override-pattern", "is-hybrid-model", "experimental-attention-variant", "yaml-cfg",
})  # fmt: skip
"""Arguments that build layers of other kinds, or come from a file that is not read: no estimate without them."""
_OLDER = frozenset({
    "use-custom-fsdp", "fp8", "layernorm-epsilon", "activations-checkpoint-method", "activations-checkpoint-num-layers",
    "pad-vocab-size-to", "patch-tokenizer-type", "extra-vocab-size", "tokenizer-name-or-path",
})  # fmt: skip
"""Arguments of earlier releases and Pai-Megatron-Patch that are read."""
_OTHER_PROGRAMS = re.compile(
    r"(?:.*/)?(?:pretrain|train|finetune)_(?:bert|t5|ict|vlm|vision\w*|mamba|retro|realm)\.py\Z"
)
"""Programs that build other models of the same arguments."""
_PROGRAM = re.compile(r"(?:.*/)?[\w.-]+\.py\Z")


@dataclass(frozen=True, slots=True)
class ArgumentLists:
    """Arguments of the training program as the script writes them, each in one list, in the order of the script.

    ``unknown``: arguments that Megatron-LM 0.19.2 does not have and the reader does not know.
    """

    used: tuple[str, ...] = ()
    no_influence: tuple[str, ...] = ()
    not_modelled: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def argument_lists(flags: MegatronFlags, words: Sequence[str], software: str = "megatron") -> ArgumentLists:
    """The lists of one script; ``words`` are those of its launch, the launcher's first."""
    ascend, deepspeed = software == "mindspeed", "deepspeed" in software
    lists: dict[str, list[str]] = {"used": [], "no_influence": [], "not_modelled": [], "unknown": []}
    for name in own_arguments(words):
        values = flags.values_of(name)
        lists[_list_of(name, values, ascend=ascend, deepspeed=deepspeed)].append(" ".join((f"--{name}", *values)))
    missed = lists["not_modelled"]
    missed += [f"{word} (taken as pretrain_gpt.py)" for word in words if _OTHER_PROGRAMS.match(word)]
    missed += values_not_modelled(flags) if ascend else []
    missed += _values(flags)
    return ArgumentLists(**{name: tuple(written) for name, written in lists.items()})


def _list_of(name: str, values: Sequence[str], *, ascend: bool, deepspeed: bool) -> str:
    """The list of one argument with its values."""
    if deepspeed and (listed := known_arguments("megatron_deepspeed").list_of(name)):
        return listed
    if ascend:
        added = known_arguments("mindspeed")
        # Ascend's kernels stand for what these arguments of Megatron-LM choose.
        if name in added.assumed_here or (name == "transformer-impl" and list(values) == ["local"]):
            return "no_influence"
        if added.list_of(name):
            return added.list_of(name)
    if name in _OLDER:
        return "used"
    if values and set(values) <= _ASSUMED.get(name, frozenset()):
        return "no_influence"
    return known_arguments("megatron").list_of(name) or "unknown"


def own_arguments(words: Sequence[str]) -> list[str]:
    """Names of the arguments behind the program's file; all of them where none is named."""
    starts = [place for place, word in enumerate(words) if _PROGRAM.match(word)]
    own = words[starts[-1] + 1 :] if starts else words
    names = [word[2:].partition("=")[0].replace("_", "-") for word in own if word.startswith("--") and len(word) > 2]
    return list(dict.fromkeys(names))


def refuse_other_models(flags: MegatronFlags) -> None:
    """Record a finding for each argument that makes another model than the others describe."""
    for name in sorted(_OTHER_MODELS & flags.names):
        flags.findings.append(
            Finding(
                f"/--{name}",
                f"--{name} builds what the planner has no description of",
                "describe the model in YAML, or leave the argument out and know that another model is estimated",
            )
        )


def _values(flags: MegatronFlags) -> list[str]:
    """Values of used arguments that the planner has no word for."""
    found = [f"--recompute-modules {word}" for word in flags.values_of("recompute-modules") if word in _MODULES]
    kinds = set(flags.values_of("cp-comm-type")) - {"p2p", "a2a"}
    found += [f"--cp-comm-type {kind} (taken as a ring)" for kind in sorted(kinds)]
    optimizer = next(iter(flags.values_of("optimizer")), "adam")
    if optimizer.removeprefix(DEALT) not in OPTIMIZERS:
        found.append(f"--optimizer {optimizer} (taken as adam)")
    recipes = set(flags.values_of("fp8-recipe")) - FP8_RECIPES
    found += [f"--fp8-recipe {recipe} (taken as one scale a tensor)" for recipe in sorted(recipes)]
    if flags.has("fp8-param-gather") and flags.has("use-megatron-fsdp", "use-custom-fsdp"):
        found.append("--fp8-param-gather with Megatron-FSDP (weights are predicted in 16 bit)")
    found += ["--fp4-recipe custom (taken as nvfp4)"] if "custom" in flags.values_of("fp4-recipe") else []
    if dispatcher_of(flags) == "ncclep":
        found.append("--moe-flex-dispatcher-backend ncclep (taken as deepep)")
    return found
