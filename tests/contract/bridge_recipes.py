"""Writes the defaults of Megatron-Bridge's recipes: ``python -m tests.contract.bridge_recipes OVERLAY FILE``.

``OVERLAY``: a folder with the packages megatron-bridge and megatron-core, as ``meshwright check`` installs them
(``.cache/validators/megatron-bridge-*``).  Every recipe function is called without arguments; Hugging Face is not
asked: a model is its name, and what the recipe sets on it.  ``planner/backends/megatron_bridge/recipes_*.jsonl`` is
such a file.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import pkgutil
import sys
import types
import typing
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

MISSING = object()
LAYOUT = {"embedding": "E", "decoder": "t", "mtp": "m", "loss": "L"}
STUBS = (
    "hydra",
    "omegaconf",
    "nvidia_resiliency_ext",
    "transformer_engine",
    "datasets",
    "modelopt",
    "diffusers",
    "tensorboard",
    "megatron.energon",
    "megatron.bridge.diffusion",
    "megatron.bridge.recipes.flux",
    "megatron.bridge.recipes.wan",
    "megatron.bridge.perf_recipes.wan",
    "megatron.bridge.perf_recipes.flux",
    "megatron.core.transformer.moe.ops.paged_stash",
)
MODEL = frozenset({
    "num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups", "kv_channels",
    "num_moe_experts", "moe_router_topk", "moe_ffn_hidden_size", "moe_shared_expert_intermediate_size",
    "moe_layer_freq", "mtp_num_layers", "vocab_size", "should_pad_vocab", "make_vocab_size_divisible_by",
    "share_embeddings_and_output_weights", "tensor_model_parallel_size", "pipeline_model_parallel_size",
    "virtual_pipeline_model_parallel_size", "context_parallel_size", "expert_model_parallel_size",
    "expert_tensor_parallel_size", "sequence_parallel", "seq_length", "cp_comm_type",
    "pipeline_model_parallel_layout", "account_for_embedding_in_pipeline_split",
    "account_for_loss_in_pipeline_split", "num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage",
    "microbatch_group_size_per_vp_stage", "recompute_granularity", "recompute_method", "recompute_num_layers",
    "recompute_modules", "cpu_offloading", "cpu_offloading_num_layers", "fine_grained_activation_offloading",
    "offload_modules", "cuda_graph_impl", "moe_token_dispatcher_type", "moe_flex_dispatcher_backend",
    "overlap_moe_expert_parallel_comm", "tp_comm_overlap", "fp8", "fp8_recipe"
})  # fmt: skip
SECTIONS = {
    "train": ("global_batch_size", "micro_batch_size"),
    "dataset": ("seq_length",),
    "ddp": (
        "use_distributed_optimizer",
        "overlap_grad_reduce",
        "overlap_param_gather",
        "grad_reduce_in_fp32",
        "use_megatron_fsdp",
        "data_parallel_sharding_strategy",
        "num_distributed_optimizer_instances",
    ),
    "optimizer": (
        "optimizer",
        "use_precision_aware_optimizer",
        "exp_avg_dtype",
        "exp_avg_sq_dtype",
        "optimizer_cpu_offload",
        "optimizer_offload_fraction",
    ),
    "tokenizer": ("tokenizer_type", "vocab_size", "use_tokenizer_vocab_size"),
    "comm_overlap": (
        "tp_comm_overlap",
        "overlap_grad_reduce",
        "overlap_param_gather",
        "overlap_moe_expert_parallel_comm",
        "delay_wgrad_compute",
    ),
    "mixed_precision": ("bf16", "fp16", "fp8", "fp4", "fp8_recipe", "grad_reduce_in_fp32", "fp8_param_gather"),
    "dist": ("use_megatron_fsdp", "use_tp_pp_dp_mapping"),
}


class Model:
    """What a recipe sets on its model; everything else is Bridge's own default of a provider."""

    def __init__(self, name: str | None, defaults: dict[str, Any]) -> None:
        vars(self).update(_name=name, _defaults=defaults, _methods=set())

    def __getattr__(self, name: str) -> Any:
        """A default of a provider; without one, what a class of this model would have."""
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._defaults:
            return self._defaults[name]
        raise AttributeError(name)


