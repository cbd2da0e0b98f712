"""Asks the real Megatron-LM what it makes of arguments.  A process of its own: it patches torch and Megatron.

Request: ``{"world_size", "arguments": [...], "environment": {...}, "compute_capability_major": 9}``.  Stages, in order:
``parse`` (unknown and abbreviated flags are refused), ``validate`` (validate_args), ``config`` (the config's
``__post_init__``), ``optimizer``, ``groups`` (initialize_model_parallel on torch's fake process group, at full world
size), ``build`` (layers of every chunk of every pipeline rank), ``schedule`` (the interleaved schedule's own checks, by
calling it with empty chunks) and, where the request names ``ranks``, ``parameters``: the real GPTModel of those ranks
on torch's meta device, and how many parameters it has.

No Transformer Engine and no GPU are there, so their presence is feigned: the version that rules ask for, the fused
functions that rules look up, and the device's compute capability.  Not one rule is touched.  Parameters are counted
with Megatron's local layers, which hold the same weights as Transformer Engine's under other names.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock
from unittest.mock import MagicMock

from planner.backends.checking.answers import FeignedModules, feigned_ranks, serve

TE_VERSION = "2.14.0"
_NEED_TRITON = ("megatron.core.transformer.moe.ops.paged_stash", "megatron.core.transformer.moe.paged_stash")
"""Modules that import triton unconditionally: the first in 0.19, the second in 0.18 (later it needs none)."""
_ROPE = "fused_apply_rotary_pos_emb fused_apply_rotary_pos_emb_thd"
_MOE = "fused_permute fused_permute_with_probs fused_sort_chunks_by_index fused_sort_chunks_by_index_with_probs"
_FUSED = {
    "megatron.core.models.common.embeddings.rope_utils": _ROPE.split(),
    "megatron.core.transformer.moe.moe_utils": [*_MOE.split(), "fused_unpermute"],
}


class Device:
    """The feigned device's compute capability."""

    major = 9


def feign_packages(folder: Path) -> None:
    """Make Megatron importable without triton and without a GPU."""
    import torch
    import typing_extensions

    if not hasattr(typing, "override"):
        typing.override = typing_extensions.override  # type: ignore[attr-defined]
    there = [name for name in _NEED_TRITON if (folder / f"{name.replace('.', '/')}.py").is_file()]
    if there and importlib.util.find_spec("triton") is None:
        # Not triton itself: torch's compiler would believe in it.
        FeignedModules(there[0])
    torch.cuda.get_device_capability = lambda *_a, **_k: (Device.major, 0)
    torch.cuda.get_device_properties = lambda *_a, **_k: types.SimpleNamespace(  # type: ignore[assignment]
        major=Device.major, minor=0, name="feigned", total_memory=80 << 30, multi_processor_count=132
    )


def feign_transformer_engine() -> None:
    """Answer Megatron's questions for Transformer Engine's version and fused functions."""
    import megatron.core.transformer.transformer_config as config
    from megatron.core import utils
    from megatron.training import arguments
    from packaging.version import Version

    def version() -> Version:
        return Version(TE_VERSION)

    def fused(*_arguments: object, **_options: object) -> None:
        return None

    utils._te_version = version()
    for module in (utils, config, arguments):
        if hasattr(module, "get_te_version"):
            module.get_te_version = version
    for path, names in _FUSED.items():
        found = importlib.import_module(path)
        for name in names:
            setattr(found, name, fused)


def spare_time() -> None:
    """Skip what no rule looks at: help texts dug out of sources at each parse, groups that the rank is not in."""
    import megatron.core.parallel_state as mpu
    import torch.distributed as dist

    with contextlib.suppress(ImportError, AttributeError):
        from megatron.training.argument_utils import ArgumentGroupFactory

        texts = ArgumentGroupFactory._get_field_docstrings
        cached = functools.cache(lambda owner: texts(ArgumentGroupFactory.__new__(ArgumentGroupFactory), owner))
        ArgumentGroupFactory._get_field_docstrings = lambda self, owner: cached(owner)
    create = mpu.create_group

    def create_own_group(ranks: Any = None, *rest: Any, **options: Any) -> Any:
        if ranks is not None and dist.get_rank() not in ranks:
            return dist.GroupMember.NON_GROUP_MEMBER
        return create(ranks, *rest, **options)

    mpu.create_group = create_own_group


def said(error: Exception) -> str:
    """Megatron's own words and the line that says them; of an assert without a message, the assert."""
    frames = traceback.extract_tb(error.__traceback__)
    frame = next((each for each in reversed(frames) if "/megatron/" in each.filename), frames[-1])
    message = " ".join(str(error).split()) or frame.line or ""
    return f"{type(error).__name__}: {message} ({Path(frame.filename).name}:{frame.lineno})"


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """All stages, in the environment of the request."""
    Device.major = request["compute_capability_major"]
    environment = {"WORLD_SIZE": str(request["world_size"]), "RANK": "0", **request["environment"]}
    words = ["pretrain_gpt.py", *request["arguments"]]
    with mock.patch.dict(os.environ, environment), mock.patch.object(sys, "argv", words):
        if "CUDA_DEVICE_MAX_CONNECTIONS" not in environment:
            os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
        yield from _stages(request, facts)


