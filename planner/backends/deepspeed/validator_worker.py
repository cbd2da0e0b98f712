"""Asks DeepSpeed about a config: its parser, AutoTP/AutoEP and Ulysses arithmetic, and a real engine on a tiny model.

Stages, in order: ``files`` (readable), ``mesh`` (ranks started = ranks planned, as the script demands), ``config``
(``DeepSpeedConfig`` with the data-parallel size that the engines will see), ``experts`` (AutoEP's and folding's own
validators), ``tensor`` (divisibility of the stage), ``sequence`` (Ulysses' constructor), ``pipeline`` (the topology at
full size), ``engine`` (``deepspeed.initialize``).  The engine starts on torch's ``fake`` process group, so nothing is
sent, with linear layers of a few numbers, and with at most two data-parallel ranks: its rules look at the stages,
ZeRO, precision and optimizer, not at how many replicas there are.  What DeepSpeed compiles (host optimizers) is
replaced by stand-ins.  Each request runs in a child, because DeepSpeed keeps its groups in module variables.

Not proved: that AutoTP and AutoEP find their layers in the transformers model, memory, speed.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from planner.backends.checking.answers import Refused, in_child, serve_answers, verdict

ENGINE_REPLICAS = 2
WIDTH = 8


class Groups:
    """What DeepSpeedConfig asks of a parallel-state object."""

    def __init__(self, data_parallel_size: int) -> None:
        self.data_parallel_size = data_parallel_size

    def get_data_parallel_world_size(self) -> int:
        """Ranks over which the batch is divided."""
        return self.data_parallel_size


def parse(request: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, int]]:
    """The three documents and the mesh."""
    documents = []
    for name in ("config", "training", "model"):
        try:
            value = json.loads(request[name])
        except (ValueError, RecursionError) as error:
            raise Refused(f"{name}: not JSON ({error})") from error
        if not isinstance(value, dict):
            raise Refused(f"{name}: not a JSON object")
        documents.append(value)
    config, training, model = documents
    mesh = {
        name: int(training["mesh"][name]) for name in ("pipe", "data_replicate", "data_shard", "sequence", "tensor")
    }
    if min(mesh.values()) < 1:
        raise ValueError(f"a degree below 1 in {mesh}")
    return config, training, model, mesh


def parsed_config(values: dict[str, Any], world_size: int, data_parallel_size: int) -> Any:
    """DeepSpeed's own reading, with a pretended world."""
    import deepspeed.comm
    from deepspeed.runtime.config import DeepSpeedConfig

    with (
        mock.patch.object(deepspeed.comm, "get_rank", return_value=0),
        mock.patch.object(deepspeed.comm, "get_world_size", return_value=world_size),
    ):
        return DeepSpeedConfig(values, mpu=Groups(data_parallel_size))


def facts_of(config: Any) -> dict[str, Any]:
    """What DeepSpeed read."""
    from deepspeed.runtime.zero.offload_config import OffloadDeviceEnum

    zero = config.zero_config
    return {
        "train_batch_size": config.train_batch_size,
        "micro_batch_size": config.train_micro_batch_size_per_gpu,
        "num_microbatches": config.gradient_accumulation_steps,
        "zero_stage": int(config.zero_optimization_stage),
        "overlap_comm": zero.overlap_comm,
        "prefetch": zero.prefetch_bucket_size,
        "offload": OffloadDeviceEnum(zero.offload_optimizer.device).value if zero.offload_optimizer else "none",
        "tp": config.tensor_parallel_config.autotp_size or 1,
        "overlap_tp": config.tensor_parallel_config.tp_overlap_comm,
        "ep": config.expert_parallel_config.autoep_size if config.expert_parallel_config.enabled else 1,
        "bf16": config.bfloat16_config.enabled,
        "fp16": config.float16_config.enabled,
        "gradients": config.grad_accum_dtype,
        "optimizer": config.optimizer_name,
        "stages": config.pipeline["stages"],
    }


def check_experts(config: Any, world_size: int, mesh: dict[str, int], model: dict[str, Any]) -> None:
    """AutoEP's three validators, as the engine calls them before it replaces layers."""
    from deepspeed.module_inject import auto_ep_config
    from deepspeed.module_inject.auto_ep_folding import build_folding_spec, validate_folding_global

    experts = config.expert_parallel_config
    if experts is None or not experts.enabled:
        return
    tp = config.tensor_parallel_config.autotp_size or 1
    auto_ep_config.validate_autoep_config(experts, world_size, mesh["pipe"], tp, mesh["sequence"])
    spec = build_folding_spec(
        world_size=world_size,
        pp_size=mesh["pipe"],
        tp_size=tp,
        ep_size=experts.autoep_size,
        etp_size=experts.expert_tensor_parallel_size,
        mp_mode="tp" if tp > 1 else "sp",
    )
    validate_folding_global(spec, zero_stage=int(config.zero_optimization_stage), sp_size=mesh["sequence"])
    if mesh["sequence"] > 1:
        raise ValueError("AutoEP does not run inside Ulysses' groups (runtime/engine.py:834)")
    count = next((model[key] for key in ("n_routed_experts", "num_local_experts", "num_experts") if key in model), 0)
    if not count:
        raise ValueError("expert_parallel is enabled and the model has no experts")
    # The detector of AutoEP makes this record from the real layers; only the number of experts decides here.
    found = SimpleNamespace(
        num_experts=count,
        moe_module_name="layers",
        score_apply="post",
        num_expert_groups=None,
        num_limited_groups=None,
    )
    auto_ep_config.validate_autoep_post_detection(experts, [found])


