"""Reads the strategy and layout from ``ds_config.json``, ``training.json`` and ``launch.sh``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from planner.backends.deepspeed.adapters import adapters_agree
from planner.backends.deepspeed.config import CONFIG_FILE
from planner.backends.deepspeed.config_keys import config_findings
from planner.backends.deepspeed.training_document import TRAINING_FILE, TrainingDocument, read_layout, read_training
from planner.backends.emission.emitted import file_of
from planner.backends.emission.layout import Layout
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, read_world_size
from planner.errors import DocumentInvalid
from planner.strategy.strategy import Strategy


def read_back(files: Mapping[str, str]) -> tuple[Strategy, Layout]:
    """The strategy and layout that DeepSpeed and the script would run.

    Raises DocumentInvalid for a missing or malformed file, for keys that DeepSpeed would refuse or ignore, and when
    the files contradict each other.
    """
    training = read_training(file_of(files, TRAINING_FILE))
    config = _config(file_of(files, CONFIG_FILE))
    mesh = training.mesh
    data_ranks = mesh.data_replicate * mesh.data_shard
    findings = [f"{finding.where}: {finding.message}" for finding in config_findings(config, data_ranks)]
    if findings:
        raise DocumentInvalid("; ".join(findings), where=CONFIG_FILE, hint="repair these keys or emit the plan again")
    strategy = config_strategy(config, training)
    _agree(strategy, config, training, read_world_size(file_of(files, LAUNCH_SCRIPT)))
    adapters_agree(training.training, files, TRAINING_FILE)
    return strategy, read_layout(training, optimizer_offload=strategy.optimizer_offload)


def _config(text: str) -> dict[str, Any]:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentInvalid("not JSON", where=CONFIG_FILE, hint="emit the plan again") from error
    if not isinstance(config, dict):
        raise DocumentInvalid("not a JSON object", where=CONFIG_FILE, hint="emit the plan again")
    return config


def config_strategy(config: dict[str, Any], training: TrainingDocument) -> Strategy:
    """The strategy of a config whose keys were found right (see ``config_findings``)."""
    mesh, zero = training.mesh, config.get("zero_optimization", {})
    tensor, experts = config.get("tensor_parallel", {}), config.get("expert_parallel", {})
    stage = zero.get("stage", 0)
    return Strategy(
        tp=tensor.get("autotp_size", 0) or 1,
        cp=mesh.sequence,
        cp_kind="all_to_all" if mesh.sequence > 1 else "none",
        ep=experts.get("autoep_size", 1) if experts.get("enabled") else 1,
        etp=experts.get("expert_tensor_parallel_size", 1) if experts.get("enabled") else 1,
        pp=mesh.pipe,
        vpp=2 if training.schedule == "dualpipev" else 1,
        dp_replicate=mesh.data_replicate,
        dp_shard=mesh.data_shard,
        micro_batch_size=config["train_micro_batch_size_per_gpu"],
        num_microbatches=config["gradient_accumulation_steps"],
        schedule=training.schedule,
        zero_stage=stage,
        recompute=training.recompute,
        optimizer_offload=zero.get("offload_optimizer", {}).get("device", "none") == "cpu",
        overlap_grad_reduce=zero.get("overlap_comm", stage == 3),
        overlap_param_gather=stage == 3 and zero.get("stage3_prefetch_bucket_size", 1) > 0,
        overlap_tp=tensor.get("tp_overlap_comm", False),
    )


def _agree(strategy: Strategy, config: dict[str, Any], training: TrainingDocument, world_size: int) -> None:
    """The files must say one thing."""
    mesh = training.mesh
    chunks = sorted(
        (chunk for stage in training.stages for chunk in stage.chunks),
        key=lambda chunk: (chunk.chunk, chunk.first_layer),
    )
    starts = [sum(before.num_layers for before in chunks[:index]) for index in range(len(chunks))]
    layers = json.dumps([chunk.num_layers for chunk in chunks])
    problems = [
        message
        for wrong, message in (
            (strategy.tp != mesh.tensor, f"tensor_parallel.autotp_size is {strategy.tp}, mesh.tensor {mesh.tensor}"),
            (len(training.stages) != mesh.pipe, f"{len(training.stages)} stages, mesh.pipe is {mesh.pipe}"),
            (mesh.world_size != world_size, f"the mesh has {mesh.world_size} ranks, {LAUNCH_SCRIPT} {world_size}"),
            (config.get("pipeline", {}).get("stages", 1) != mesh.pipe, "pipeline.stages is not mesh.pipe"),
            ([chunk.chunk for chunk in chunks] != list(range(strategy.num_chunks)), "chunks are not numbered in order"),
            ([chunk.first_layer for chunk in chunks] != starts, f"chunks of {layers} layers do not join"),
            (
                any(chunk.recomputed_layers > chunk.num_layers for chunk in chunks),
                "a chunk recomputes more layers than it has",
            ),
        )
        if wrong
    ]
    if problems:
        raise DocumentInvalid("; ".join(problems), where=TRAINING_FILE, hint="emit the plan again")