def _stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    from megatron.core.num_microbatches_calculator import ConstantNumMicroBatchesCalculator
    from megatron.training.arguments import core_transformer_config_from_args, parse_args, validate_args

    yield "parse"
    args = parse_args()
    yield "validate"
    validate_args(args)
    yield "config"
    config = core_transformer_config_from_args(args)
    micro_batches = ConstantNumMicroBatchesCalculator(
        args.global_batch_size, args.micro_batch_size, args.data_parallel_size, False, 0
    ).get()
    yield "optimizer"
    optimizer(args)
    facts |= {
        "dp": args.data_parallel_size,
        "num_microbatches": micro_batches,
        "vpp": args.virtual_pipeline_model_parallel_size or 1,
        "tp": config.tensor_model_parallel_size,
        "etp": config.expert_tensor_parallel_size,
        "ep": config.expert_model_parallel_size,
        "cp": config.context_parallel_size,
        "sp": config.sequence_parallel,
        "num_experts": config.num_moe_experts,
        "num_query_groups": config.num_query_groups,
        "recompute_granularity": config.recompute_granularity,
    }
    yield "groups"
    with groups(args, rank=0) as mpu:
        shards = mpu.get_data_parallel_group(with_context_parallel=True, partial_data_parallel=True)
        facts["optimizer_shards"] = shards.size()
        yield "build"
        facts["layers_per_chunk"] = layers(args, config)
        yield "schedule"
        schedule(args, config, micro_batches)
    yield "parameters"
    ranks = request.get("ranks") or ()
    if ranks:
        facts["parameters"] = {str(rank): parameters(args, config, rank) for rank in ranks}


def optimizer(args: Any) -> None:
    """Build the optimizer's config; Transformer Engine's Adam is feigned for its signature."""
    from megatron.core.optimizer.optimizer_config import OptimizerConfig

    class FusedAdam:
        def __init__(
            self, master_weight_dtype: Any, exp_avg_dtype: Any, exp_avg_sq_dtype: Any, use_decoupled_grad: Any
        ) -> None: ...

    names = ("transformer_engine", "transformer_engine.pytorch", "transformer_engine.pytorch.optimizers")
    modules = {name: types.ModuleType(name) for name in names}
    modules[names[-1]].FusedAdam = FusedAdam  # type: ignore[attr-defined]
    sys.modules.update(modules)
    try:
        known = {item.name for item in dataclasses.fields(OptimizerConfig)}
        OptimizerConfig(**{name: value for name, value in vars(args).items() if name in known})
    finally:
        for name in names:
            del sys.modules[name]


@contextlib.contextmanager
def groups(args: Any, rank: int) -> Iterator[Any]:
    """All process groups of a feigned world as one rank sees them; the options are those of training/initialize.py."""
    import megatron.core.parallel_state as mpu

    wanted = {
        "context_parallel_size": args.context_parallel_size,
        "hierarchical_context_parallel_sizes": args.hierarchical_context_parallel_sizes,
        "hybrid_context_parallel": getattr(args, "hybrid_context_parallel", False),
        "gtp_remat_size": getattr(args, "gtp_weight_remat_size", 1),
        "expert_gtp_remat_size": getattr(args, "expert_gtp_weight_remat_size", 1),
        "expert_model_parallel_size": args.expert_model_parallel_size,
        "num_distributed_optimizer_instances": args.num_distributed_optimizer_instances,
        "expert_tensor_parallel_size": args.expert_tensor_parallel_size,
        "order": "tp-cp-ep-pp-dp" if args.use_tp_pp_dp_mapping else "tp-cp-ep-dp-pp",
        "create_gloo_process_groups": False,
    }
    known = inspect.signature(mpu.initialize_model_parallel).parameters
    with feigned_ranks(args.world_size, rank):
        try:
            mpu.initialize_model_parallel(
                args.tensor_model_parallel_size,
                args.pipeline_model_parallel_size,
                args.virtual_pipeline_model_parallel_size,
                **{name: value for name, value in wanted.items() if name in known},
            )
            yield mpu
        finally:
            mpu.destroy_model_parallel()


def layers(args: Any, config: Any) -> list[int]:
    """Layers of every chunk along the model."""
    from megatron.core.transformer.transformer_block import get_num_layers_to_build

    layout = config.pipeline_model_parallel_layout
    build = functools.partial(get_num_layers_to_build, config) if layout is None else layout.get_num_layers_to_build
    return [
        build(vp_stage=vp_stage, pp_rank=pp_rank)
        for vp_stage in range(args.virtual_pipeline_model_parallel_size or 1)
        for pp_rank in range(args.pipeline_model_parallel_size)
    ]


