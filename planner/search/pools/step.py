"""The step time of an assignment: its stages costed as those of a plan on one pool, and run under 1F1B.

step = makespan(1F1B; stage times, hops)                     ``planner.predict.schedule.run``, simulated
     + max_i ( late_i - h sum of the stages before i )+      ``step_objective``
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.predict.candidate import StageBill
from planner.predict.schedule.paths import ChunkTimes
from planner.predict.schedule.run import run_pipeline
from planner.search.evaluate import stage_bill
from planner.search.pools.microbatch_space import StageTables
from planner.search.pools.sub_mesh import SubMesh
from planner.search.row_context import row_context
from solver.stage_assignment.tables import StageChoice


@dataclass(frozen=True, slots=True)
class CostedStage:
    """A stage of an assignment: its sub-mesh, policy row, relieved layers, bill, and the hop to the next one."""

    mesh: SubMesh
    row: int
    relieved: int
    bill: StageBill
    hop_s: float


@dataclass(frozen=True, slots=True)
class SimulatedStages:
    """An assignment, what its indices mean, and how long its step is."""

    tables: StageTables
    stages: tuple[StageChoice, ...]
    costed: tuple[CostedStage, ...]
    pipeline_s: float
    late_s: float

    @property
    def num_reliefs(self) -> int:
        """Kinds of relief that its stages use, each for at least one layer."""
        return len({int(stage.mesh.rows.relief[stage.row]) for stage in self.costed if stage.relieved})

    @property
    def step_s(self) -> float:
        """Pipeline and the late work that shows."""
        return self.pipeline_s + self.late_s


def simulated_stages(
    tables: StageTables, stages: tuple[StageChoice, ...], num_microbatches: int, late_s: float
) -> SimulatedStages:
    """Run an assignment; ``late_s`` is the late work that shows."""
    costed = costed_stages(tables, stages)
    return SimulatedStages(tables, stages, costed, pipeline_s(costed, num_microbatches), late_s)


def costed_stages(tables: StageTables, stages: Sequence[StageChoice]) -> tuple[CostedStage, ...]:
    """Every stage as the engine of plans on one pool sees it."""
    found = []
    for index, choice in enumerate(stages):
        at = choice.option, choice.policy, len(stages) - index, choice.start, choice.count
        mesh, row, relieved = tables.mesh_entry(*at)
        bill = _bill(mesh, row, len(stages), index, choice, relieved)
        following = stages[index + 1].option if index + 1 < len(stages) else None
        hop_s = 0.0 if following is None else float(tables.tables.hop[choice.option, following])
        found.append(CostedStage(mesh, row, relieved, bill, hop_s))
    return tuple(found)


def pipeline_s(stages: Sequence[CostedStage], num_microbatches: int, *, hops: bool = True) -> float:
    """Seconds from the first forward to the last backward; without ``hops`` as if links took no time."""
    forward_s, backward_s = (
        np.array([getattr(stage.bill, name) for stage in stages]) for name in ("forward_s", "backward_s")
    )
    hop_s = np.array([stage.hop_s for stage in stages[:-1]]) if hops else 0.0
    times = ChunkTimes(forward_s, backward_s, np.zeros(len(stages)))
    return run_pipeline("1f1b", (len(stages), 1, num_microbatches, 0), times, hop_s).makespan_s


def _bill(mesh: SubMesh, row: int, num_stages: int, index: int, choice: StageChoice, relieved: int) -> StageBill:
    """The stage as stage ``index`` of ``num_stages`` of its strategy."""
    rows = replace(mesh.rows.take(np.array([row])), pp=np.array([num_stages]))
    keyed = mesh.costs.keyed(rows)
    context = row_context(mesh.costs, keyed[0], rows, mesh.costs.rows(rows, keyed))
    span = (choice.start, choice.start + choice.count)
    return stage_bill(context, index, [span], [(choice.start, choice.start + relieved)])
