"""From what a person names to a plan: trace once, solve for one mesh or for all of them, keep the best.

With ``auto`` every factorisation of the devices into up to three axes is solved.  The best plan is proved best among
the meshes if its cost is not above the smallest bound of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.errors import NoFeasiblePlan
from planner.shard.assemble_sharding_plan import assemble
from planner.shard.mesh_shapes import MeshShape
from planner.shard.prove import ProvedStep, Solve, StepQuestion, prove
from planner.shard.sharding_plan import ShardingPlan, TracedInput, TracedModule

if TYPE_CHECKING:
    from planner.shard.torch_graph.module_source import ModuleSource


@dataclass(frozen=True)
class MeshOutcome:
    """What one mesh gave: a proved step, or why there is none."""

    mesh: MeshShape
    proved: ProvedStep | None
    refusal: str | None


def best_mesh(
    question: StepQuestion, meshes: Sequence[MeshShape], solve: Solve, time_limit_s: float
) -> tuple[ProvedStep, tuple[MeshOutcome, ...]]:
    """Solve every mesh with an equal share of the time that is left; the fastest plan wins."""
    outcomes: list[MeshOutcome] = []
    for place, mesh in enumerate(meshes):
        share = time_limit_s / (len(meshes) - place)
        try:
            outcomes.append(MeshOutcome(mesh, prove(replace(question, mesh=mesh), solve, share), None))
        except NoFeasiblePlan as error:
            if len(meshes) == 1:
                raise
            outcomes.append(MeshOutcome(mesh, None, error.what))
    found = [each.proved for each in outcomes if each.proved is not None]
    if not found:
        raise NoFeasiblePlan(
            f"none of {len(meshes)} meshes has a placement that fits: {outcomes[0].refusal}",
            binding="memory",
            relaxations=("use more devices", "lower --memory-margin"),
        )
    return min(found, key=lambda each: each.bill.total_ps), tuple(outcomes)


def traced_module(source: ModuleSource, graph_hash: str) -> TracedModule:
    """What was traced, for the plan."""
    return TracedModule(
        module=source.reference,
        arguments=dict(source.arguments),
        inputs=tuple(
            TracedInput(
                name=name,
                dtype=str(each.dtype).removeprefix("torch."),
                shape=tuple(int(size) for size in each.shape),
                gradient=bool(each.requires_grad),
            )
            for name, each in zip(source.input_names, source.inputs, strict=True)
        ),
        dtype=str(source.dtype).removeprefix("torch."),
        graph_hash=graph_hash,
    )


def sharding_plan(proved: ProvedStep, source: ModuleSource, cluster: str) -> ShardingPlan:
    """The document."""
    return assemble(proved, traced_module(source, proved.question.graph.graph_hash), cluster)