class Reached(Exception):
    """The schedule has made its checks and wants to run."""


def schedule(args: Any, config: Any, micro_batches: int) -> None:
    """Call the interleaved schedule with empty chunks: it checks the micro-batch groups before it needs a model."""
    import torch
    from megatron.core.pipeline_parallel import schedules

    chunks = args.virtual_pipeline_model_parallel_size
    if args.pipeline_model_parallel_size == 1 or not chunks:
        return

    def reached(*_arguments: object) -> None:
        raise Reached

    empty = [torch.nn.Module() for _ in range(chunks)]
    for module in empty:
        module.config = config
    schedules.get_model_type = reached
    with on_meta(), contextlib.suppress(Reached):
        schedules.get_forward_backward_func()(
            forward_step_func=None,
            data_iterator=[None] * chunks,
            model=empty,
            num_microbatches=micro_batches,
            seq_length=args.seq_length,
            micro_batch_size=args.micro_batch_size,
        )


@contextlib.contextmanager
def on_meta() -> Iterator[None]:
    """Every tensor is created on torch's meta device, whatever device Megatron asks for."""
    import torch
    from torch.overrides import TorchFunctionMode

    class ToMeta(TorchFunctionMode):
        def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = dict(kwargs or {})
            if kwargs.get("device") is not None:
                kwargs["device"] = "meta"
            return args[0] if func is torch.Tensor.cuda else func(*args, **kwargs)

    with ToMeta(), torch.device("meta"):
        yield


def feign_construction() -> None:
    """What a constructor touches of CUDA, and the two places where local layers differ from Transformer Engine's.

    The local attention core has no weights but refuses the widths of latent attention; and local down-projections of
    latent attention are split over tensor-parallel ranks, where the emitted ones are whole on each.
    """
    import torch
    from megatron.core.models.gpt import gpt_layer_specs
    from megatron.core.tensor_parallel import random
    from megatron.core.transformer import dot_product_attention, multi_latent_attention

    class WholeLinear(torch.nn.Linear):
        def __init__(self, input_size: int, output_size: int, *, bias: bool, **_options: object) -> None:
            super().__init__(input_size, output_size, bias)

    torch.cuda.current_device = lambda: torch.device("meta")  # type: ignore[assignment,return-value]
    torch.cuda.Stream = torch.cuda.Event = MagicMock  # type: ignore[misc]
    random.CudaRNGStatesTracker.fork = lambda self, name=None: contextlib.nullcontext()
    core = dot_product_attention.DotProductAttention
    construct, local = core.__init__, gpt_layer_specs.get_gpt_layer_local_submodules

    def constructed(self: Any, *rest: Any, k_channels: Any = None, v_channels: Any = None, **options: Any) -> None:
        construct(self, *rest, **options)

    def submodules(*rest: Any, **options: Any) -> Any:
        made = local(*rest, **options)
        if made.self_attention.module is multi_latent_attention.MLASelfAttention:
            made.self_attention.submodules.linear_q_down_proj = WholeLinear
            made.self_attention.submodules.linear_kv_down_proj = WholeLinear
        return made

    core.__init__ = constructed
    multi_latent_attention.TELinear = WholeLinear
    gpt_layer_specs.get_gpt_layer_local_submodules = submodules


def parameters(args: Any, config: Any, rank: int) -> list[int]:
    """Parameters of every chunk that a rank builds: Megatron's own builder, with local layers, on the meta device."""
    from megatron.core.process_groups_config import ProcessGroupCollection
    from megatron.training.argument_utils import gpt_config_from_args
    from megatron.training.models.gpt import GPTModelBuilder

    local = {
        "transformer_impl": "local",
        "perform_initialization": False,
        "gradient_accumulation_fusion": False,
        # Neither changes a weight, but the local layers refuse them.
        "persist_layer_norm": False,
        "sequence_parallel": False,
        "context_parallel_size": 1,
        "tp_comm_overlap": False,
    }
    for name, value in local.items():
        setattr(config, name, value)
    with groups(args, rank), on_meta():
        builder = GPTModelBuilder(gpt_config_from_args(args, config))
        own = ProcessGroupCollection.use_mpu_process_groups()
        chunks = args.virtual_pipeline_model_parallel_size
        models = [builder.build_model(own, vp_stage=stage) for stage in (range(chunks) if chunks else (None,))]
        return [sum(weight.numel() for weight in model.parameters()) for model in models]


def prepare(folder: Path) -> None:
    """Everything that is feigned."""
    if importlib.util.find_spec("megatron.training") is None:
        raise SystemExit(f"{folder.name} has no megatron.training: it is part of megatron-core from 0.17 on")
    feign_packages(folder)
    feign_transformer_engine()
    feign_construction()
    spare_time()


if __name__ == "__main__":
    serve(stages, prepare, said)
