"""The layout: what sits on which stage, and what it recomputes and offloads, beside the strategy.

``read`` of every back-end returns a ``Strategy`` and this layout; both must equal those of the emitted plan.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.plan.plan import ChunkPlan, Plan, StageOffload, StageRecompute


@dataclass(frozen=True, slots=True)
class StageLayout:
    """One pipeline rank without any predicted number."""

    stage: int
    chunks: tuple[ChunkPlan, ...]
    recompute: StageRecompute
    offload: StageOffload


Layout = tuple[StageLayout, ...]
"""One entry for each pipeline rank, in order."""


def layout_of(plan: Plan) -> Layout:
    """Strip the numbers off the stages of a plan, recompute in its canonical form."""
    return tuple(
        StageLayout(stage.stage, stage.chunks, canonical_recompute(stage.recompute), stage.offload)
        for stage in plan.stages
    )


def canonical_recompute(recompute: StageRecompute) -> StageRecompute:
    """One form for one meaning: a stage that recomputes no layer has policy ``none`` and nothing else."""
    if recompute.policy == "none" or not any(recompute.num_layers_per_chunk):
        return StageRecompute(policy="none")
    modules = recompute.modules if recompute.policy == "selective" else ()
    return recompute.model_copy(update={"modules": modules})


def chunks_in_model_order(layout: Layout) -> tuple[ChunkPlan, ...]:
    """All model chunks, chunk 0 (embedding) first."""
    return tuple(sorted((chunk for stage in layout for chunk in stage.chunks), key=lambda chunk: chunk.chunk))
