"""The layers of the small model on stages: uneven where the plan is uneven, recomputed where it recomputes."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from planner.backends.emission.layout import chunks_in_model_order, layout_of
from planner.plan.plan import ChunkPlan, Plan, StageOffload, StagePlan, StageRecompute
from planner.strategy.strategy import Strategy


@dataclass(frozen=True, slots=True)
class ChunkShare:
    """One chunk: how many layers it holds and how many of them it recomputes."""

    layers: int
    recomputed: int


def tiny_shares(plan: Plan, strategy: Strategy) -> tuple[ChunkShare, ...]:
    """Shares of the chunks of ``strategy`` along the model, taken from the plan's chunks at the same places.

    A chunk with fewer layers than another keeps fewer (one against two), and a chunk that recomputes a part of its
    layers gets a second one, so that it still does.  Chunks without layers stay empty.
    """
    whole = whole_shares(plan)
    last = max(strategy.num_chunks - 1, 1)
    picked = [whole[round(place * (len(whole) - 1) / last)] for place in range(strategy.num_chunks)]
    if strategy.num_chunks == 1:
        picked = [whole[0]]
    fewest = min((share.layers for share in picked if share.layers), default=1)
    partial = any(0 < share.recomputed < share.layers for share in picked)
    # Every kind of layer needs a place.
    kinds, filled = len(set(plan.problem.model.layer_kind_sequence())), sum(share.layers > 0 for share in picked)
    least = max(2 if partial else 1, ceil(kinds / max(filled, 1)))
    return tuple(_small(share, fewest, least) for share in picked)


def whole_shares(plan: Plan) -> tuple[ChunkShare, ...]:
    """Shares of the plan's own chunks along the model, with all of their layers."""
    recomputed = dict[int, int]()
    for stage in plan.stages:
        counts = stage.recompute.num_layers_per_chunk
        recomputed |= {chunk.chunk: count for chunk, count in zip(stage.chunks, counts, strict=False)}
    return tuple(
        ChunkShare(chunk.num_layers, min(recomputed.get(chunk.chunk, 0), chunk.num_layers))
        for chunk in chunks_in_model_order(layout_of(plan))
    )


def _small(share: ChunkShare, fewest: int, least: int) -> ChunkShare:
    if share.layers == 0:
        return share
    layers = least + (share.layers > fewest)
    if share.recomputed in {0, share.layers}:
        return ChunkShare(layers, layers if share.recomputed else 0)
    return ChunkShare(layers, 1)


def tiny_stages(plan: Plan, strategy: Strategy, shares: tuple[ChunkShare, ...]) -> tuple[StagePlan, ...]:
    """Stages of the small plan; their predicted numbers stay those of the stage that each stands for."""
    last = max(strategy.pp - 1, 1)
    return tuple(
        _stage(plan.stages[round(stage * (len(plan.stages) - 1) / last)], plan, strategy, shares, stage)
        for stage in range(strategy.pp)
    )


def _stage(like: StagePlan, plan: Plan, strategy: Strategy, shares: tuple[ChunkShare, ...], stage: int) -> StagePlan:
    mine = [chunk for chunk in range(strategy.num_chunks) if strategy.chunk_stage(chunk) == stage]
    mtp, head = plan.problem.model.mtp, strategy.num_chunks - 1
    chunks = tuple(
        ChunkPlan(
            chunk=chunk,
            first_layer=sum(share.layers for share in shares[:chunk]),
            num_layers=shares[chunk].layers,
            has_embedding=chunk == 0,
            has_head=chunk == head,
            num_mtp_layers=int(mtp is not None and chunk == head),
        )
        for chunk in mine
    )
    counts = tuple(shares[chunk].recomputed for chunk in mine)
    policy = like.recompute.policy
    recompute = StageRecompute(
        policy=policy, modules=like.recompute.modules, num_layers_per_chunk=() if policy == "none" else counts
    )
    return like.model_copy(
        update={
            "stage": stage,
            "layers": sum(chunk.num_layers for chunk in chunks),
            "chunks": chunks,
            "recompute": recompute,
            "offload": StageOffload(),
        }
    )
