"""Checks ``ds_config.json``: that DeepSpeed takes every key, and does what the file says.

DeepSpeed 0.19.8 refuses unknown keys inside ``zero_optimization`` and ``tensor_parallel`` but accepts them in silence
at the top level and inside ``expert_parallel``; so every key is held against a list of those that do something.
Sources: ``runtime/config.py`` (98-142 removed keys, 511 precision, 602 batch identity, 701-714 reduced states),
``runtime/zero/config.py`` (389-400), ``runtime/zero/offload_config.py``, ``module_inject/auto_ep_config.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.backends.deepspeed.version import DEEPSPEED_VERSION
from planner.backends.emission.emission import Finding
from planner.backends.rules.foreign_names import foreign_names

_CONFIG = f"deepspeed {DEEPSPEED_VERSION} runtime/config.py"
_ZERO = f"deepspeed {DEEPSPEED_VERSION} runtime/zero/config.py"

REMOVED_KEYS = frozenset(
    foreign_names("""
    nebula compression_training amp quantize_training sparse_gradients eigenvalue sparse_attention elasticity
    graph_harvesting curriculum_learning progressive_layer_drop
    """)
)
REMOVED_ZERO_KEYS = frozenset(["mics_shard_size", "mics_hierarchical_params_gather", "zeropp_loco_param"])

KEYS: dict[str, frozenset[str] | None] = {
    **dict.fromkeys(
        foreign_names("""
        train_batch_size train_micro_batch_size_per_gpu gradient_accumulation_steps steps_per_print gradient_clipping
        zero_allow_untested_optimizer zero_force_ds_cpu_optimizer communication_data_type prescale_gradients
        gradient_predivide_factor wall_clock_breakdown memory_breakdown dump_state dataloader_drop_last
        disable_allgather seed optimizer scheduler
        """)
    ),
    "zero_optimization": frozenset(
        foreign_names("""
        stage contiguous_gradients reduce_scatter reduce_bucket_size allgather_partitions allgather_bucket_size
        overlap_comm compute_grad_norm offload_param offload_optimizer sub_group_size round_robin_gradients
        stage3_prefetch_bucket_size stage3_param_persistence_threshold stage3_max_live_parameters
        stage3_max_reuse_distance stage3_gather_16bit_weights_on_model_save zero_hpz_partition_size
        zero_quantized_weights zero_quantized_gradients
        """)
    ),
    "bf16": frozenset(["enabled", "immediate_grad_update", "bf16_master_weights_and_grads", "bf16_optimizer_states"]),
    "fp16": frozenset(
        foreign_names("""
        enabled loss_scale initial_scale_power loss_scale_window hysteresis consecutive_hysteresis min_loss_scale
        """)
    ),
    "data_types": frozenset({"grad_accum_dtype"}),
    "tensor_parallel": frozenset({"autotp_size", "tp_overlap_comm", "vocab_parallel_lm_head"}),
    "expert_parallel": frozenset(
        ["enabled", "autoep_size", "expert_tensor_parallel_size", "preset_model", "comm_backend"]
    ),
    "pipeline": frozenset({"stages", "activation_checkpoint_interval"}),
    "flops_profiler": frozenset(["enabled", "profile_step", "module_depth", "top_modules", "detailed", "output_file"]),
    "tensorboard": frozenset(["enabled", "output_path", "job_name"]),
    "wandb": frozenset(["enabled", "group", "team", "project"]),
    "checkpoint": frozenset({"tag_validation", "load_universal", "use_node_local_storage"}),
}
"""Key -> the keys allowed inside it; None = a value, or a section that PyTorch itself checks."""


def config_findings(config: Mapping[str, Any], data_parallel_size: int) -> list[Finding]:
    """Everything wrong at once: what the parser refuses (``F``) and what it would swallow (``S``)."""
    return [
        Finding(f"deepspeed.{rule}", message, source, where)
        for rule, message, source, where in (
            *_keys(config),
            *_batch(config, data_parallel_size),
            *_precision(config),
            *_zero(config),
        )
    ]


_Found = Iterator[tuple[str, str, str, str]]


def _keys(config: Mapping[str, Any]) -> _Found:
    for key, value in config.items():
        if key in REMOVED_KEYS:
            yield "F1", f"{key} was removed from DeepSpeed; delete it", f"{_CONFIG}:98", f"#/{key}"
        elif key not in KEYS:
            yield "S1", f"{key} is not a key that does anything here; delete it", _CONFIG, f"#/{key}"
        elif (allowed := KEYS[key]) is not None:
            if not isinstance(value, dict):
                yield "F2", f"{key} must be an object", _CONFIG, f"#/{key}"
                continue
            for inner in value:
                where = f"#/{key}/{inner}"
                if key == "zero_optimization" and inner in REMOVED_ZERO_KEYS:
                    yield "F1", f"{inner} was removed from DeepSpeed; delete it", f"{_CONFIG}:131", where
                elif inner not in allowed:
                    # Sections parsed by a closed model refuse; the others swallow.
                    rule = "F3" if key in {"zero_optimization", "tensor_parallel", "bf16", "fp16"} else "S1"
                    yield rule, f"{inner} is not a key of {key} that does anything here", _CONFIG, where


def _batch(config: Mapping[str, Any], data_parallel_size: int) -> _Found:
    names = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    sizes = [config.get(name) for name in names]
    for name, size in zip(names, sizes, strict=True):
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            yield "F4", f"{name} must be a positive whole number, is {size!r}", f"{_CONFIG}:602", f"#/{name}"
            return
    total, micro, steps = (int(size or 0) for size in sizes)
    if total != micro * steps * data_parallel_size:
        message = f"train_batch_size {total} is not {micro} x {steps} x {data_parallel_size} data-parallel ranks"
        yield "F4", message, f"{_CONFIG}:602", "#/train_batch_size"


def _section(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = config.get(key)
    return value if isinstance(value, dict) else {}


def _precision(config: Mapping[str, Any]) -> _Found:
    bf16 = _section(config, "bf16")
    if bf16.get("enabled") and _section(config, "fp16").get("enabled"):
        yield "F5", "bf16 and fp16 cannot both be enabled", f"{_CONFIG}:511", "#/fp16/enabled"
    if not bf16.get("enabled") and not _section(config, "fp16").get("enabled"):
        yield "S2", "neither bf16 nor fp16 is enabled: weights would stay fp32", _CONFIG, "#/bf16"
    stage = _section(config, "zero_optimization").get("stage", 0)
    for key in ("bf16_master_weights_and_grads", "bf16_optimizer_states"):
        if bf16.get(key) and stage not in {1, 2, 3}:
            yield "F6", f"{key} needs ZeRO stage 1 to 3", f"{_CONFIG}:701", f"#/bf16/{key}"
    if bf16.get("bf16_optimizer_states") and not bf16.get("bf16_master_weights_and_grads"):
        message = "bf16_optimizer_states needs bf16_master_weights_and_grads"
        yield "F6", message, f"{_CONFIG}:714", "#/bf16/bf16_optimizer_states"


def _zero(config: Mapping[str, Any]) -> _Found:
    zero = _section(config, "zero_optimization")
    where = "#/zero_optimization"
    stage = zero.get("stage", 0)
    if stage not in {0, 1, 2, 3} or isinstance(stage, bool):
        yield "F7", f"stage must be 0 to 3, is {stage!r}", _ZERO, f"{where}/stage"
    if zero.get("compute_grad_norm") is False and stage not in {1, 2}:
        yield "F8", "compute_grad_norm=false needs stage 1 or 2", f"{_ZERO}:389", f"{where}/compute_grad_norm"
    for name in ("offload_optimizer", "offload_param"):
        offload = zero.get(name)
        if not isinstance(offload, dict):
            continue
        device, inside = offload.get("device", "none"), f"{where}/{name}"
        if device not in {"none", "cpu", "nvme"}:
            yield "F9", f"device must be none, cpu or nvme, is {device!r}", _ZERO, f"{inside}/device"
        if device == "nvme" and not offload.get("nvme_path"):
            yield "S3", "nvme offload without nvme_path is accepted and fails later", _ZERO, f"{inside}/nvme_path"
        if device != "none" and stage == 0:
            yield "S4", f"{name} is ignored with stage 0", _ZERO, inside
        if name == "offload_optimizer" and offload.get("ratio", 1.0) < 1.0 and stage != 3:
            yield "F10", "a ratio below 1 needs stage 3", f"{_ZERO}:398", f"{inside}/ratio"
