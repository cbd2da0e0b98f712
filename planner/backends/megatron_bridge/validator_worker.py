"""Asks Megatron-Bridge about overrides: real config classes, and its own ``ConfigContainer.validate()``, without CUDA.

Bridge wants Python 3.12, Transformer Engine and much else; its config classes need only the names of those.  So the
modules in ``STUBS`` are made of nothing, for this process alone, and Bridge and megatron-core are imported for real.

Proved: every override, and every fusion of the recipe, names a field of the real dataclass; the container's and
megatron-core's own checks (``validate`` runs ``finalize`` of every section) hold for the planned world size.  Not
proved: Hydra's reading of the file, model build, anything at run time, that Transformer Engine supports the choice
(it is pretended to), limits of devices (a Hopper is pretended).
"""

from __future__ import annotations

import dataclasses
import os
import typing
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from planner.backends.checking.answers import FeignedModules, serve

STUBS = (
    "hydra",
    "omegaconf",
    "nvidia_resiliency_ext",
    "transformer_engine",
    "datasets",
    "megatron.energon",
    "megatron.core.transformer.moe.ops.paged_stash",
)
"""Imported unconditionally somewhere below ``megatron.bridge.training.config``; none of their code decides a check."""


def container(request: dict[str, Any]) -> Any:
    """The container that the emitted recipe starts from."""
    import torch
    from megatron.bridge.models import GPTModelProvider
    from megatron.bridge.models.mla_provider import MLAModelProvider
    from megatron.bridge.training import config as bridge
    from megatron.bridge.training.comm_overlap import CommOverlapConfig
    from megatron.bridge.training.mixed_precision import get_mixed_precision_config

    values = request["overrides"]
    provider = MLAModelProvider if values.get("model.multi_latent_attention") else GPTModelProvider
    sizes = {name: values[f"model.{name}"] for name in ("num_layers", "hidden_size", "num_attention_heads")}
    tokens = values["model.seq_length"]
    gated = values.get("model.gated_linear_unit", False)
    activation = torch.nn.functional.silu if gated else torch.nn.functional.gelu
    return bridge.ConfigContainer(
        model=provider(**sizes, seq_length=tokens, activation_func=activation, vocab_size=32000, should_pad_vocab=True),
        train=bridge.TrainingConfig(train_iters=20, micro_batch_size=1, global_batch_size=1),
        optimizer=bridge.OptimizerConfig(**request["optimizer"]),
        scheduler=bridge.SchedulerConfig(lr_decay_style="constant"),
        ddp=bridge.DistributedDataParallelConfig(),
        dataset=bridge.MockGPTDatasetConfig(
            random_seed=1234,
            seq_length=tokens,
            reset_position_ids=False,
            reset_attention_mask=False,
            eod_mask_loss=False,
            num_dataset_builder_threads=1,
        ),
        logger=bridge.LoggerConfig(log_interval=1),
        tokenizer=bridge.TokenizerConfig(tokenizer_type="NullTokenizer", vocab_size=32000),
        checkpoint=bridge.CheckpointConfig(),
        comm_overlap=CommOverlapConfig(tp_comm_overlap=False),
        mixed_precision=get_mixed_precision_config(
            "fp16_mixed" if values.get("mixed_precision.fp16") else "bf16_mixed"
        ),
    )


def apply_fusions(model: Any, fusions: dict[str, Any] | None) -> None:
    """Set the recipe's fusions.  Raises KeyError, TypeError for what the recipe itself would raise TypeError for."""
    if fusions is None:
        raise KeyError("bridge_recipe.py: FUSIONS is no mapping of names to true or false")
    fields = {field.name: getattr(model, field.name) for field in dataclasses.fields(model)}
    for name, value in fusions.items():
        if name not in fields:
            raise KeyError(f"bridge_recipe.py: FUSIONS: {type(model).__name__} has no field {name}")
        if not isinstance(fields[name], bool) or not isinstance(value, bool):
            raise TypeError(f"bridge_recipe.py: FUSIONS: {name} is a switch, and is given {value!r}")
        setattr(model, name, value)


def apply(config: Any, overrides: dict[str, Any]) -> None:
    """Set every override.  Raises KeyError for a path that no dataclass has: Bridge would warn and skip it."""
    for path, value in overrides.items():
        section, _, name = path.partition(".")
        target = getattr(config, section)
        if name not in {field.name for field in dataclasses.fields(target)}:
            raise KeyError(f"{path}: {type(target).__name__} has no such field")
        setattr(target, name, value)


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """Fields, then Bridge's own validation."""
    environment = {name: str(value) for name, value in request["environment"].items()}
    environment |= {"WORLD_SIZE": str(request["world_size"]), "RANK": "0", "LOCAL_RANK": "0"}
    with mock.patch.dict(os.environ, environment):
        yield "fields"
        config = container(request)
        apply_fusions(config.model, request["fusions"])
        apply(config, request["overrides"])
        yield "validate"
        config.validate()
    model = config.model
    facts |= {
        "fusions": {name: getattr(model, name) for name in request["fusions"]},
        "data_parallel_size": config.data_parallel_size,
        "tp": model.tensor_model_parallel_size,
        "pp": model.pipeline_model_parallel_size,
        "vpp": model.virtual_pipeline_model_parallel_size or 1,
        "zero": config.ddp.data_parallel_sharding_strategy if config.ddp.use_megatron_fsdp else None,
        "distributed_optimizer": config.ddp.use_distributed_optimizer,
    }


def pretend_devices(overlay: Path) -> None:
    """A Hopper with Transformer Engine."""
    import torch

    device = SimpleNamespace(major=9, minor=0, name="pretended", total_memory=80 << 30, multi_processor_count=132)
    vars(torch.cuda).update(
        get_device_properties=lambda *words: device,
        get_device_capability=lambda *words: (9, 0),
        current_device=lambda: 0,
    )
    import typing_extensions

    if not hasattr(typing, "override"):  # Python 3.11
        vars(typing)["override"] = typing_extensions.override
    FeignedModules(*STUBS)


if __name__ == "__main__":
    serve(stages, pretend_devices)
