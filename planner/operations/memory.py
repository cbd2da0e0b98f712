"""What fills each stage's memory."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from planner.operations.operation import Operation
from planner.operations.plan_reference import PlanRequest
from planner.plan.plan import Plan
from profiles.document import Document


class MemoryStage(Document):
    """What fills one pipeline stage's worst device."""

    stage: int
    layers: int
    peak_memory_bytes: dict[str, int]
    spare_bytes: int
    recompute: dict[str, Any]
    offload: dict[str, Any]


class MemoryView(Document):
    """Memory of every stage against the limit."""

    plan_id: str
    device_memory_bytes: int
    limit_bytes: int = Field(description="peak that was allowed: constraints.fits, and a margin that was given")
    fits_probability: float | None = Field(default=None, description="of the plan; null = of an earlier version")
    worst_stage: int
    stages: tuple[MemoryStage, ...]


def memory_view(plan: Plan) -> MemoryView:
    """The memory of a plan's stages."""
    limit = plan.memory_limit_bytes
    stages = tuple(
        MemoryStage(
            stage=stage.stage,
            layers=stage.layers,
            peak_memory_bytes=stage.peak_memory_bytes.model_dump(),
            spare_bytes=limit - stage.peak_memory_bytes.total,
            recompute=stage.recompute.model_dump(mode="json"),
            offload=stage.offload.model_dump(mode="json"),
        )
        for stage in plan.stages
    )
    return MemoryView(
        plan_id=plan.plan_id,
        device_memory_bytes=plan.problem.cluster.pools[0].device.memory_bytes,
        limit_bytes=limit,
        fits_probability=plan.fits_probability,
        worst_stage=max(stages, key=lambda stage: stage.peak_memory_bytes["total"]).stage,
        stages=stages,
    )


MEMORY = Operation(
    name="get_memory",
    summary="What fills each stage's memory",
    description="Peak memory of the worst rank of every stage, itemised, against the limit.",
    request=PlanRequest,
    answer=MemoryView,
    work=lambda session, asked: memory_view(session.plan(asked.plan)),
    path="/v1/plans/{plan}/memory",
)
