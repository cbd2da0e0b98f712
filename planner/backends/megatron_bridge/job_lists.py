"""What became of each setting that a script makes of a Bridge configuration: used, without influence, not modelled."""

from __future__ import annotations

from typing import Any

from planner.backends.megatron_bridge.fields import FIELDS
from planner.backends.megatron_bridge.recipe_table import section_fields
from planner.backends.megatron_bridge.settings import Settings, words_of
from planner.model.argument_lists import known_arguments
from planner.model.megatron_flags import MegatronFlags
from planner.model.megatron_unmodelled import ArgumentLists, argument_lists
from planner.model.python_values import plain

_BY_PATH = {path: each for each in FIELDS for path in each.paths}
_USED = frozenset({
    "dataset.seq_length", "dataset.sequence_length", "comm_overlap", "mixed_precision", "mixed_precision.fp4",
    "model", "model.activation_func", "model.vocab_size", "model.should_pad_vocab", "model.fp8", "model.hf",
    "model.provider", "model.num_layers_in_first_pipeline_stage", "model.num_layers_in_last_pipeline_stage",
    "model.account_for_embedding_in_pipeline_split", "model.account_for_loss_in_pipeline_split", "peft", "peft.dim",
    "peft.target_modules", "peft.exclude_modules",
    "model.tp_comm_overlap", "optimizer.exp_avg_dtype", "optimizer.exp_avg_sq_dtype",
    "optimizer.main_params_dtype", "tokenizer",
    "tokenizer.tokenizer_type", "tokenizer.tokenizer_model", "tokenizer.vocab_size",
    "tokenizer.use_tokenizer_vocab_size", "train", "dataset", "ddp", "optimizer", "dist",
})  # fmt: skip
_HARMLESS = frozenset({
    "checkpoint", "env_vars", "ft", "inprocess_restart", "logger", "nvrx_straggler", "profiling",
    "rerun_state_machine", "rng", "scheduler", "straggler", "tensor_inspect", "tokenizer", "validation",
    "optimizer_config_override_provider", "dataset",
})  # fmt: skip
"""Sections that change nothing that a plan decides or predicts."""
_HARMLESS_FIELDS = frozenset({
    "train.train_iters", "train.train_samples", "train.manual_gc", "train.manual_gc_interval", "train.manual_gc_eval",
    "train.exit_interval", "train.exit_duration_in_mins", "train.eval_iters", "train.eval_interval",
    "ddp.check_for_nan_in_grad", "ddp.check_for_large_grads", "ddp.average_in_collective", "model.fp8_recipe",
    "mixed_precision.fp8_recipe", "dist.distributed_timeout_minutes", "dist.distributed_backend",
    "model.pipeline_dtype", "model.params_dtype", "model.autocast_dtype", "model.bf16",
    "model.calculate_per_token_loss",
    "model.init_method_std", "model.attention_backend", "model.apply_rope_fusion", "model.bias_dropout_fusion",
    "model.cross_entropy_fusion_impl", "model.cuda_graph_warmup_steps", "model.cuda_graph_scope",
    "model.transformer_impl", "model.moe_router_dtype", "model.moe_aux_loss_coeff",
    "optimizer.main_grads_dtype", "peft.alpha", "peft.dropout_position",
    "peft.lora_A_init_method", "peft.lora_B_init_method", "peft.lora_dtype", "peft.params_to_save",
})  # fmt: skip
_PACKING = frozenset({
    "dataset.enable_in_batch_packing", "dataset.enable_offline_packing", "dataset.offline_packing_specs",
    "dataset.packed_sequence_specs",
})  # fmt: skip
"""They make samples of several documents, whose attention is shorter."""
_OLD_NAMES = frozenset(
    {"train.eval_iters", "train.eval_interval", "dataset.sequence_length", "model.hf", "model.provider"}
)


def list_of(path: str) -> str:
    """The list of one path, whatever its value: used, no_influence, not_modelled or unknown."""
    section, _, name = path.partition(".")
    fields = section_fields()
    if path in _USED:
        return "used"
    if path in _PACKING:
        return "not_modelled"
    if path in _HARMLESS_FIELDS:
        return "no_influence"
    if path in _BY_PATH:
        return known_arguments("megatron").list_of(_BY_PATH[path].flag.removeprefix("--")) or "not_modelled"
    if section in _HARMLESS or (not name and section in fields[""]):
        return "no_influence"
    if name.split(".")[0] not in fields.get(section, frozenset()) and path not in _OLD_NAMES:
        return "unknown"
    harmless = name.replace("_", "-") in known_arguments("megatron").no_influence
    return "no_influence" if harmless else "not_modelled"


def lists_of(settings: Settings, harmless: tuple[str, ...], missed: tuple[str, ...]) -> ArgumentLists:
    """The lists of one configuration, and what the recipe itself has that no plan knows."""
    found: dict[str, list[str]] = {
        "used": [],
        "no_influence": list(harmless),
        "not_modelled": list(missed),
        "unknown": [],
    }
    for path, value in settings.said_values.items():
        found[_list_of_value(path, value)].append(path if value is None else f"{path}={plain(value)}")
    found["not_modelled"] += [line for line in _recipe_values(settings) if line not in found["not_modelled"]]
    return ArgumentLists(**{name: tuple(dict.fromkeys(rows)) for name, rows in found.items()})


def _list_of_value(path: str, value: Any) -> str:
    """The list of a path with a value: some values are what the prediction assumes."""
    held = list_of(path)
    if path in _BY_PATH and held == "not_modelled":
        words = words_of(_BY_PATH[path], value)
        lists = argument_lists(MegatronFlags(words, ""), words)
        return "not_modelled" if lists.not_modelled else "no_influence"
    if held == "not_modelled" and value in (None, False):
        return "no_influence"
    return held


def _recipe_values(settings: Settings) -> list[str]:
    """Values of the whole configuration that change the run and that no plan has a word for."""
    lines = []
    flex = settings.value("model.moe_token_dispatcher_type") == "flex" and settings.value("model.num_moe_experts") != 0
    if flex and settings.value("model.moe_flex_dispatcher_backend") == "ncclep":
        lines.append("model.moe_flex_dispatcher_backend=ncclep (deepep is predicted)")
    if settings.value("model.cuda_graph_impl") not in (None, "none"):
        lines.append(f"model.cuda_graph_impl={settings.value('model.cuda_graph_impl')}")
    if settings.value("model.cpu_offloading") and settings.value("model.cpu_offloading_num_layers"):
        lines.append(f"model.cpu_offloading_num_layers={settings.value('model.cpu_offloading_num_layers')}")
    if settings.value("comm_overlap.delay_wgrad_compute"):
        lines.append("comm_overlap.delay_wgrad_compute=True")
    fsdp = settings.value("ddp.use_megatron_fsdp", "dist.use_megatron_fsdp")
    if fsdp and settings.value("mixed_precision.fp8_param_gather", "ddp.fp8_param_gather"):
        lines.append("fp8_param_gather with Megatron-FSDP (parameters are predicted as gathered in bf16)")
    if settings.value("model.recompute_granularity") == "selective":
        words = [str(each) for each in settings.value("model.recompute_modules") or ()]
        flags = MegatronFlags(["--recompute-modules", *words], "")
        lines += [line.removeprefix("--") for line in argument_lists(flags, []).not_modelled]
    return lines
