"""Reads the strategy and layout from the emitted files of either dialect; no file is executed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.backends.emission.emitted import file_of
from planner.backends.emission.layout import Layout, StageLayout, canonical_recompute
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, read_world_size
from planner.backends.torchtitan.config_module import MODULE_FILE, read_module
from planner.backends.torchtitan.degrees import (
    RECOMPUTE,
    SCHEDULES,
    SELECTIVE_MODULES,
    SPLIT_BACKWARD_SCHEDULES,
    expert_tensor_degree,
    group_size,
    zero_stage,
)
from planner.backends.torchtitan.fields import unknown_fields
from planner.backends.torchtitan.toml_config import CONFIG_FILE, MODEL_FILE, read_config, read_model
from planner.backends.torchtitan.train_script import TRAIN_SCRIPT, train_script
from planner.backends.torchtitan.values import HEAD_MODULE
from planner.backends.torchtitan.version import TOML_VERSION, TORCHTITAN_VERSION
from planner.errors import DocumentInvalid
from planner.plan.plan import ChunkPlan, StageOffload, StageRecompute
from planner.strategy.schedules import V_SCHEDULES
from planner.strategy.strategy import Strategy

_HINT = "repair it or emit the plan again"
_LAYER = re.compile(r"layers\.(\d+)")


@dataclass(frozen=True, slots=True)
class _Said:
    """What both dialects say."""

    version: str
    where: str
    num_layers: int
    experts: bool
    parallelism: Mapping[str, Any]
    training: Mapping[str, Any]
    overlap_tp: bool
    compiled: bool
    recompute: Any


def read_back(files: Mapping[str, str]) -> tuple[Strategy, Layout]:
    """The strategy and layout that torchtitan would run.

    Raises DocumentInvalid for a missing or malformed file, for fields that the release does not have, when the files
    contradict each other, and for a compiled model under a schedule that splits backward passes.
    """
    said = _module(files) if MODULE_FILE in files else _toml(files)
    script = file_of(files, TRAIN_SCRIPT)
    try:
        strategy = _strategy(said)
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise DocumentInvalid(f"no strategy in it: {error!r}", where=said.where, hint=_HINT) from error
    if script != train_script(said.version, pipeline=strategy.pp > 1):
        raise DocumentInvalid("not the script that starts this release", where=TRAIN_SCRIPT, hint="emit the plan again")
    if LAUNCH_SCRIPT in files:
        ranks = read_world_size(files[LAUNCH_SCRIPT])
        if ranks != strategy.world_size:
            message = f"{LAUNCH_SCRIPT} starts {ranks} ranks, the degrees make {strategy.world_size}"
            raise DocumentInvalid(message, where=LAUNCH_SCRIPT, hint="emit the plan again")
    layout = _layout(said, strategy)
    if said.compiled and strategy.schedule in SPLIT_BACKWARD_SCHEDULES:
        message = f"{strategy.schedule} splits backward passes, which fails on compiled layers and loss (rule P6)"
        raise DocumentInvalid(message, where=said.where, hint="emit the plan again, or choose another schedule")
    return strategy, layout


def _module(files: Mapping[str, str]) -> _Said:
    given = read_module(files[MODULE_FILE])
    sections = {"parallelism": given["PARALLELISM"], "training": given["TRAINING"], "compile": given["COMPILE"]}
    _demand_known(sections, TORCHTITAN_VERSION, MODULE_FILE)
    model = given["MODEL"]
    return _Said(
        version=TORCHTITAN_VERSION,
        where=MODULE_FILE,
        num_layers=_number(model, "n_layers", MODULE_FILE),
        experts=bool(model.get("num_experts")),
        overlap_tp=given["COMPILE"].get("enable_async_tensor_parallel", False),
        compiled=bool(given["COMPILE"].get("enable")),
        recompute=given["ACTIVATION_CHECKPOINT"],
        parallelism=sections["parallelism"],
        training=sections["training"],
    )


def _toml(files: Mapping[str, str]) -> _Said:
    given, model = read_config(file_of(files, CONFIG_FILE)), read_model(file_of(files, MODEL_FILE))
    _demand_known(given, TOML_VERSION, CONFIG_FILE)
    for section in ("parallelism", "training", "activation_checkpoint"):
        if section not in given:
            raise DocumentInvalid(f"the section [{section}] is missing", where=CONFIG_FILE, hint=_HINT)
    recompute = given["activation_checkpoint"]
    if recompute.get("mode") == "selective" and recompute.get("selective_ac_option") != "op":
        raise DocumentInvalid("selective recompute must be by operation", where=CONFIG_FILE, hint=_HINT)
    return _Said(
        version=TOML_VERSION,
        where=CONFIG_FILE,
        num_layers=_number(model, "n_layers", MODEL_FILE),
        experts="moe_args" in model,
        overlap_tp=given["parallelism"].get("enable_async_tensor_parallel", False),
        compiled=bool(given.get("compile", {}).get("enable")),
        recompute=recompute.get("mode"),
        parallelism=given["parallelism"],
        training=given["training"],
    )


def _demand_known(sections: Mapping[str, Any], version: str, where: str) -> None:
    for name, values in sections.items():
        if not isinstance(values, dict):
            raise DocumentInvalid(f"{name} is no table", where=where, hint=_HINT)
    unknown = unknown_fields(sections, version)
    if unknown:
        raise DocumentInvalid(f"torchtitan {version} has no {', '.join(unknown)}", where=where, hint=_HINT)


def _number(values: Mapping[str, Any], name: str, where: str) -> int:
    value = values.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise DocumentInvalid(f"{name} is {value!r}, not a positive number", where=where, hint=_HINT)
    return value


def _strategy(said: _Said) -> Strategy:
    given = said.parallelism
    tp, cp, ep, pp, replicate, shard = (
        _number(given, f"{name}_degree", said.where)
        for name in (
            "tensor_parallel",
            "context_parallel",
            "expert_parallel",
            "pipeline_parallel",
            "data_parallel_replicate",
            "data_parallel_shard",
        )
    )
    local = _number(said.training, "local_batch_size", said.where)
    samples = _number(said.training, "global_batch_size", said.where)
    size = _number(given, "pipeline_parallel_microbatch_size", said.where) if pp > 1 else local
    count, rest = divmod(samples, size * replicate * shard)
    if rest or (pp > 1 and local != size * count):
        raise ValueError(f"local_batch_size {local} and global_batch_size {samples} do not fit each other")
    if said.recompute not in RECOMPUTE:
        raise ValueError(f"recompute {said.recompute!r}")
    if said.version == TORCHTITAN_VERSION and said.training.get("disable_cuda_graphs") != (pp > 1 or ep > 1):
        raise ValueError("disable_cuda_graphs must be set with a pipeline or expert parallelism, and only then")
    stage = zero_stage(given["fsdp_reshard_after_forward"], pp)
    if stage == 0 and shard > 1:
        raise ValueError("fsdp_reshard_after_forward must be 'always' or 'never' where parameters are sharded")
    names = {theirs: ours for ours, theirs in SCHEDULES.items()}
    strategy = Strategy(
        tp=tp,
        sp=given["enable_sequence_parallel"] if said.version == TORCHTITAN_VERSION else tp > 1,
        cp=cp,
        cp_kind="ring" if cp > 1 else "none",
        ep=ep,
        etp=expert_tensor_degree(tp, ep, experts=said.experts),
        pp=pp,
        vpp=len(given["module_fqns_per_model_part"]) // pp if pp > 1 else 1,
        dp_replicate=replicate if stage else 1,
        dp_shard=shard if stage else replicate,
        micro_batch_size=size,
        num_microbatches=count,
        schedule=names[given["pipeline_parallel_schedule"]] if pp > 1 else "1f1b",
        zero_stage=stage,
        recompute=said.recompute,
        recompute_modules=SELECTIVE_MODULES if said.recompute == "selective" else (),
        overlap_grad_reduce=pp == 1,
        overlap_param_gather=True,
        overlap_tp=said.overlap_tp,
    )
    return replace(strategy, microbatch_group_size=group_size(strategy))


def _layout(said: _Said, strategy: Strategy) -> Layout:
    chunks = _chunks(said, strategy)
    stages = []
    for rank in range(strategy.pp):
        mine = tuple(chunk for chunk in chunks if strategy.chunk_stage(chunk.chunk) == rank)
        recompute = StageRecompute(
            policy=strategy.recompute,
            modules=strategy.recompute_modules,
            num_layers_per_chunk=() if strategy.recompute == "none" else tuple(chunk.num_layers for chunk in mine),
        )
        stages.append(StageLayout(rank, mine, canonical_recompute(recompute), StageOffload()))
    return tuple(stages)


def _chunks(said: _Said, strategy: Strategy) -> tuple[ChunkPlan, ...]:
    """Model parts in order.  Raises DocumentInvalid when they are not the whole model, each module once."""
    if strategy.pp == 1:
        return (ChunkPlan(chunk=0, first_layer=0, num_layers=said.num_layers, has_embedding=True, has_head=True),)
    parts, chunks, first = said.parallelism["module_fqns_per_model_part"], [], 0
    wanted_vpp = 2 if strategy.schedule in V_SCHEDULES else None
    if len(parts) % strategy.pp or (wanted_vpp and strategy.vpp != wanted_vpp):
        message = f"{len(parts)} model parts do not fit {strategy.pp} pipeline ranks and {strategy.schedule}"
        raise DocumentInvalid(message, where=said.where, hint=_HINT)
    for index, part in enumerate(parts):
        layers = [int(found.group(1)) for name in part if (found := _LAYER.fullmatch(str(name)))]
        chunk = ChunkPlan(
            chunk=index,
            first_layer=first,
            num_layers=len(layers),
            has_embedding=index == 0,
            has_head=index == len(parts) - 1,
        )
        head = ["norm", HEAD_MODULE[said.version]] if chunk.has_head else []
        names = [f"layers.{layer}" for layer in range(first, first + len(layers))]
        if list(part) != [*(["tok_embeddings"] if index == 0 else []), *names, *head]:
            raise DocumentInvalid(f"model part {index} is not the next modules", where=said.where, hint=_HINT)
        chunks.append(chunk)
        first += len(layers)
    if first != said.num_layers:
        message = f"the model parts hold {first} of {said.num_layers} layers"
        raise DocumentInvalid(message, where=said.where, hint=_HINT)
    return tuple(chunks)
