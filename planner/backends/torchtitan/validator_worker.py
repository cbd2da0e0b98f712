"""Asks torchtitan about a configuration: its manager, its trainer's checks, the mesh, the pipeline, the real model.

One request is one run: files (written into a folder of their own and imported from there), words for
``torchtitan.train``, ranks.  ``build`` also builds the model on the meta device and parallelises it as rank ``rank`` of
a process group that is only pretended, and answers with the parameters that the rank holds.  No device is touched.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from planner.backends.checking.answers import FeignedModules, feigned_ranks, serve

MODULES = ("titan_plan", "titan_model")
STUBS = (
    # Kernels in triton, which is not there and which nothing here runs.
    "torchtitan.distributed.minimal_async_ep.kernels",
    "torchtitan.models.moe.kernels",
    # Data, logs and dashboards: imported by the trainer, asked nothing here.
    "tensorboard",
    "torch.utils.tensorboard",
    "wandb",
    "datasets",
    "datasets.distributed",
    "torchdata",
    "torchdata.nodes",
    "torchdata.stateful_dataloader",
    "torchdata.stateful_dataloader.stateful_dataloader",
)


def prepare(overlay: Path) -> None:
    """Make torchtitan importable on a machine without devices."""
    FeignedModules(*STUBS)
    import torch
    import torchtitan.tools.utils as tools

    tools.device_type, tools.device_module = "cpu", torch.cpu
    import torchtitan.distributed.parallel_dims as dims

    dims.device_type = "cpu"
    with contextlib.suppress(ImportError):
        # The device that the plan is for is not here; whether it multiplies 8-bit matrices is a rule of the plan.
        from torchtitan.components.quantization import float8

        float8.has_cuda_capability = lambda major, minor: True


class Release:
    """What differs between the releases; this one is 0.3.0."""

    def world(self, config: Any, world_size: int) -> Any:
        """The degrees, checked against the ranks."""
        from torchtitan.distributed import ParallelDims

        return ParallelDims.from_config(config.parallelism, world_size)

    def parse(self, arguments: list[str]) -> Any:
        """The configuration as the trainer gets it."""
        from torchtitan.config import ConfigManager

        return ConfigManager().parse_args(arguments)

    def trainer_checks(self, config: Any, dims: Any) -> None:
        """What the trainer demands before it builds anything (trainer.py:307, 422)."""
        divisor = (dims.tp if config.parallelism.enable_sequence_parallel else 1) * (2 * dims.cp if dims.cp > 1 else 1)
        demand(config.training.seq_len % divisor == 0, f"seq_len must be divisible by {divisor}")
        batch_checks(config, dims)

    def model(self, config: Any) -> tuple[Any, Any]:
        """The family's bundle and its configuration, told about the run."""
        from torchtitan.distributed import utils

        utils.set_spmd_backend(config.parallelism.spmd_backend)
        config.model_spec.model.update_from_config(config=config)
        config._validate_cuda_graphs()
        return config.model_spec, config.model_spec.model

    def meta_model(self, config: Any, spec: Any, model_config: Any) -> Any:
        """The whole model without memory."""
        import torch
        from torchtitan.config import TORCH_DTYPE_MAP
        from torchtitan.tools.utils import set_default_dtype

        with torch.device("meta"), set_default_dtype(TORCH_DTYPE_MAP[config.training.dtype]):
            return model_config.build()

    def parts(self, config: Any, dims: Any, spec: Any, model_config: Any, model: Any) -> list[Any]:
        """This rank's parts of the model, parallelised by torchtitan itself."""
        import torch

        named = {
            "parallel_dims": dims,
            "training": config.training,
            "parallelism": config.parallelism,
            "compile_config": config.compile,
            "ac_config": config.activation_checkpoint,
            "dump_folder": ".",
        }
        if dims.pp == 1:
            return [spec.parallelize_fn(model, **named)]
        _, parts, _, _ = spec.pipelining_fn(
            model,
            device=torch.device("cpu"),
            model_config=model_config,
            parallelize_fn=spec.parallelize_fn,
            loss_fn=lambda *words: (torch.zeros(()), {}),
            **named,
        )
        return list(parts)

    def schedule(self, config: Any, dims: Any, stages: list[Any]) -> None:
        """The schedule of this rank's stages, by torchtitan's own function."""
        from torchtitan.distributed import pipeline_parallel

        pipeline_parallel._build_pipeline_schedule(
            parallelism=config.parallelism,
            local_batch_size=config.training.local_batch_size,
            stages=stages,
            loss_fn=lambda *words: (0, {}),
        )

    def lacking(self) -> str:
        """What the torch here cannot do for a pipeline (trainer.py:856); empty where it can."""
        import inspect

        import torch
        from torch.distributed.pipelining.schedules import PipelineScheduleSingle

        if "arg_mbs" in inspect.signature(PipelineScheduleSingle.step).parameters:
            return ""
        return f"torch {torch.__version__} here cannot run its pipelines: they need torch 2.14 (pytorch 188500)"

    def stage_indices(self, rank: int, config: Any, num_stages: int) -> tuple[int, ...]:
        """Model parts of a pipeline rank."""
        from torchtitan.distributed import pipeline_parallel

        schedule = config.parallelism.pipeline_parallel_schedule
        degree = config.parallelism.pipeline_parallel_degree
        return tuple(pipeline_parallel._get_pp_rank_to_stage_indices_mapping(rank, degree, schedule, num_stages))