def check_tensor(config: Any, world_size: int, mesh: dict[str, int]) -> None:
    """AutoTP takes contiguous blocks of ranks; Ulysses has its own, and a pipeline none of both."""
    from deepspeed.module_inject.auto_ep_folding import build_folding_spec

    tp = config.tensor_parallel_config.autotp_size or 1
    build_folding_spec(world_size=world_size, pp_size=mesh["pipe"], tp_size=tp, ep_size=1, etp_size=1, mp_mode="tp")
    if tp != mesh["tensor"]:
        raise ValueError(f"tensor_parallel.autotp_size is {tp}; the batch is dealt for {mesh['tensor']} tensor ranks")


def check_sequence(config: Any, training: dict[str, Any], model: dict[str, Any], ranks: int) -> None:
    """Ulysses' constructor, on the model's heads."""
    import importlib.metadata

    from deepspeed.runtime.sequence_parallel.ulysses_sp import UlyssesSPAttentionHF

    heads = model.get("num_attention_heads") or model.get("n_head")
    tokens = int(training["sequence_length"])
    if tokens % ranks:
        raise ValueError(f"{tokens} tokens do not divide over {ranks} sequence ranks")
    have = importlib.metadata.version

    def version(name: str) -> str:
        try:
            return have(name)
        except importlib.metadata.PackageNotFoundError:
            return "5.0" if name == "transformers" else ""

    start_world(ranks)
    import torch.distributed

    with mock.patch.object(importlib.metadata, "version", version):
        UlyssesSPAttentionHF(
            attn=None,
            batch_size=config.train_micro_batch_size_per_gpu,
            attn_head_count=heads,
            attn_head_size=model.get("head_dim") or 1,
            kv_head_count=model.get("num_key_value_heads") or heads,
            num_hidden_layers=1,
            process_group=torch.distributed.group.WORLD,
            local_seq_length=tokens // ranks,
            global_seq_length=tokens,
        )
    torch.distributed.destroy_process_group()


def check_topology(training: dict[str, Any], world_size: int, pipe: int) -> None:
    """``PipelineModule``'s arithmetic at full size, without its process groups."""
    from deepspeed.runtime.pipe.topology import PipeDataParallelTopology

    if world_size % pipe:
        raise RuntimeError(f"num_stages ({pipe}) must divide distributed world size ({world_size})")
    topology = PipeDataParallelTopology(num_pp=pipe, num_dp=world_size // pipe)
    if topology.world_size() != world_size or len(training["stages"]) != pipe:
        raise RuntimeError(f"{len(training['stages'])} stages are listed for {pipe} pipeline ranks")


def start_world(size: int) -> None:
    """Rank 0 of a world that sends nothing."""
    import deepspeed.comm
    import torch.distributed
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=size)
    os.environ["LOCAL_RANK"] = "0"
    deepspeed.comm.comm.cdb = None
    deepspeed.init_distributed("gloo", dist_init_required=None)


def engine_config(values: dict[str, Any], config: Any, replicas: int) -> dict[str, Any]:
    """The config for the tiny engine: the batch of its replicas, and no sections that want a transformers model."""
    kept = {key: value for key, value in values.items() if key not in ("tensor_parallel", "expert_parallel")}
    steps = config.train_micro_batch_size_per_gpu * config.gradient_accumulation_steps
    return kept | {"train_batch_size": steps * replicas}


def bounds_of(training: dict[str, Any]) -> list[int]:
    """First unit of every chunk, as the script counts them: layers, embedding 1, norm and head 2."""
    chunks = sorted((each for one in training["stages"] for each in one["chunks"]), key=lambda each: each["chunk"])
    bounds = [0]
    for each in chunks:
        bounds.append(bounds[-1] + each["num_layers"] + bool(each["embedding"]) + 2 * bool(each["head"]))
    return bounds


