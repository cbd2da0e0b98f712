"""Asks the native trainer and torch about a plan: rank 0 of a fake process group at full world size, on meta tensors.

Stages: ``plan`` (the trainer's own reading), ``world`` (ranks started), ``rules``, ``groups`` (every mesh),
``model`` (one layer of each kind, cut over tp and ep and wrapped by FSDP2), ``schedule`` (torch's class over the chunks
of this rank).  Each request runs in a fork: DTensor caches the groups of a mesh, and the next plan has others.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from planner.backends.checking.answers import feigned_ranks, in_child, serve_answers, verdict, words
from planner.backends.native.trainer.assemble import split_part
from planner.backends.native.trainer.data_parallel import precision_policy, shard_chunk
from planner.backends.native.trainer.loss import TokenLoss
from planner.backends.native.trainer.mesh import Meshes, build_meshes
from planner.backends.native.trainer.model import DecoderChunk
from planner.backends.native.trainer.pipeline import build_pipeline, hidden_shape
from planner.backends.native.trainer.plan_file import check_world_size, load_plan, refuse_unrunnable
from planner.backends.native.trainer.settings import TrainSettings
from planner.errors import MeshwrightError
from planner.plan.plan import ChunkPlan, Plan


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """All stages."""
    yield "plan"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        path.write_text(request["plan"], encoding="utf-8")
        plan = load_plan(path)
    yield "world"
    check_world_size(plan, request["world_size"])
    yield "rules"
    refuse_unrunnable(plan)
    yield "groups"
    with feigned_ranks(request["world_size"]):
        meshes = build_meshes(plan.chosen(), "cpu")
        yield "model"
        facts["layer_kinds"] = wrap_one_of_each(plan, meshes)
        yield "schedule"
        facts["chunks_of_rank_0"] = build_schedule(plan, meshes)


def wrap_one_of_each(plan: Plan, meshes: Meshes) -> int:
    """Cut and wrap one layer of every kind, with the embedding and the head; returns how many kinds there are."""
    first_of_kind: dict[int, int] = {}
    layer = 0
    for run in plan.problem.model.layer_runs:
        first_of_kind.setdefault(run.kind, layer)
        layer += run.count
    for number, first in enumerate(first_of_kind.values()):
        _wrapped(plan, meshes, _part(0, first, ends=number == 0))
    return len(first_of_kind)


def build_schedule(plan: Plan, meshes: Meshes) -> int:
    """Build torch's schedule over chunks of one layer; returns how many chunks rank 0 holds."""
    strategy, workload = plan.chosen(), plan.problem.workload
    if strategy.pp == 1:
        return 1
    parts = plan.stages[meshes.here.pp].chunks
    chunks = [(part.chunk, _wrapped(plan, meshes, _part(part.chunk, part.first_layer))) for part in parts]
    tensor_group = meshes.dense["tp"].get_group() if strategy.tp > 1 else None
    build_pipeline(
        chunks,
        strategy,
        TokenLoss(plan.problem.model.vocab_size, strategy.num_microbatches, tensor_group),
        hidden=hidden_shape(strategy, workload.sequence_length, plan.problem.model.hidden_size),
        dtype=torch.bfloat16,
        device=torch.device("cpu"),
        group=meshes.dense["pp"].get_group(),
    )
    return len(chunks)


def _part(chunk: int, first_layer: int, *, ends: bool = False) -> ChunkPlan:
    return ChunkPlan(chunk=chunk, first_layer=first_layer, num_layers=1, has_embedding=ends, has_head=ends)


def _wrapped(plan: Plan, meshes: Meshes, part: ChunkPlan) -> DecoderChunk:
    chunk = split_part(plan, part, meshes)
    shard_chunk(chunk, meshes, precision_policy(plan.problem.workload, TrainSettings()))
    return chunk


def said(error: Exception) -> str:
    """The trainer's own words, or the kind of torch's error with them."""
    return error.what if isinstance(error, MeshwrightError) else words(error)


if __name__ == "__main__":
    serve_answers(lambda request: in_child(lambda: verdict(stages, request, said), "torch"))
