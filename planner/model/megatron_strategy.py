"""The workload and the strategy that Megatron-LM's arguments name.

Flags: ``megatron/training/arguments.py`` (Megatron-Core 0.12 to 0.18).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.model.megatron_dispatcher import DEFAULT, default_dispatcher, read_dispatcher
from planner.model.megatron_flags import MegatronFlags
from planner.model.megatron_split import read_split
from planner.model.spec import ModelSpec
from planner.strategy.relief_layers import first_layers

FP8_RECIPES = frozenset({"delayed", "tensorwise", "blockwise", "mxfp8"})
"""Values of ``--fp8-recipe`` that a workload has a word for."""
OPTIMIZERS = frozenset({"adam", "sgd", "muon", "lion"})
"""Values of ``--optimizer`` that a workload has a word for."""
DEALT = "dist_"
"""Before such a value: whole weights are dealt to the data-parallel ranks, each of which keeps the states of its own,
as with the distributed optimizer (core 0.19.2 optimizer/__init__.py:744-754, training/arguments.py:1672-1682)."""

_DEGREES = {
    "tp": ("tensor-model-parallel-size",),
    "pp": ("pipeline-model-parallel-size",),
    "cp": ("context-parallel-size",),
    "ep": ("expert-model-parallel-size",),
    "etp": ("expert-tensor-parallel-size",),
    "micro_batch_size": ("micro-batch-size",),
}
_SHARDING = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
_RECOMPUTE_MODULES = {
    "core_attn": "attention_core",
    "layernorm": "norm",
    "mlp": "mlp",
    "moe": "moe",
    "moe_act": "activation",
    "mla_up_proj": "mla_up_proj",
}
_UNMODELLED_MODULES = frozenset({"shared_experts", "gdn_norm_out"})
"""Modules that Megatron recomputes and the planner has no name for (core 0.19.2 transformer_config.py:1768)."""


def read_workload(flags: MegatronFlags) -> dict[str, Any]:
    """Keyword arguments of ``Workload`` that the arguments give."""
    workload: dict[str, Any] = {}
    if (batch := flags.integer("global-batch-size")) is not None:
        workload["global_batch_size"] = batch
    if (length := flags.integer("seq-length", "encoder-seq-length")) is not None:
        workload["sequence_length"] = length
    recipe, four = flags.text("fp8-recipe"), flags.has("fp4-format")
    flags.text("fp4-recipe")  # nvfp4, or custom, which is taken as nvfp4
    if flags.has("fp8-format", "fp8"):
        workload["precision"] = "fp8"
        if recipe in FP8_RECIPES:
            workload["fp8_recipe"] = recipe
    elif four:
        workload |= {"precision": "fp8", "fp8_recipe": "nvfp4"}
    elif flags.has("bf16", "fp16"):
        workload["precision"] = "bf16" if flags.has("bf16") else "fp16"
    if (optimizer := (flags.text("optimizer") or "").removeprefix(DEALT)) in OPTIMIZERS:
        workload["optimizer"] = optimizer
    states = _optimizer_states(flags)
    if flags.has("use-precision-aware-optimizer") and workload.get("optimizer", "adam") == "adam":
        workload |= states
    if flags.has("grad-reduce-in-bf16") or flags.text("megatron-fsdp-main-grads-dtype") == "bf16":
        workload["gradient_dtype"] = "bf16"
    return workload


def _optimizer_states(flags: MegatronFlags) -> dict[str, Any]:
    """Number formats of the precision-aware optimizer's states."""
    names = {"first": "exp-avg-dtype", "second": "exp-avg-sq-dtype", "master": "main-params-dtype"}
    formats = {key: flags.text(name) or "fp32" for key, name in names.items()}
    if set(formats.values()) == {"fp32"}:
        # Beside offload the flag chooses the way and nothing else.
        return {} if flags.has("optimizer-cpu-offload") else {"optimizer": "adam_precision_aware"}
    if formats == {"first": "bf16", "second": "bf16", "master": "fp32"}:
        return {"optimizer": "adam_bf16_states"}
    return {"optimizer": "adam_precision_aware", "optimizer_states": formats}


