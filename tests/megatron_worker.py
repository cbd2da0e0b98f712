"""Asks the real Megatron-LM what it makes of arguments.  A process of its own: it patches torch and Megatron.

Protocol: one JSON object a line on stdin, ``{"world_size", "arguments": [...], "environment": {...}, "major": 9}``,
one a line on stdout, ``{"stage", "message", "facts"}``.  ``stage`` is ``ok`` or where it stopped: ``parse``,
``validate`` (validate_args), ``config`` (the config's ``__post_init__``), ``optimizer``, ``groups``
(initialize_model_parallel on torch's fake process group) or ``build`` (layers of every chunk).

No Transformer Engine and no GPU are there, so their presence is feigned: the version that rules ask for, the fused
functions that rules look up, and the device's compute capability.  Not one rule is touched.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import logging
import os
import sys
import types
import typing
import warnings
from typing import Any

TE_VERSION = "2.14.0"


class Device:
    """The feigned device's compute capability."""

    major = 9


def feign_packages(directory: str) -> None:
    """Make Megatron importable without triton and without a GPU."""
    from unittest.mock import MagicMock

    import torch
    import typing_extensions

    sys.path.insert(0, directory)
    typing.override = typing_extensions.override  # type: ignore[attr-defined]
    if importlib.util.find_spec("triton") is None:
        stash = types.ModuleType("megatron.core.transformer.moe.ops.paged_stash")

        def attribute(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return MagicMock()

        stash.__getattr__ = attribute  # type: ignore[method-assign]
        sys.modules[stash.__name__] = stash
    torch.cuda.get_device_capability = lambda *_a, **_k: (Device.major, 0)
    torch.cuda.get_device_properties = lambda *_a, **_k: types.SimpleNamespace(  # type: ignore[assignment]
        major=Device.major, minor=0, name="feigned", total_memory=80 << 30, multi_processor_count=132
    )


def feign_transformer_engine() -> None:
    """Answer Megatron's questions for Transformer Engine's version and fused functions."""
    import megatron.core.models.common.embeddings.rope_utils as rope
    import megatron.core.transformer.moe.moe_utils as moe
    import megatron.core.transformer.transformer_config as config
    from megatron.core import utils
    from megatron.training import arguments
    from packaging.version import Version

    def version() -> Version:
        return Version(TE_VERSION)

    utils._te_version = version()
    for module in (utils, config, arguments):
        if hasattr(module, "get_te_version"):
            module.get_te_version = version

    def fused(*_arguments: object, **_options: object) -> None:
        return None

    for name in ("fused_apply_rotary_pos_emb", "fused_apply_rotary_pos_emb_thd"):
        setattr(rope, name, fused)
    for name in (
        "fused_permute",
        "fused_permute_with_probs",
        "fused_sort_chunks_by_index",
        "fused_sort_chunks_by_index_with_probs",
        "fused_unpermute",
    ):
        setattr(moe, name, fused)


def verdict(request: dict[str, Any]) -> dict[str, Any]:
    """Run every stage until one refuses."""
    stage = "parse"
    facts: dict[str, Any] = {}
    try:
        from megatron.core.num_microbatches_calculator import ConstantNumMicroBatchesCalculator
        from megatron.training.arguments import core_transformer_config_from_args, parse_args, validate_args

        args = parse_args()
        stage = "validate"
        validate_args(args)
        stage = "config"
        config = core_transformer_config_from_args(args)
        calculator = ConstantNumMicroBatchesCalculator(
            args.global_batch_size, args.micro_batch_size, args.data_parallel_size, False, 0
        )
        stage = "optimizer"
        optimizer(args)
        facts = {
            "dp": args.data_parallel_size,
            "num_microbatches": calculator.get(),
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
        stage = "groups"
        facts |= groups(args, config, request["world_size"])
    except SystemExit:
        return {"stage": stage, "message": "argument parser refused", "facts": facts}
    except Refused as error:
        return {"stage": "build", "message": str(error), "facts": facts}
    except Exception as error:
        return {"stage": stage, "message": f"{type(error).__name__}: {error}"[:400], "facts": facts}
    return {"stage": "ok", "message": "", "facts": facts}


class Refused(Exception):
    """The build of some chunk was refused."""


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
        import dataclasses

        known = {item.name for item in dataclasses.fields(OptimizerConfig)}
        OptimizerConfig(**{name: value for name, value in vars(args).items() if name in known})
    finally:
        for name in names:
            del sys.modules[name]


def groups(args: Any, config: Any, world_size: int) -> dict[str, Any]:
    """Build all process groups as rank 0 of a feigned world, and ask for the layers of every chunk."""
    import megatron.core.parallel_state as mpu
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=world_size)
    try:
        mpu.initialize_model_parallel(
            args.tensor_model_parallel_size,
            args.pipeline_model_parallel_size,
            args.virtual_pipeline_model_parallel_size,
            context_parallel_size=args.context_parallel_size,
            expert_model_parallel_size=args.expert_model_parallel_size,
            num_distributed_optimizer_instances=args.num_distributed_optimizer_instances,
            expert_tensor_parallel_size=args.expert_tensor_parallel_size,
            order="tp-cp-ep-pp-dp" if args.use_tp_pp_dp_mapping else "tp-cp-ep-dp-pp",
            create_gloo_process_groups=False,
        )
        with_cp = mpu.get_data_parallel_group(with_context_parallel=True, partial_data_parallel=True)
        return {"optimizer_shards": with_cp.size(), "layers_per_chunk": layers(args, config)}
    finally:
        mpu.destroy_model_parallel()
        dist.destroy_process_group()


def layers(args: Any, config: Any) -> list[int]:
    """Layers of every chunk along the model."""
    from megatron.core.transformer.transformer_block import get_num_layers_to_build

    layout = config.pipeline_model_parallel_layout
    counts = []
    for vp_stage in range(args.virtual_pipeline_model_parallel_size or 1):
        for pp_rank in range(args.pipeline_model_parallel_size):
            build = layout.get_num_layers_to_build if layout is not None else None
            try:
                counts.append(
                    build(vp_stage=vp_stage, pp_rank=pp_rank)
                    if build
                    else get_num_layers_to_build(config, vp_stage=vp_stage, pp_rank=pp_rank)
                )
            except Exception as error:
                raise Refused(f"{type(error).__name__}: {error}") from error
    return counts


def main() -> None:
    """Serve requests until stdin ends."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    answers = sys.stdout
    sys.stdout = io.StringIO()
    feign_packages(sys.argv[1])
    feign_transformer_engine()
    clean = dict(os.environ)
    for line in sys.stdin:
        request = json.loads(line)
        Device.major = request["major"]
        os.environ.update({"WORLD_SIZE": str(request["world_size"]), "RANK": "0", **request["environment"]})
        sys.argv = ["pretrain_gpt.py", *request["arguments"]]
        noise = io.StringIO()
        with contextlib.redirect_stdout(noise), contextlib.redirect_stderr(noise):
            answer = verdict(request)
        if answer["stage"] == "parse":
            answer["message"] = noise.getvalue().strip()[-300:] or answer["message"]
        os.environ.clear()
        os.environ.update(clean)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
