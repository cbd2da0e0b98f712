"""The training run that a MaxText configuration describes: overrides of the release's ``base.yml``, then ``key=value``.

Degrees: an axis is its size inside a slice times that across slices; one -1 on each level takes what the devices leave
(``utils/max_utils.py``).  ``per_device_batch_size`` times devices times accumulation steps is the global batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

from planner.backends.maxtext.mesh_axes import AXES, KEYS
from planner.backends.maxtext.read import config_strategy, parse_config
from planner.backends.maxtext.saved_tensors import TENSORS, canonical_modules, read_remat, remat_keys
from planner.backends.maxtext.shipped_models import BASE, shipped_model
from planner.backends.maxtext.version import MAXTEXT_VERSION
from planner.backends.rules.foreign_names import foreign_names
from planner.backends.rules.settings import literal
from planner.errors import DocumentInvalid
from planner.model.megatron_args import LaunchJob
from planner.model.megatron_unmodelled import ArgumentLists
from planner.model.megatron_vocabulary import Vocabulary
from planner.strategy.strategy import RecomputeModule

DEFAULTS: Mapping[str, Any] = {
    "per_device_batch_size": 12.0, "gradient_accumulation_steps": 1, "max_target_length": 2048, "remat_policy": "full",
    "quantization": "", "dtype": "bfloat16", "opt_type": "adamw", "num_slices": -1, "model_name": "default",
    "override_model_config": False, "global_parameter_scale": 1, "context_parallel_strategy": "all_gather",
    "num_layers_per_pipeline_stage": 1, "num_pipeline_repeats": -1, "num_pipeline_microbatches": -1,
    "shard_optimizer_over_data": False, "optimizer_memory_host_offload": False, "enable_dropout": True,
}  # fmt: skip
"""Of the keys that are read, as ``configs/base.yml`` has them."""
DEGREES = tuple(f"{level}_{KEYS[axis]}_parallelism" for level in ("ici", "dcn") for axis in AXES)
OTHER_AXES = foreign_names("""
diloco fsdp_transpose sequence context_usp_ulysses context_autoregressive tensor_sequence autoregressive
""")
"""Axes that the planner has no word for: refused where they are used."""
USED = frozenset({*DEFAULTS, *BASE, *DEGREES, *TENSORS, "base_config"})
HARMLESS = foreign_names("""
adam_ async_checkpointing base_output_directory checkpoint dataset_ data_shuffle debug enable_checkpoint enable_data_
enable_goodput enable_jax_profiler enable_tensorboard enable_wandb eval_ gcs_metrics goodput_ gradient_clipping grain_
hardware hf_ init_weights_seed jax_cache_dir learning_rate load_ log_ lr_schedule max_num_checkpoints metrics_file
monitor_goodput profile profiler rope_ routed_bias routed_scaling run_name save_ skip_first_n steps tokenize tokenizer
train_split upload_all warmup_steps wandb_ max_position_embeddings original_max beta_fast beta_slow mscale
""")
"""Beginnings of keys that change no step that the planner predicts."""
POLICIES: Mapping[str, tuple[RecomputeModule, ...]] = {
    "minimal": ("attention_core", "norm"),
    "minimal_with_context": ("norm",),
    "minimal_flash": ("norm",),
    "save_dot_except_mlp": ("attention_core", "norm", "mlp"),
    "save_dot_with_context_except_mlp": ("norm", "mlp"),
}
"""``remat_policy`` -> what is computed again beside experts, which none keeps (layers/nnx_decoders.py:1258)."""


def job_of_yaml(text: str, where: str, words: Sequence[str] = (), devices: int | None = None) -> LaunchJob:
    """The run of a configuration, ``key=value`` behind it laid over.  Raises DocumentInvalid."""
    written = parse_config(text)
    if written.get("base_config", "base.yml") != "base.yml":
        what = f"it builds on {written['base_config']!r}, which is not read"
        raise DocumentInvalid(what, where=where, hint="write its keys into the file, over base.yml")
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise DocumentInvalid(f"{word!r} is not key=value", where=where, hint="for example -- steps=10")
        written[key] = literal(value)
    if devices is None:
        raise DocumentInvalid("the devices decide its mesh", where=where, hint="say how many: --devices N")
    config, told, missed = {**DEFAULTS, **written}, list[str](), list[str]()
    model = _model(written, config, where)
    sizes = _mesh(config, devices, where, told)
    _pipeline(config, sizes["stage"], model.num_layers)
    _remat(config, where, missed, latent=model.layer_kinds[0].attention.kind == "mla")
    if config["num_experts"] == 1 and sizes["expert"] > 1:
        raise DocumentInvalid("an expert axis without experts", where=where, hint="leave ici_expert_parallelism out")
    try:
        strategy = _fields(config, sizes)
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise DocumentInvalid(f"no strategy in it: {error}", where=where) from None
    batch = int(config["per_device_batch_size"] * devices) * config["gradient_accumulation_steps"]
    told.append(f"global batch {batch:,}: {config['per_device_batch_size']} a device, {devices:,} devices")
    if sizes["context"] > 1 and config["context_parallel_strategy"] not in ("ring", "ulysses"):
        missed.append(f"context_parallel_strategy: {config['context_parallel_strategy']} (taken as a ring)")
    return LaunchJob(
        model,
        _workload(config, batch, missed),
        strategy,
        devices,
        arguments=_lists(written, missed),
        vocabulary=Vocabulary(model.vocab_size, f"{model.vocab_size:,} of MaxText's {config['model_name']}"),
        assumed=tuple(told),
        launches=1,
        software="maxtext",
    )


def _model(written: Mapping[str, Any], config: dict[str, Any], where: str) -> Any:
    over = {key: value for key, value in written.items() if key in BASE}
    if over and config["model_name"] != "default" and not config["override_model_config"]:
        what = f"{', '.join(over)} beside model_name, which MaxText refuses without override_model_config"
        raise DocumentInvalid(what, where=where, hint="leave one out")
    if config["global_parameter_scale"] != 1:
        raise DocumentInvalid("global_parameter_scale is not read", where=where, hint="write the base_ sizes")
    model = shipped_model(str(config["model_name"]), over, config["max_target_length"], where)
    config["num_experts"] = max((kind.moe.num_experts for kind in model.layer_kinds if kind.moe), default=1)
    return model


def _said_product(config: Mapping[str, Any], level: str) -> int | None:
    """The product of a level's degrees that are said; None where one is -1 or none is said."""
    said = [config[name] for axis in AXES if (name := f"{level}_{KEYS[axis]}_parallelism") in config]
    return prod(said) if said and all(isinstance(each, int) and each > 0 for each in said) else None