class TomlRelease(Release):
    """0.2.2."""

    def world(self, config: Any, world_size: int) -> Any:
        """The degrees, checked against the ranks; experts may have tensor parallelism of their own."""
        from torchtitan.distributed import ParallelDims

        given = config.parallelism
        return ParallelDims(
            dp_shard=given.data_parallel_shard_degree,
            dp_replicate=given.data_parallel_replicate_degree,
            cp=given.context_parallel_degree,
            tp=given.tensor_parallel_degree,
            pp=given.pipeline_parallel_degree,
            ep=given.expert_parallel_degree,
            etp=given.expert_tensor_parallel_degree,
            world_size=world_size,
        )

    def parse(self, arguments: list[str]) -> Any:
        """The configuration, its model registered by the module that it names."""
        from torchtitan.protocols import train_spec

        train_spec._extra_train_specs.clear()
        config = super().parse(arguments)
        importlib.import_module(config.experimental.custom_import)
        return config

    def lacking(self) -> str:
        """It hands whole batches to schedules, as any torch has it."""
        return ""

    def trainer_checks(self, config: Any, dims: Any) -> None:
        """What the trainer demands; the sequence is checked where the model is built."""
        batch_checks(config, dims)

    def model(self, config: Any) -> tuple[Any, Any]:
        """The family's bundle and its arguments."""
        from torchtitan.protocols.train_spec import get_train_spec

        spec = get_train_spec(config.model.name)
        arguments = spec.model_args[config.model.flavor]
        arguments.update_from_config(config)
        pipeline = config.parallelism.pipeline_parallel_degree > 1
        demand(not pipeline or spec.pipelining_fn is not None, "the model does not support pipelining")
        return spec, arguments

    def meta_model(self, config: Any, spec: Any, model_config: Any) -> Any:
        """The whole model without memory."""
        import torch

        with torch.device("meta"):
            return spec.model_cls(model_config)

    def parts(self, config: Any, dims: Any, spec: Any, model_config: Any, model: Any) -> list[Any]:
        """This rank's parts of the model, parallelised by torchtitan itself."""
        import torch

        if dims.pp == 1:
            return [spec.parallelize_fn(model, dims, config)]
        device, loss = torch.device("cpu"), lambda *words: torch.zeros(())
        _, parts, _, _ = spec.pipelining_fn(model, dims, config, device, model_config, spec.parallelize_fn, loss)
        return list(parts)

    def schedule(self, config: Any, dims: Any, stages: list[Any]) -> None:
        """The schedule of this rank's stages."""
        from torchtitan.distributed import pipeline_parallel

        pipeline_parallel.build_pipeline_schedule(config, stages, lambda *words: 0)

    def stage_indices(self, rank: int, config: Any, num_stages: int) -> tuple[int, ...]:
        """Model parts of a pipeline rank."""
        degree = config.parallelism.pipeline_parallel_degree
        demand(num_stages % degree == 0, f"num_stages {num_stages} must be evenly divisible by pp_degree {degree}")
        if config.parallelism.pipeline_parallel_schedule in ("ZBVZeroBubble", "DualPipeV"):
            demand(num_stages == 2 * degree, f"v schedules assume 2 stages per rank, got {num_stages // degree}")
            return (rank, num_stages - 1 - rank)
        return tuple(range(rank, num_stages, degree))


def demand(holds: bool, message: str) -> None:
    """Refuse as torchtitan's trainer does."""
    if not holds:
        raise ValueError(message)


def batch_checks(config: Any, dims: Any) -> None:
    """The batch's part of the trainer's checks."""
    local, total = config.training.local_batch_size, config.training.global_batch_size
    step = local * dims.dp_replicate * dims.dp_shard
    demand(total < 0 or (total > 0 and total % step == 0), f"global batch size {total} must be a multiple of {step}")
    size = config.parallelism.pipeline_parallel_microbatch_size
    demand(dims.pp == 1 or local % size == 0, f"local batch {local} is not divisible by micro-batch {size}")