def read_strategy(flags: MegatronFlags) -> tuple[dict[str, Any], tuple[int, ...] | None, int | None]:
    """What the arguments give: fields of ``Strategy``, the layers of every chunk, the launcher's number of devices."""
    strategy: dict[str, Any] = {}
    for name, names in _DEGREES.items():
        if (degree := flags.integer(*names)) is not None:
            strategy[name] = degree
    if flags.has("sequence-parallel") and strategy.get("tp", 1) > 1:  # off at tp 1: arguments.py:1393
        strategy["sp"] = True
    if strategy.get("cp", 1) > 1:
        kind = flags.text("cp-comm-type") or "p2p"
        strategy["cp_kind"] = "all_to_all" if kind == "a2a" else "ring"
    pp = strategy.get("pp", 1)
    split = read_split(flags, pp)
    strategy.update(_pipeline(flags, split.vpp, pp))
    strategy.update(_sharding(flags))
    strategy.update(_recompute(flags))
    strategy.update(read_dispatcher(flags))
    for name, flag in (
        ("overlap_grad_reduce", "overlap-grad-reduce"),
        ("overlap_param_gather", "overlap-param-gather"),
        ("overlap_tp", "tp-comm-overlap"),
        ("overlap_ep", "overlap-moe-expert-parallel-comm"),
        ("optimizer_offload", "optimizer-cpu-offload"),
        ("activation_offload", "fine-grained-activation-offloading"),
    ):
        if flags.has(flag):
            strategy[name] = True
    if flags.has("fp8-param-gather") and flags.has("fp8-format", "fp8") and strategy.get("zero_stage") == 1:
        strategy["fp8_parameters"] = True
    if flags.has("use-tp-pp-dp-mapping"):
        strategy["axis_order"] = "tp-cp-ep-pp-dp"
    return strategy, split.chunk_layers, launched_devices(flags)


def derive(
    flags: MegatronFlags,
    model: ModelSpec,
    workload: dict[str, Any],
    strategy: dict[str, Any],
    num_devices: int | None,
) -> tuple[str, ...]:
    """Fill in what Megatron-LM derives from the other arguments, and say what that is.

    Tokens of experts are gathered where no dispatcher is named (``megatron_dispatcher``).  Experts take tp as their
    tensor parallelism (core 0.19.2 training/arguments.py:569); without ``--global-batch-size`` a step is one
    micro-batch a replica (arguments.py:685); without ``--bf16`` or ``--fp16`` the run is in fp32, which the planner
    does not predict.
    """
    told = list[str]()
    if model.has_experts and strategy.get("tp", 1) > 1 and "etp" not in strategy:
        strategy["etp"] = strategy["tp"]
        told.append(f"etp={strategy['tp']}: experts are split as tp says")
    if model.has_experts and (more := default_dispatcher(flags, strategy)):
        strategy |= more
        told.append(f"dispatcher={DEFAULT}: --moe-token-dispatcher-type is not given")
    shards = strategy.get("tp", 1) * strategy.get("pp", 1) * strategy.get("cp", 1)
    says_replicas = "micro_batch_size" in strategy and num_devices is not None and num_devices % shards == 0
    if "global_batch_size" not in workload and num_devices is not None and says_replicas:
        workload["global_batch_size"] = strategy["micro_batch_size"] * num_devices // shards
        told.append(f"global batch {workload['global_batch_size']:,}: one micro-batch a replica")
    if flags.values_of("zero-stage") == ["0"] and strategy.get("zero_stage") == 1:
        told.append("zero_stage=1: DeepSpeed's BF16_Optimizer shards its states at stage 0 too")
    if "precision" not in workload:
        told.append("precision: neither --bf16 nor --fp16 is given, which is fp32 in Megatron-LM; bf16 is predicted")
    return tuple(told)


def with_what_is_off(strategy: Mapping[str, Any]) -> dict[str, Any]:
    """A script's strategy with the switches that Megatron-LM has off unless a flag turns them on.

    Of Megatron-FSDP, which overlaps by itself, nothing is said (core 0.19.2 training/arguments.py).
    """
    plain = strategy.get("zero_stage", 0) <= 1
    off = ("sp", "overlap_grad_reduce", "overlap_param_gather") if plain else ("sp",)
    return {**dict.fromkeys(off, False), **strategy}


def _pipeline(flags: MegatronFlags, vpp: int, pp: int) -> dict[str, Any]:
    if vpp == 1:
        return {}
    result: dict[str, Any] = {"vpp": vpp, "schedule": "interleaved"}
    group = flags.integer("microbatch-group-size-per-virtual-pipeline-stage")
    result["microbatch_group_size"] = group or pp
    return result