def tiny_pipeline(training: dict[str, Any], pipe: int) -> Any:
    """A module cut at the plan's bounds, in the way of the emitted script."""
    import torch
    from deepspeed.pipe import LayerSpec, PipelineModule
    from deepspeed.runtime.pipe.dualpipev import DualPipeVModule

    bounds = bounds_of(training)

    class Listed(PipelineModule):  # type: ignore[misc]
        def _partition_layers(self, method: str = "listed") -> None:
            self.parts = bounds
            self._set_bounds(start=bounds[self.stage_id], stop=bounds[self.stage_id + 1])

    class ListedChunks(DualPipeVModule, Listed):  # type: ignore[misc]
        pass

    kind = ListedChunks if training["schedule"] == "dualpipev" else Listed
    layers = [LayerSpec(torch.nn.Linear, WIDTH, WIDTH) for _ in range(bounds[-1])]
    return kind(layers=layers, num_stages=pipe, loss_fn=torch.nn.functional.mse_loss, activation_checkpoint_interval=0)


def start_engine(values: dict[str, Any], config: Any, training: dict[str, Any], mesh: dict[str, int]) -> str:
    """The engine's own refusals; returns its class and its optimizer's."""
    import deepspeed
    import torch

    pipe = mesh["pipe"]
    replicas = min(mesh["data_replicate"] * mesh["data_shard"], ENGINE_REPLICAS)
    start_world(pipe * replicas)
    torch.set_default_dtype({"float16": torch.float16}.get(training["dtype"], torch.bfloat16))
    model = tiny_pipeline(training, pipe) if pipe > 1 else torch.nn.Linear(WIDTH, WIDTH)
    torch.set_default_dtype(torch.float32)
    engine, *_ = deepspeed.initialize(
        model=model, config=engine_config(values, config, replicas), model_parameters=model.parameters()
    )
    return f"{type(engine).__name__} with {type(engine.optimizer).__name__}"


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """All stages; ``until`` of the request names the last one."""
    yield "files"
    values, training, model, mesh = parse(request)
    yield "mesh"
    world_size = math.prod(mesh.values())
    if request["world_size"] not in (None, world_size):
        raise Refused(f"training.json plans {world_size} ranks, {request['world_size']} are started")
    yield "config"
    config = parsed_config(values, world_size, mesh["data_replicate"] * mesh["data_shard"])
    facts |= facts_of(config)
    if request.get("until") == "config":
        return
    yield "experts"
    check_experts(config, world_size, mesh, model)
    yield "tensor"
    check_tensor(config, world_size, mesh)
    if mesh["sequence"] > 1:
        yield "sequence"
        check_sequence(config, training, model, mesh["sequence"])
    if mesh["pipe"] > 1:
        yield "pipeline"
        check_topology(training, world_size, mesh["pipe"])
    if facts["offload"] == "nvme":  # asynchronous file access has to be compiled
        facts["engine"] = "not started: nvme"
        return
    yield "engine"
    facts["engine"] = start_engine(values, config, training, mesh)


def without_compiled_parts() -> None:
    """Stand-ins for the extensions that DeepSpeed would compile, and for what it asks of the CPU."""
    cpuinfo = import_module("cpuinfo")
    from deepspeed.ops.op_builder import builder

    # By its full name: the package also has torch itself under the name ``torch``.
    vars(import_module("deepspeed.comm.torch"))["build_shm_op"] = lambda: None
    # A CPU of the checking machine may lack fp16 arithmetic; that is no property of the plan.
    import_module("deepspeed.accelerator.cpu_accelerator").CPU_Accelerator.is_fp16_supported = lambda self: True
    builder.OpBuilder.load = lambda self, verbose=True: mock.MagicMock()
    vars(cpuinfo)["get_cpu_info"] = lambda: {"vendor_id_raw": ""}  # it starts processes and takes a second


def warm_up() -> None:
    """Import here what engines import when they start, so that every child has it."""
    mesh = {"pipe": 1, "data_replicate": 1, "data_shard": 1, "sequence": 1, "tensor": 1}
    config: dict[str, Any] = {
        "train_batch_size": 1,
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
    }
    optimizer = {"type": "AdamW", "params": {"torch_adam": True}}
    config |= {"bf16": {"enabled": True}, "optimizer": optimizer, "zero_optimization": {"stage": 1}}
    training = {"mesh": mesh, "dtype": "bfloat16", "schedule": "1f1b"}
    trial = {"config": json.dumps(config), "training": json.dumps(training), "model": "{}", "world_size": 1}
    before = set(sys.modules)
    tried = in_child(lambda: verdict(stages, trial) | {"modules": sorted(set(sys.modules) - before)}, "DeepSpeed")
    for name in tried.get("modules", []):
        with contextlib.suppress(Exception):
            import_module(name)
    # Engines collect garbage several times; what is here already need not be looked at again.
    gc.collect()
    gc.freeze()


def prepare(overlay: Path) -> None:
    """DeepSpeed on the CPU, without what it compiles, imported as far as engines do."""
    os.environ["DS_ACCELERATOR"] = "cpu"
    import torch

    torch.set_num_threads(1)
    without_compiled_parts()
    warm_up()


if __name__ == "__main__":
    serve_answers(lambda request: in_child(lambda: verdict(stages, request), "DeepSpeed"), prepare)