def plain(value: Any) -> Any:
    """Numbers, texts, lists of such; a torch type or function by its name, anything else as its kind."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(each, list) for each in value):
            return "|".join("".join(LAYOUT[word] for word in chunk) for chunk in value)
        return [plain(each) for each in value]
    if type(value).__module__.startswith("torch"):
        return str(value).removeprefix("torch.")
    if hasattr(value, "name") and isinstance(value.name, str):
        return value.name
    return f"<{getattr(value, '__name__', type(value).__name__)}>"


def provider_defaults() -> dict[str, Any]:
    """Defaults of a provider, from both kinds of attention."""
    from megatron.bridge.models import GPTModelProvider
    from megatron.bridge.models.mla_provider import MLAModelProvider

    found: dict[str, Any] = {}
    for kind in (MLAModelProvider, GPTModelProvider):
        for field in dataclasses.fields(kind):
            if field.default is not dataclasses.MISSING:
                found[field.name] = field.default
    return found


def described(recipe: Any, defaults: dict[str, Any]) -> dict[str, Any]:
    """Paths and values of one configuration."""
    from megatron.bridge.training.mixed_precision import get_mixed_precision_config

    found: dict[str, Any] = {}
    model = recipe.model
    if isinstance(model, Model):
        found["hf"] = model._name
        found |= {f"model.{name}": plain(value) for name, value in vars(model).items() if name in MODEL}
    else:
        found["provider"] = type(model).__name__
        for name in sorted(MODEL):
            value = getattr(model, name, None)
            if value is not None and value != defaults.get(name):
                found[f"model.{name}"] = plain(value)
    if isinstance(recipe.mixed_precision, str):
        recipe.mixed_precision = get_mixed_precision_config(recipe.mixed_precision)
    for section, names in SECTIONS.items():
        part = getattr(recipe, section, None)
        for name in names if part is not None else ():
            value = plain(getattr(part, name, None))
            if value is not None and not (name == "vocab_size" and value == 1):
                found[f"{section}.{name}"] = value
    if getattr(recipe, "comm_overlap", None) is not None:
        found["comm_overlap"] = True
    if getattr(recipe, "peft", None) is not None:
        found["peft"] = type(recipe.peft).__name__
        found |= {f"peft.{name}": plain(getattr(recipe.peft, name)) for name in ("target_modules", "dim")}
    return found


def functions(package: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Recipe functions of a package and everything below it, by name."""
    root = importlib.import_module(package)
    for info in pkgutil.walk_packages(root.__path__, f"{package}."):
        try:
            module = importlib.import_module(info.name)
        except Exception as error:  # one family less is told
            sys.stderr.write(f"{info.name}: {type(error).__name__}: {error}\n")
            continue
        for name, value in vars(module).items():
            is_recipe = name.endswith("_config") and not name.startswith("_") and isinstance(value, types.FunctionType)
            if is_recipe and value.__module__.startswith(f"{package}."):
                yield name, value


def recipes() -> dict[str, dict[str, dict[str, Any]]]:
    """Both packages' recipes by name; the benchmark package is held apart."""
    from megatron.bridge import AutoBridge

    # Some recipes ask for a vocabulary, which is that of the model's config.json: 1 stands for it.
    defaults = provider_defaults() | {"vocab_size": 1}

    def named(name: str, *words: Any, **settings: Any) -> Any:
        return types.SimpleNamespace(
            to_megatron_provider=lambda *more, **others: Model(name, defaults),
            hf_pretrained=types.SimpleNamespace(config=types.SimpleNamespace()),
        )

    found: dict[str, dict[str, dict[str, Any]]] = {"recipes": {}, "perf_recipes": {}}
    failed: dict[str, str] = {}
    with (
        mock.patch.object(AutoBridge, "from_hf_pretrained", named),
        mock.patch.object(AutoBridge, "from_hf_config", named, create=True),
    ):
        for package, rows in found.items():
            for name, function in functions(f"megatron.bridge.{package}"):
                if name in rows:
                    continue
                try:
                    rows[name] = described(function(), defaults)
                except Exception as error:  # one recipe less is told
                    failed[f"{package}.{name}"] = f"{type(error).__name__}: {error}"[:160]
    for name, why in failed.items():
        sys.stderr.write(f"{name}: {why}\n")
    return found