def _sharding(flags: MegatronFlags) -> dict[str, Any]:
    if flags.has("use-megatron-fsdp", "use-custom-fsdp"):
        kind = flags.text("data-parallel-sharding-strategy") or "optim_grads_params"  # arguments.py:3023
        if kind not in _SHARDING:
            flags.refuse("data-parallel-sharding-strategy", f"'{kind}' is not known", f"use {', '.join(_SHARDING)}")
        return {"zero_stage": _SHARDING.get(kind, 0)}
    if flags.has("use-torch-fsdp2"):
        return {"zero_stage": 3}
    if (stage := flags.integer("zero-stage", minimum=0)) is not None:  # Megatron-DeepSpeed
        # Its BF16_Optimizer shards the states whatever the stage says (DeepSpeed runtime/bf16_optimizer.py).
        return {"zero_stage": min(max(stage, int(flags.has("bf16"))), 3)}
    instances = flags.integer("num-distributed-optimizer-instances") or 1
    if flags.has("use-distributed-optimizer") and instances > 1:
        return {"zero_stage": 1, "dp_replicate": instances}
    dealt = (flags.text("optimizer") or "").startswith(DEALT)
    return {"zero_stage": 1 if flags.has("use-distributed-optimizer") or dealt else 0}


def _recompute(flags: MegatronFlags) -> dict[str, Any]:
    """Policy and modules; facts: Megatron-LM core 0.19.2.

    ``--recompute-activations`` makes it selective whatever ``--recompute-granularity`` says (arguments.py:589);
    selective recompute takes neither a method (arguments.py:1385) nor a number of layers
    (transformer_config.py:1750), and is that of ``core_attn`` unless modules are named (transformer_config.py:1763).
    """
    if flags.has("checkpoint-activations"):
        return {"recompute": "full"}
    if flags.has("activations-checkpoint-method"):
        return {"recompute": _full(flags, "activations-checkpoint")}
    granularity = flags.text("recompute-granularity")
    if granularity not in (None, "full", "selective"):
        flags.refuse("recompute-granularity", f"'{granularity}' is not known", "write full or selective")
        return {}
    switch = flags.has("recompute-activations")
    if switch or granularity == "selective":
        return _selective(flags, "--recompute-activations" if switch else "--recompute-granularity selective")
    return {} if granularity is None else {"recompute": _full(flags, "recompute")}


def _full(flags: MegatronFlags, name: str) -> str:
    """Which layers are recomputed whole: of each chunk the first ones (block), else all of them.

    Uniform recomputes every layer; its number is how many share one saved input (core 0.19.2
    core/transformer/transformer_block.py: ``_checkpointed_forward``).
    """
    if (flags.text(f"{name}-method") or "uniform") != "block":
        return "full"
    number = flags.integer(f"{name}-num-layers", minimum=0)
    if number is None:
        flags.refuse(f"{name}-method", "block recomputes a number of layers", f"write --{name}-num-layers too")
        return "full"
    return first_layers(number) if number > 0 else "none"


def _selective(flags: MegatronFlags, asked_by: str) -> dict[str, Any]:
    for flag in ("recompute-method", "recompute-num-layers"):
        if flags.has(flag):
            flags.refuse(
                flag,
                f"contradicts {asked_by}, which recomputes modules of every layer",
                f"leave it out, or leave {asked_by} out and write --recompute-granularity full",
            )
    words = flags.words("recompute-modules") or ["core_attn"]
    if flags.has("moe-layer-recompute"):  # core 0.19.2 transformer_config.py:1835
        words = [*words, "moe"]
    wrong = [word for word in words if word not in _RECOMPUTE_MODULES and word not in _UNMODELLED_MODULES]
    if wrong:
        known = ", ".join(sorted({*_RECOMPUTE_MODULES, *_UNMODELLED_MODULES}))
        flags.refuse("recompute-modules", f"names '{wrong[0][:40]}', which is no module", f"use some of {known}")
    known_modules = tuple(dict.fromkeys(_RECOMPUTE_MODULES[word] for word in words if word in _RECOMPUTE_MODULES))
    # Of what the planner cannot name nothing is said, rather than a policy without modules.
    return {"recompute": "selective", "recompute_modules": known_modules} if known_modules else {}


def launched_devices(flags: MegatronFlags) -> int | None:
    """Nodes times processes a node, as the launcher's arguments say; None where the script leaves it open."""
    per_node = flags.decided_integer("nproc-per-node")
    nodes = flags.decided_integer("nnodes") if flags.has("nnodes") else 1
    return per_node * nodes if per_node and nodes else None