def _mesh(config: Mapping[str, Any], devices: int, where: str, told: list[str]) -> dict[str, int]:
    slices = config["num_slices"]
    if slices == -1:
        slices = _said_product(config, "dcn") or 1
        why = "one slice, as the file does not say how many" if slices == 1 else "what the dcn degrees make"
        told.append(f"num_slices={slices}: {why}")
    for level in ("ici", "dcn"):
        for axis in OTHER_AXES:
            if config.get(f"{level}_{axis}_parallelism", 1) not in (1, -1):
                what = f"{level}_{axis}_parallelism has no word in the planner"
                raise DocumentInvalid(what, where=where, hint="use data, fsdp, tensor, context, expert or pipeline")
    if devices % slices:
        raise DocumentInvalid(f"{slices} slices do not divide {devices} devices", where=where, hint="--devices N")
    levels = []
    for level, total, free in (("ici", devices // slices, "fsdp"), ("dcn", slices, "data")):
        names = {axis: f"{level}_{KEYS[axis]}_parallelism" for axis in AXES}
        sizes = {axis: config.get(name, -1 if axis == free else 1) for axis, name in names.items()}
        if not all(isinstance(size, int) for size in sizes.values()):
            raise DocumentInvalid(f"the {level} degrees are no whole numbers", where=where, hint="correct them")
        open_axes = [axis for axis, size in sizes.items() if size == -1]
        known = prod(size for size in sizes.values() if size != -1)
        if len(open_axes) > 1 or known < 1 or total % known or (not open_axes and known != total):
            what = (
                f"the {level} degrees {', '.join(f'{axis}={size}' for axis, size in sizes.items())} do not make {total}"
            )
            raise DocumentInvalid(what, where=where, hint="one of them may be -1")
        sizes |= dict.fromkeys(open_axes, total // known)
        levels.append(sizes)
    return {axis: levels[0][axis] * levels[1][axis] for axis in AXES}


def _pipeline(config: dict[str, Any], stages: int, layers: int) -> None:
    if stages == 1:
        return
    if config["num_pipeline_repeats"] == -1:
        config["num_pipeline_repeats"] = max(layers // (stages * config["num_layers_per_pipeline_stage"]), 1)
    if config["num_pipeline_microbatches"] == -1:
        config["num_pipeline_microbatches"] = stages


def _remat(config: dict[str, Any], where: str, missed: list[str], *, latent: bool) -> None:
    """Turns a named policy into the tensors' places, which plans write."""
    policy = config["remat_policy"]
    if policy in POLICIES:
        found = {*POLICIES[policy], *(("moe",) if config["num_experts"] > 1 else ())}
        config |= remat_keys(
            "selective", canonical_modules(tuple(found), dense_layers=True, expert_layers=True), offload=False
        )
        if latent:
            missed.append(f"remat_policy: {policy} keeps no latent projection (they are predicted as kept)")
    elif policy == "none":
        config["remat_policy"] = "full"  # MaxText wraps every layer whatever it says
    elif read_remat(config) is None:
        hint = f"full, custom or {', '.join(POLICIES)}"
        raise DocumentInvalid(f"remat_policy {policy!r} is not read", where=where, hint=hint)


def _fields(config: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    found = config_strategy(config, sizes)
    names = foreign_names("""
    tp sp cp cp_kind ep etp pp vpp dp_replicate dp_shard micro_batch_size num_microbatches schedule zero_stage recompute
    recompute_modules optimizer_offload activation_offload
    """)
    return {name: getattr(found, name) for name in names}


def _workload(config: Mapping[str, Any], batch: int, missed: list[str]) -> dict[str, Any]:
    quantization = str(config["quantization"])
    if quantization and not quantization.startswith(("fp8", "te_fp8", "nanoo_fp8")):
        missed.append(f"quantization: {quantization} (bf16 is predicted)")
    eight = bool(quantization) and "fp8" in quantization
    if not eight and config["dtype"] != "bfloat16":
        missed.append(f"dtype: {config['dtype']} (bf16 is predicted)")
    if config["opt_type"] not in ("adamw", "adam_pax"):
        missed.append(f"opt_type: {config['opt_type']} (taken as adam)")
    # With ZeRO-1 the accumulation loop runs on bf16 copies of the weights (utils/gradient_accumulation.py:96).
    halved = config["shard_optimizer_over_data"] and config["gradient_accumulation_steps"] > 1
    return {
        "global_batch_size": batch,
        "sequence_length": config["max_target_length"],
        "precision": "fp8" if eight else "bf16",
        **({"gradient_dtype": "bf16"} if halved else {}),
    }


@cache
def base_keys() -> frozenset[str]:
    """Every key of ``base.yml``."""
    name = f"base_keys_{MAXTEXT_VERSION.replace('.', '_')}.txt"
    return frozenset(Path(__file__).with_name(name).read_text(encoding="utf-8").split())


def list_of(key: str) -> str:
    """The list of one key: used, no_influence, not_modelled or unknown."""
    if key in USED:
        return "used"
    if key not in base_keys():
        return "unknown"
    return "no_influence" if key.startswith(HARMLESS) else "not_modelled"


def _lists(written: Mapping[str, Any], missed: Sequence[str]) -> ArgumentLists:
    found: dict[str, list[str]] = {"used": [], "no_influence": [], "not_modelled": list(missed), "unknown": []}
    for key, value in written.items():
        found[list_of(key)].append(f"{key}: {value}" if not isinstance(value, (dict, list)) else key)
    return ArgumentLists(**{name: tuple(rows) for name, rows in found.items()})
