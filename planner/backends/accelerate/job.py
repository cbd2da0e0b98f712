"""The training run that a configuration of ``accelerate launch`` describes, beside a model that is named.

``distributed_type`` FSDP (both versions), DEEPSPEED (the plugin's own fields), MULTI_GPU and NO, with
``parallelism_config``.  The file says neither batch nor sequence length.  Facts: accelerate 1.15.0 commands/launch.py
and utils/dataclasses.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.backends.deepspeed.job import Reader
from planner.backends.rules.foreign_names import foreign_names
from planner.backends.rules.settings import flat_settings, literal, overridden
from planner.errors import DocumentInvalid
from planner.model.megatron_args import LaunchJob
from planner.model.megatron_unmodelled import ArgumentLists
from planner.model.megatron_vocabulary import Vocabulary
from planner.model.spec import ModelSpec

USED = frozenset(
    foreign_names("""
    distributed_type mixed_precision num_processes num_machines fsdp_config.fsdp_version
    fsdp_config.fsdp_reshard_after_forward fsdp_config.fsdp_sharding_strategy
    fsdp_config.fsdp_activation_checkpointing parallelism_config.parallelism_config_cp_size
    parallelism_config.parallelism_config_cp_comm_strategy parallelism_config.parallelism_config_dp_replicate_size
    parallelism_config.parallelism_config_dp_shard_size parallelism_config.parallelism_config_sp_size
    parallelism_config.parallelism_config_tp_size deepspeed_config.zero_stage
    deepspeed_config.gradient_accumulation_steps deepspeed_config.offload_optimizer_device
    """)
)
NOT_MODELLED = frozenset(
    foreign_names("""
    fsdp_config.fsdp_offload_params fsdp_config.fsdp_activation_checkpointing_offload
    fsdp_config.fsdp_backward_prefetch fsdp_config.fsdp_forward_prefetch
    fsdp_config.fsdp_auto_wrap_policy fsdp_config.fsdp_min_num_params fsdp_config.fsdp_use_orig_params
    deepspeed_config.offload_param_device deepspeed_config.deepspeed_moe_layer_cls_names
    deepspeed_config.seq_parallel_communication_data_type
    parallelism_config.parallelism_config_cp_backend parallelism_config.parallelism_config_sp_backend
    parallelism_config.parallelism_config_sp_attn_implementation
    parallelism_config.parallelism_config_sp_seq_length_is_variable
    parallelism_config.parallelism_config_sp_seq_length fp8_config dynamo_config use_cpu gpu_ids
    """)
)
ASSUMED: Mapping[str, tuple[Any, ...]] = {
    "fsdp_config.fsdp_offload_params": (False,),
    "fsdp_config.fsdp_activation_checkpointing_offload": (False,),
    "fsdp_config.fsdp_backward_prefetch": ("BACKWARD_PRE",),
    "fsdp_config.fsdp_forward_prefetch": (False,),
    "fsdp_config.fsdp_auto_wrap_policy": ("TRANSFORMER_BASED_WRAP",),
    "fsdp_config.fsdp_use_orig_params": (True, False),
    "deepspeed_config.offload_param_device": ("none", None),
    "parallelism_config.parallelism_config_cp_backend": ("torch",),
    "parallelism_config.parallelism_config_sp_backend": ("deepspeed",),
    "use_cpu": (False,),
    "gpu_ids": ("all", None),
}
NO_INFLUENCE = frozenset(
    foreign_names("""
    compute_environment debug machine_rank main_process_ip main_process_port rdzv_backend same_network
    main_training_function enable_cpu_affinity downcast_bf16 tpu_name tpu_zone tpu_use_cluster tpu_use_sudo
    command_file commands tpu_vm tpu_env mpirun_config fsdp_config.fsdp_cpu_ram_efficient_loading
    fsdp_config.fsdp_state_dict_type fsdp_config.fsdp_sync_module_states
    fsdp_config.fsdp_transformer_layer_cls_to_wrap deepspeed_config.zero3_init_flag
    deepspeed_config.zero3_save_16bit_model deepspeed_config.gradient_clipping deepspeed_config.deepspeed_hostfile
    deepspeed_config.deepspeed_multinode_launcher deepspeed_config.deepspeed_inclusion_filter
    deepspeed_config.deepspeed_exclusion_filter deepspeed_config.offload_optimizer_nvme_path
    deepspeed_config.offload_param_nvme_path
    """)
)
_STAGES = {
    "FULL_SHARD": 3, "1": 3, "SHARD_GRAD_OP": 2, "2": 2, "NO_SHARD": 0, "3": 0, "HYBRID_SHARD": 3, "4": 3,
    "HYBRID_SHARD_ZERO2": 2, "5": 2, "TRUE": 3, "FALSE": 2,
}  # fmt: skip
"""Strategies of the first version, by name and number, and the switch of the second -> ZeRO stage."""
_HYBRID = frozenset({"HYBRID_SHARD", "4", "HYBRID_SHARD_ZERO2", "5"})
_PRECISIONS = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8"}


def job_of_yaml(
    text: str, where: str, model: ModelSpec, words: Sequence[str] = (), devices: int | None = None
) -> LaunchJob:
    """The run of a configuration file, settings behind it laid over.  Raises DocumentInvalid."""
    config = _loaded(text, where)
    config |= {name: literal(value) for name, value in overridden(config, words, where).items()}
    reader = Reader(config, text, where)
    kind = str(reader.value("distributed_type", "NO"))
    if kind not in ("FSDP", "DEEPSPEED", "MULTI_GPU", "NO"):
        raise DocumentInvalid(
            f"distributed_type {kind} is not read", where=where, hint="FSDP, DEEPSPEED and MULTI_GPU are"
        )
    devices = devices or reader.number("num_processes", 1) or 1
    strategy = _degrees(reader, kind, devices)
    strategy |= {"FSDP": _fsdp, "DEEPSPEED": _deepspeed}.get(kind, _plain)(reader, strategy)
    precision = str(reader.value("mixed_precision", "no"))
    workload = {"precision": _PRECISIONS[precision]} if precision in _PRECISIONS else {}
    if workload and kind == "DEEPSPEED":
        workload["gradient_dtype"] = "bf16"  # DeepSpeed's default is the model's type, and the plugin has no other
    if not workload:
        reader.missed.append(f"mixed_precision = {precision}: the run is in fp32 (bf16 is predicted)")
    reader.told.append("batch and sequence length: the file does not say them (--global-batch-size, --sequence-length)")
    engine = kind == "DEEPSPEED"
    if engine:
        reader.told.append("back-end deepspeed: Accelerate starts DeepSpeed's engine, which trains")
    return LaunchJob(
        model,
        workload,
        strategy,
        devices,
        arguments=_lists(reader),
        vocabulary=Vocabulary(model.vocab_size, "the model's"),
        assumed=tuple(reader.told),
        undecided=tuple(reader.undecided),
        launches=1,
        software="deepspeed" if engine else "accelerate",
    )


def _loaded(text: str, where: str) -> dict[str, Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        config = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        raise DocumentInvalid(f"not YAML: {str(error).splitlines()[0]}", where=where) from error
    if not isinstance(config, dict) or not {"distributed_type", "compute_environment"} & set(config):
        what = "this is no configuration of accelerate launch"
        raise DocumentInvalid(what, where=where, hint="--from reads files that `accelerate config` writes")
    return config


def _degrees(reader: Reader, kind: str, devices: int) -> dict[str, Any]:
    """Degrees of ``parallelism_config``; without one every process is a shard of the data parallelism."""

    def size(name: str) -> int | None:
        return reader.number(f"parallelism_config.parallelism_config_{name}_size")

    tp, ring, ulysses = size("tp") or 1, size("cp") or 1, size("sp") or 1
    if ring > 1 and ulysses > 1:
        raise DocumentInvalid("cp and sp exclude each other", where=reader.where, hint="leave one out")
    replicate, cp = size("dp_replicate") or 1, max(ring, ulysses)
    shard, rest = divmod(devices, tp * cp * replicate)
    said = size("dp_shard")
    if rest or not shard or (said is not None and kind == "FSDP" and said != shard):
        what = f"tp {tp}, cp {cp}, dp_replicate {replicate} and dp_shard {said} do not make {devices} devices"
        raise DocumentInvalid(what, where=reader.where, hint="correct num_processes, or give --devices")
    if ring > 1 and reader.value("parallelism_config.parallelism_config_cp_comm_strategy", "allgather") != "alltoall":
        reader.missed.append("parallelism_config_cp_comm_strategy = allgather (keys and values are sent round a ring)")
    kinds = "all_to_all" if ulysses > 1 else "ring" if ring > 1 else "none"
    return {"tp": tp, "sp": False, "cp": cp, "cp_kind": kinds, "dp_replicate": replicate, "dp_shard": shard}


def _fsdp(reader: Reader, strategy: Mapping[str, Any]) -> dict[str, Any]:
    version = reader.number("fsdp_config.fsdp_version", 1)
    resharded = reader.value("fsdp_config.fsdp_reshard_after_forward", True)
    word = str(resharded if version == 2 else reader.value("fsdp_config.fsdp_sharding_strategy", resharded)).upper()
    if word not in _STAGES:
        raise DocumentInvalid(f"the sharding strategy {word} is not known", where=reader.where, hint="correct it")
    found: dict[str, Any] = {
        "zero_stage": _STAGES[word],
        "recompute": "full" if reader.switch("fsdp_config.fsdp_activation_checkpointing") else "none",
        "overlap_grad_reduce": True,
        "overlap_param_gather": True,
        "optimizer_offload": False,
    }
    machines = reader.number("num_machines", 1) or 1
    if word in _HYBRID and machines > 1:
        found |= {"dp_replicate": machines, "dp_shard": strategy["dp_shard"] // machines}
        reader.told.append(f"dp_replicate={machines}: hybrid sharding inside each machine")
    return found


def _deepspeed(reader: Reader, strategy: Mapping[str, Any]) -> dict[str, Any]:
    if reader.value("deepspeed_config.deepspeed_config_file") is not None:
        what = "deepspeed_config_file says the rest in a file of its own"
        raise DocumentInvalid(what, where=reader.where, hint="give that file: --from ds_config.json")
    stage = reader.number("deepspeed_config.zero_stage", 2, least=0) or 0
    found: dict[str, Any] = {
        "zero_stage": stage,
        "optimizer_offload": reader.value("deepspeed_config.offload_optimizer_device", "none") in ("cpu", "nvme"),
        "overlap_grad_reduce": stage == 3,
        "overlap_param_gather": stage == 3,
    }
    if (steps := reader.number("deepspeed_config.gradient_accumulation_steps")) is not None:
        found["num_microbatches"] = steps
    reader.told.append("recompute: the file does not say it; none is predicted (--strategy recompute=full says it)")
    return found


def _plain(_: Reader, strategy: Mapping[str, Any]) -> dict[str, Any]:
    """Replicas of the whole model."""
    dp = strategy["dp_replicate"] * strategy["dp_shard"]
    return {"zero_stage": 0, "dp_replicate": 1, "dp_shard": dp, "overlap_grad_reduce": dp > 1}


def _lists(reader: Reader) -> ArgumentLists:
    found: dict[str, list[str]] = {"used": [], "no_influence": [], "not_modelled": list(reader.missed), "unknown": []}
    for key, value in flat_settings(reader.config):
        above = {key, key.partition(".")[0]}
        shown = key if isinstance(value, (dict, list)) else f"{key} = {value}"
        if key in USED:
            found["used"].append(shown)
        elif above & NO_INFLUENCE or (above & NOT_MODELLED and value in ASSUMED.get(key, ({}, "auto"))):
            found["no_influence"].append(shown)
        else:
            found["not_modelled" if above & NOT_MODELLED else "unknown"].append(shown)
    return ArgumentLists(**{name: tuple(rows) for name, rows in found.items()})
