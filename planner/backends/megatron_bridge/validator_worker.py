"""Asks Megatron-Bridge about overrides: real config classes, and its own ``ConfigContainer.validate()``, without CUDA.

Bridge wants Python 3.12, Transformer Engine and much else; its config classes need only the names of those.  So the
modules in ``STUBS`` are made of nothing, for this process alone, and Bridge and megatron-core are imported for real.

Proved: every override, and every fusion of the recipe, names a field of the real dataclass; the container's and
megatron-core's own checks (``validate`` runs ``finalize`` of every section) hold for the planned world size.
Adapters are made by Bridge's own class on megatron-core's own GPT model on the meta device, and what learns is counted.

Not proved: Hydra's reading of the file, model build, anything at run time, that Transformer Engine supports the choice
(it is pretended to), limits of devices (a Hopper is pretended).
"""

from __future__ import annotations

import copy
import dataclasses
import os
import typing
from collections.abc import Iterator
from importlib import import_module
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
    "tensorboard",
    "modelopt",
    "megatron.energon",
    "megatron.core.transformer.moe.ops.paged_stash",
)
"""Imported unconditionally somewhere below ``megatron.bridge.training.config``; none of their code decides a check."""


def container(request: dict[str, Any]) -> Any:
    """The container that the emitted recipe starts from."""
    import torch
    from megatron.bridge.models import GPTModelProvider
    from megatron.bridge.models.hybrid.hybrid_provider import HybridModelProvider
    from megatron.bridge.models.mla_provider import MLAModelProvider
    from megatron.bridge.training import config as bridge
    from megatron.bridge.training.comm_overlap import CommOverlapConfig
    from megatron.bridge.training.mixed_precision import get_mixed_precision_config

    values = request["overrides"]
    latent, pattern = values.get("model.multi_latent_attention"), values.get("model.hybrid_layer_pattern")
    provider = HybridModelProvider if pattern else MLAModelProvider if latent else GPTModelProvider
    sizes = {name: values[f"model.{name}"] for name in ("num_layers", "hidden_size", "num_attention_heads")}
    tokens = values["model.seq_length"]
    gated = values.get("model.gated_linear_unit", False)
    activation = torch.nn.functional.silu if gated else torch.nn.functional.gelu
    if values.get("model.experimental_attention_variant"):
        sizes |= layer_words()
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


def layer_words() -> dict[str, Any]:
    """What the recipe gives its provider for layers of different token mixers."""
    from megatron.core.models.gpt import experimental_attention_variant_module_specs as variants

    spec = variants.get_transformer_block_with_experimental_attention_variant_spec
    return {"transformer_layer_spec": spec, "hetereogenous_dist_checkpoint": True}


def adapters_of(asked: dict[str, Any]) -> Any:
    """Bridge's own object.  Raises KeyError for fields that its dataclass has not."""
    if "error" in asked or not asked["module"]:
        raise KeyError(asked.get("error", f"bridge_recipe.py: {asked.get('class')} is no class of adapters"))
    kind = getattr(import_module(f"megatron.bridge.peft.{asked['module']}"), asked["class"])
    names = {field.name for field in dataclasses.fields(kind)}
    missing = sorted(set(asked["fields"]) - names)
    if missing:
        raise KeyError(f"bridge_recipe.py: ADAPTER_FIELDS: {kind.__name__} has no field {missing[0]}")
    return kind(**asked["fields"])


def trained_parameters(adapters: Any, provider: Any) -> int:
    """Parameters of the whole model that learn, of all ranks together: the model is made without memory, undivided.

    Raises ValueError for a name of ``target_modules`` that the model has not.
    """
    import torch
    import torch.distributed
    from megatron.core import parallel_state
    from megatron.core.models.backends import LocalSpecProvider
    from megatron.core.models.gpt import gpt_layer_specs
    from megatron.core.models.gpt.gpt_model import GPTModel
    from megatron.core.transformer import transformer_block
    from megatron.core.transformer.moe import moe_layer
    from torch.testing._internal.distributed.fake_pg import FakeStore

    class Core(torch.nn.Module):
        """In the place of attention's core, which has no weights; the one without kernels takes no latent attention."""

        def __init__(self, *words: Any, **named: Any) -> None:
            super().__init__()

    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=1)
    try:
        parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
        config = undivided(provider)
        with mock.patch.object(LocalSpecProvider, "core_attention", return_value=Core):
            spec = gpt_layer_specs.get_gpt_decoder_block_spec(config, use_transformer_engine=False)
            more = gpt_layer_specs.get_gpt_mtp_block_spec(config, spec, use_transformer_engine=False)
        # Transformer Engine, which is pretended, would give the context that offloads activations.
        offload = mock.patch.object(transformer_block, "get_cpu_offload_context", return_value=(None, None))
        # Positions of latent attention are made on the current device, the exchange of experts on a CUDA device.
        nowhere = mock.patch.object(torch.cuda, "current_device", return_value=torch.device("meta"))
        exchange = mock.patch.object(moe_layer, "MoEAlltoAllTokenDispatcher", mock.MagicMock())
        with torch.device("meta"), offload, nowhere, exchange:
            model = GPTModel(
                config, spec, vocab_size=config.vocab_size, max_sequence_length=config.seq_length, mtp_block_spec=more
            )
            check_targets(adapters, model)
            adapters([model], training=True)
    finally:
        parallel_state.destroy_model_parallel()
        torch.distributed.destroy_process_group()
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def check_targets(adapters: Any, model: Any) -> None:
    """Every name of ``target_modules`` must be met.  Raises ValueError: Bridge itself only warns."""
    adapters._init_target_match_state()
    for path, module in model.named_modules():
        prefix, _, name = path.rpartition(".")
        adapters.match(module, name, prefix)
    missed = sorted(name for name, found in adapters._alias_matches.items() if not found)
    if missed:
        raise ValueError(f"the model has no {', '.join(missed)}")


def undivided(provider: Any) -> Any:
    """The provider on one rank, without kernels of a device, and with as few routed experts as its choice takes.

    Routed experts have no adapters; a pattern that meets them is seen in the count all the same.
    """
    config = copy.copy(provider)
    values: dict[str, Any] = {
        "tensor_model_parallel_size": 1,
        "pipeline_model_parallel_size": 1,
        "virtual_pipeline_model_parallel_size": None,
        "pipeline_model_parallel_layout": None,
        "context_parallel_size": 1,
        "expert_model_parallel_size": 1,
        "expert_tensor_parallel_size": 1,
        "sequence_parallel": False,
        "tp_comm_overlap": False,
        "use_cpu_initialization": True,
        "perform_initialization": False,
        "gradient_accumulation_fusion": False,
        "persist_layer_norm": False,
        "moe_grouped_gemm": False,
        "overlap_moe_expert_parallel_comm": False,
        "cpu_offloading": False,
        "fp8": None,
    }
    if config.num_moe_experts:
        values |= {
            "num_moe_experts": max(2, config.moe_router_topk),
            "moe_router_num_groups": None,
            "moe_router_group_topk": None,
        }
    for name, value in values.items():
        setattr(config, name, value)
    return config


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
        if request.get("adapters"):
            config.peft = adapters_of(request["adapters"])
            # Bridge asks for a folder that is there; what is in it is read only when the model is built.
            config.checkpoint.pretrained_checkpoint = str(Path(__file__).parent)
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
    if config.peft is not None:
        yield "adapters"
        facts["trained_parameters"] = trained_parameters(config.peft, model)


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
