"""Reads the strategy and layout from ``maxtext.yml`` (and ``launch.sh``, where there is one)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.backends.emission.emitted import file_of
from planner.backends.emission.layout import Layout, StageLayout
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, read_world_size
from planner.backends.maxtext.config_keys import config_findings
from planner.backends.maxtext.mesh_axes import MeshSplit, read_mesh
from planner.backends.maxtext.saved_tensors import read_remat
from planner.backends.maxtext.version import CONFIG_FILE
from planner.errors import DocumentInvalid
from planner.plan.plan import ChunkPlan, StageOffload, StageRecompute
from planner.strategy.strategy import Strategy

_HINT = "repair these keys or emit the plan again"


def read_back(files: Mapping[str, str]) -> tuple[Strategy, Layout]:
    """The strategy and layout that MaxText would run.

    Raises DocumentInvalid for a missing or malformed file, unknown keys, and keys that contradict each other.
    """
    config = parse_config(file_of(files, CONFIG_FILE))
    findings = [f"{finding.where}: {finding.message}" for finding in config_findings(config)]
    if findings:
        raise DocumentInvalid("; ".join(findings), where=CONFIG_FILE, hint=_HINT)
    split = read_mesh(config)
    problems = _contradictions(config, split, files)
    if problems:
        raise DocumentInvalid("; ".join(problems), where=CONFIG_FILE, hint=_HINT)
    strategy = config_strategy(config, split.sizes)
    return strategy, _layout(config, strategy)


def parse_config(text: str) -> dict[str, Any]:
    """The keys of the file.  Raises DocumentInvalid when it is not a YAML mapping."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        config = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        hint = "emit the plan again"
        raise DocumentInvalid(f"not YAML: {str(error).splitlines()[0]}", where=CONFIG_FILE, hint=hint) from error
    if not isinstance(config, dict) or not all(isinstance(key, str) for key in config):
        raise DocumentInvalid("not a mapping of keys", where=CONFIG_FILE, hint="emit the plan again")
    return config


def _world(split: MeshSplit) -> int:
    world = 1
    for size in split.sizes.values():
        world *= size
    return world


def _contradictions(config: Mapping[str, Any], split: MeshSplit, files: Mapping[str, str]) -> list[str]:
    sizes, world = split.sizes, _world(split)
    stages, steps = sizes["stage"], config["gradient_accumulation_steps"]
    data_ranks = sizes["data"] * sizes["fsdp"] * sizes["expert"]
    in_pipeline = config.get("num_pipeline_microbatches", stages) if stages > 1 else 1
    samples = int(world * config["per_device_batch_size"])
    layers = config.get("num_layers_per_pipeline_stage", 1) * config.get("num_pipeline_repeats", 1) * stages
    started = read_world_size(files[LAUNCH_SCRIPT]) if LAUNCH_SCRIPT in files else world
    sharded = sizes["fsdp"] * sizes["expert"] > 1
    return [
        message
        for wrong, message in (
            (split.num_slices != config["num_slices"], f"dcn degrees make {split.num_slices} slices, not num_slices"),
            (started != world, f"the mesh has {world} devices, {LAUNCH_SCRIPT} starts {started}"),
            (stages > 1 and steps > 1, "a plan's pipeline accumulates no gradients over batches"),
            (stages > 1 and layers != config["base_num_decoder_layers"], f"the stages hold {layers} layers, not all"),
            (samples == 0 or samples % (data_ranks * in_pipeline) != 0, f"{samples} samples do not divide over ranks"),
            (config.get("shard_optimizer_over_data", False) and sharded, "shard_optimizer_over_data excludes fsdp"),
            (read_remat(config) is None, "remat_policy and the tensors' places are no plan's"),
        )
        if wrong
    ]


def config_strategy(config: Mapping[str, Any], sizes: Mapping[str, int]) -> Strategy:
    """The strategy of a whole config on a mesh.  Raises DocumentInvalid for a remat policy that plans do not use."""
    remat = read_remat(config)
    if remat is None:
        raise DocumentInvalid("remat_policy and the tensors' places are no plan's", where=CONFIG_FILE, hint=_HINT)
    policy, modules, offload = remat
    tp = sizes["tensor"]
    zero_stage = _zero_stage(config, sizes)
    shards = sizes["fsdp"] * sizes["expert"]
    data_ranks = sizes["data"] * shards
    pp, cp = sizes["stage"], sizes["context"]
    repeats = config.get("num_pipeline_repeats", 1) if pp > 1 else 1
    microbatches = config.get("num_pipeline_microbatches", pp) if pp > 1 else config["gradient_accumulation_steps"]
    samples = int(data_ranks * tp * cp * pp * config["per_device_batch_size"])
    ulysses = config.get("context_parallel_strategy", "ring") == "ulysses"
    return Strategy(
        tp=tp,
        sp=tp > 1,
        cp=cp,
        cp_kind="none" if cp == 1 else "all_to_all" if ulysses else "ring",
        ep=sizes["expert"],
        etp=tp if config.get("num_experts", 1) > 1 else 1,
        pp=pp,
        vpp=repeats,
        dp_replicate=sizes["data"] if zero_stage == 3 else 1,
        dp_shard=shards if zero_stage == 3 else data_ranks,
        micro_batch_size=samples // (data_ranks * (microbatches if pp > 1 else 1)),
        num_microbatches=microbatches,
        schedule="1f1b" if pp == 1 else "looped_bfs" if repeats > 1 else "gpipe",
        zero_stage=zero_stage,
        recompute=policy,
        recompute_modules=modules,
        optimizer_offload=config.get("optimizer_memory_host_offload", False),
        activation_offload=offload,
    )


def _zero_stage(config: Mapping[str, Any], sizes: Mapping[str, int]) -> int:
    if config.get("shard_optimizer_over_data", False):
        return 1
    return 3 if sizes["fsdp"] * sizes["expert"] * sizes["context"] > 1 else 0


def _layout(config: Mapping[str, Any], s: Strategy) -> Layout:
    """Equal chunks, repeat by repeat; one layer of gemma2's block is two layers of the model."""
    layers = config["base_num_decoder_layers"] * (2 if config["decoder_block"] == "gemma2" else 1)
    count, last = layers // s.num_chunks, s.num_chunks - 1
    chunks = [
        ChunkPlan(
            chunk=chunk,
            first_layer=chunk * count,
            num_layers=count,
            has_embedding=chunk == 0,
            has_head=chunk == last,
            num_mtp_layers=config.get("mtp_num_layers", 0) if chunk == last else 0,
        )
        for chunk in range(s.num_chunks)
    ]
    offloaded = count * s.vpp if s.activation_offload else 0
    return tuple(
        StageLayout(
            stage=stage,
            chunks=tuple(chunks[stage :: s.pp]),
            recompute=StageRecompute(
                policy=s.recompute, modules=s.recompute_modules, num_layers_per_chunk=(count,) * s.vpp
            ),
            offload=StageOffload(optimizer=s.optimizer_offload, activation_layers=offloaded),
        )
        for stage in range(s.pp)
    )