@contextlib.contextmanager
def imported_from(files: dict[str, str]) -> Iterator[None]:
    """The files in a folder of their own, first on the path; forgotten afterwards."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / Path(name).name).write_text(text, encoding="utf-8")
        sys.path.insert(0, folder)
        os.chdir(folder)
        importlib.invalidate_caches()
        try:
            yield
        finally:
            os.chdir(before)
            sys.path.remove(folder)
            for name in MODULES:
                sys.modules.pop(name, None)


class Run:
    """One request on its way through the stages."""

    def __init__(self, release: Release, request: dict[str, Any], facts: dict[str, Any]) -> None:
        self.release = release
        self.request = request
        self.facts = facts

    def stages(self) -> Iterator[str]:
        """Every stage, named before it begins; raises what torchtitan raises."""
        release, world_size = self.release, self.request["world_size"]
        yield "parse"
        config = release.parse(self.request["arguments"])
        yield "degrees"
        dims = release.world(config, world_size)
        yield "trainer"
        release.trainer_checks(config, dims)
        with feigned_ranks(world_size, self.request.get("rank", 0)):
            yield "mesh"
            dims.build_mesh()
            yield "model"
            spec, model_config = release.model(config)
            self.facts["sizes"] = {name: getattr(dims, name) for name in ("dp_replicate", "dp_shard", "cp", "tp", "pp")}
            if dims.pp > 1:
                yield "pipeline"
                self.pipeline(config, dims)
                if lacking := self.release.lacking():
                    self.facts["lacking"] = lacking
            if self.request.get("build"):
                yield "build"
                self.build(config, dims, spec, model_config)

    def pipeline(self, config: Any, dims: Any) -> None:
        """Stages of every pipeline rank, and the schedule of this one over parts without weights."""
        import torch
        from torch.distributed.pipelining import PipelineStage

        parts = config.parallelism.module_fqns_per_model_part
        mapping = [self.release.stage_indices(rank, config, len(parts)) for rank in range(dims.pp)]
        self.facts["stages"] = [list(indices) for indices in mapping]
        mesh = dims.get_mesh("pp")
        device, group = torch.device("cpu"), mesh.get_group("pp")
        stages = [
            PipelineStage(torch.nn.Identity(), index, len(parts), device, group=group)
            for index in mapping[mesh.get_local_rank()]
        ]
        self.release.schedule(config, dims, stages)

    def build(self, config: Any, dims: Any, spec: Any, model_config: Any) -> None:
        """The model itself."""
        model = self.release.meta_model(config, spec, model_config)
        self.facts["recipe"] = recipe_facts(model)
        self.facts["total_parameters"] = sum(parameter.numel() for parameter in model.parameters())
        parts = self.release.parts(config, dims, spec, model_config, model)
        local = {
            name: (each.to_local() if hasattr(each, "to_local") else each).numel()
            for part in parts
            for name, each in part.named_parameters()
        }
        self.facts["local_parameters"] = sum(local.values())
        if self.request.get("by_name"):
            self.facts["by_name"] = local


def recipe_facts(model: Any) -> dict[str, Any]:
    """What routers and attention of a built model multiply with: distinct values, whatever the layer."""
    found: dict[str, set[Any]] = {}
    for module in model.modules():
        for name in ("route_scale", "route_norm", "softmax_scale", "load_balance_coeff"):
            if hasattr(module, name):
                found.setdefault(name, set()).add(getattr(module, name))
        config = getattr(module, "config", None)
        arguments = getattr(getattr(module, "model_args", None), "rope_scaling_args", None)
        factor = 1.0 if config is None or getattr(config, "scaling", None) != "llama" else config.scaling_factor
        factor *= 1.0 if arguments is None else arguments.scaling_factor
        if factor != 1.0:
            found.setdefault("llama_factor", set()).add(factor)
    return {name: sorted(values) for name, values in found.items()}


def tables() -> dict[str, Any]:
    """Fields of every configuration section of the release."""
    from torchtitan import config

    if hasattr(config, "JobConfig"):
        whole = config.JobConfig()
        sections = {each.name: getattr(whole, each.name) for each in dataclasses.fields(whole)}
    else:
        names = {"parallelism": "ParallelismConfig", "training": "TrainingConfig", "compile": "CompileConfig"}
        sections = {name: getattr(config, of)() for name, of in names.items()}
    return {name: [each.name for each in dataclasses.fields(of)] for name, of in sections.items()}


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """The stages of a run, or the tables that the request asks for."""
    import torchtitan.config

    if request.get("tables"):
        facts |= tables()
        return
    release = TomlRelease() if hasattr(torchtitan.config, "JobConfig") else Release()
    with imported_from(request["files"]):
        yield from Run(release, request, facts).stages()


def ended(printed: str) -> str:
    """All that the parser of the configuration printed, line by line."""
    return " | ".join(line for line in printed.splitlines() if line.strip())


if __name__ == "__main__":
    serve(stages, prepare, ended=ended)
