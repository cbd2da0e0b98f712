"""Builds this rank's part of the plan: build, split, wrap, fill and connect its chunks."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from planner.backends.native.trainer.context_parallel import context_core
from planner.backends.native.trainer.data_parallel import precision_policy, shard_chunk
from planner.backends.native.trainer.expert_parallel import spread_experts
from planner.backends.native.trainer.initialize import initialize
from planner.backends.native.trainer.loss import TokenLoss
from planner.backends.native.trainer.mesh import Meshes
from planner.backends.native.trainer.model import DecoderChunk, on_meta
from planner.backends.native.trainer.pipeline import SequentialRunner, StepRunner, build_pipeline, hidden_shape
from planner.backends.native.trainer.positions import local_positions
from planner.backends.native.trainer.recompute import layer_choices
from planner.backends.native.trainer.settings import TrainSettings
from planner.backends.native.trainer.tensor_parallel import split_chunk
from planner.plan.plan import ChunkPlan, Plan


@dataclass(frozen=True, slots=True)
class LocalModel:
    """This rank's chunks, how to run them, and which tokens of a sequence they see."""

    chunks: tuple[DecoderChunk, ...]
    runner: StepRunner
    positions: torch.Tensor


def assemble(plan: Plan, meshes: Meshes, settings: TrainSettings, device: torch.device) -> LocalModel:
    """Everything this rank trains.

    Order matters: tp cuts meta tensors, recompute is inside the layer, FSDP wraps the result, and only then does
    memory exist, so that no rank ever holds more than its own part.
    """
    chunks = meta_chunks(plan, meshes, settings)
    for _, chunk in chunks:
        chunk.to_empty(device=device)
        initialize(chunk, device, settings.seed)
    return connect(plan, meshes, settings, chunks, device)


def meta_chunks(plan: Plan, meshes: Meshes, settings: TrainSettings) -> list[tuple[int, DecoderChunk]]:
    """This rank's chunks by their index in the model: split and wrapped, but on the meta device."""
    stage = plan.stages[meshes.here.pp]
    choices, policy = layer_choices(stage), precision_policy(plan.problem.workload, settings)
    chunks: list[tuple[int, DecoderChunk]] = []
    for part in stage.chunks:
        chunk = split_part(plan, part, meshes)
        for index, block in chunk.blocks().items():
            block.set_recompute(choices[index])
        shard_chunk(chunk, meshes, policy)
        chunks.append((part.chunk, chunk))
    return chunks


def connect(
    plan: Plan,
    meshes: Meshes,
    settings: TrainSettings,
    chunks: list[tuple[int, DecoderChunk]],
    device: torch.device,
) -> LocalModel:
    """Chunks that have memory -> a model that can take steps."""
    strategy, workload = plan.chosen(), plan.problem.workload
    positions = local_positions(
        workload.sequence_length, strategy.cp, meshes.here.cp, head_tail=strategy.cp_kind == "ring"
    ).to(device)
    core = context_core(strategy.cp_kind, meshes.context, workload.sequence_length)
    for _, chunk in chunks:
        chunk.place(positions, core)
    tensor_group = meshes.dense["tp"].get_group() if strategy.tp > 1 else None
    loss = TokenLoss(plan.problem.model.vocab_size, strategy.num_microbatches, tensor_group)
    runner: StepRunner
    if strategy.pp == 1:
        runner = SequentialRunner(chunks[0][1], loss, strategy)
    else:
        runner = build_pipeline(
            chunks,
            strategy,
            loss,
            hidden=hidden_shape(strategy, workload.sequence_length, plan.problem.model.hidden_size),
            dtype=precision_policy(workload, settings).param_dtype or torch.float32,
            device=device,
            group=meshes.dense["pp"].get_group(),
        )
    return LocalModel(tuple(chunk for _, chunk in chunks), runner, positions)


def split_part(plan: Plan, part: ChunkPlan, meshes: Meshes) -> DecoderChunk:
    """One chunk on the meta device, experts spread over ep and matrices split over tp."""
    strategy = meshes.strategy
    ep_group = meshes.expert["ep"].get_group() if meshes.expert is not None and strategy.ep > 1 else None
    ep_rank = 0 if ep_group is None else torch.distributed.get_rank(ep_group)
    chunk = on_meta(plan.problem.model, part, ep=strategy.ep, ep_rank=ep_rank, rows_multiple=strategy.tp)
    if ep_group is not None:
        spread_experts(chunk, ep_group)
    if strategy.tp > 1:
        split_chunk(chunk, meshes.dense["tp"], sequence_parallel=strategy.sp)
    return chunk