def fields() -> dict[str, list[str]]:
    """Names of all fields of every section of a configuration."""
    from megatron.bridge.models import GPTModelProvider
    from megatron.bridge.models.mla_provider import MLAModelProvider
    from megatron.bridge.peft.canonical_lora import CanonicalLoRA
    from megatron.bridge.peft.dora import DoRA
    from megatron.bridge.peft.lora import LoRA
    from megatron.bridge.training import config as bridge
    from megatron.bridge.training.comm_overlap import CommOverlapConfig
    from megatron.bridge.training.mixed_precision import MixedPrecisionConfig

    sections = {
        "model": (GPTModelProvider, MLAModelProvider),
        "train": (bridge.TrainingConfig,),
        "optimizer": (bridge.OptimizerConfig,),
        "scheduler": (bridge.SchedulerConfig,),
        "ddp": (bridge.DistributedDataParallelConfig,),
        "dataset": (bridge.GPTDatasetConfig,),
        "logger": (bridge.LoggerConfig,),
        "tokenizer": (bridge.TokenizerConfig,),
        "checkpoint": (bridge.CheckpointConfig,),
        "dist": (bridge.DistributedInitConfig,),
        "rng": (bridge.RNGConfig,),
        "validation": (bridge.ValidationConfig,),
        "comm_overlap": (CommOverlapConfig,),
        "mixed_precision": (MixedPrecisionConfig,),
        "peft": (LoRA, DoRA, CanonicalLoRA),
        "": (bridge.ConfigContainer,),
    }
    return {
        section: sorted({field.name for kind in kinds for field in dataclasses.fields(kind)})
        for section, kinds in sections.items()
    }


def prepare(overlay: Path) -> None:
    """Bridge importable from the overlay, without CUDA and Transformer Engine."""
    from planner.backends.checking.answers import FeignedModules

    sys.path.insert(0, str(overlay))
    os.environ |= {"WORLD_SIZE": "8", "RANK": "0", "LOCAL_RANK": "0", "HF_HUB_OFFLINE": "1"}
    import torch
    import typing_extensions

    device = types.SimpleNamespace(major=9, minor=0, name="pretended", total_memory=80 << 30, multi_processor_count=132)
    vars(torch.cuda).update(
        get_device_properties=lambda *words: device,
        get_device_capability=lambda *words: (9, 0),
        current_device=lambda: 0,
    )
    if not hasattr(typing, "override"):  # Python 3.11
        vars(typing)["override"] = typing_extensions.override
    FeignedModules(*STUBS)


def main(overlay: Path, out: Path) -> None:
    """Write the recipes."""
    warnings.simplefilter("ignore")
    prepare(overlay)
    found = recipes()
    out.write_text("\n".join(table_lines(found, fields())) + "\n", encoding="utf-8")


def table_lines(found: dict[str, dict[str, dict[str, Any]]], names_of: dict[str, list[str]]) -> list[str]:
    """What most recipes have in common and the fields' names, then a line for each configuration with its names."""
    rows = [(name, package, each) for package, named in found.items() for name, each in named.items()]
    kinds = {json.dumps(each, sort_keys=True): each for _, _, each in rows}
    common = {
        path: value
        for path, value in rows[0][2].items()
        if sum(each.get(path, MISSING) == value for each in kinds.values()) > len(kinds) // 2
    }
    head = {"release": "megatron-bridge 0.6.2", "common": common, "fields": names_of}
    lines = [json.dumps(head, sort_keys=True)]
    for key, each in kinds.items():
        names: dict[str, list[str]] = {package: [] for package in found}
        for name, package, other in rows:
            if json.dumps(other, sort_keys=True) == key:
                names[package].append(name)
        differs = {path: value for path, value in each.items() if common.get(path, MISSING) != value}
        differs |= {path: None for path in common if path not in each}
        lines.append(json.dumps({"names": {p: n for p, n in names.items() if n}, "says": differs}, sort_keys=True))
    return lines


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
