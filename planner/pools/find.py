"""What is the best pipeline over several pools?  The door of the search.

For every number of samples b that divides the batch, ``MicrobatchSpace`` holds all stages and a bound.  In the order
of the bounds, each is first solved without memory (``_relaxed``), which gives a sharper bound, and in the order of
those solved exactly (``solver.stage_assignment``) for the least bound of a step (``step_objective``), with the best
step so far as cutoff.  Every assignment that was the best one on the way is simulated (``step``): the fastest of them
is the answer, and the least bound is what it is proved against.  Tables reach a little above the peak that memory
allows at best; the bound then says up to which peak a step could still be faster, and if that is further, they are made
again up to there.  What remains has a bound that is not below the answer.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.errors import BudgetSpent, NoFeasiblePlan
from planner.pools.microbatch_space import MicrobatchSpace, StageTables
from planner.pools.problem import PoolsProblem
from planner.pools.stage_tables import span_classes
from planner.pools.step import CostedStage, costed_stages, pipeline_s
from planner.pools.sub_mesh import PoolHardware, pool_hardware
from planner.search.space import divisors
from solver.stage_assignment.assign import assign, relaxed_value
from solver.stage_assignment.tables import Assignment, AssignmentTables, AssignmentValue, StageChoice

FIRST_PEAKS = 1.15
"""The first tables reach this many peaks of the best assignment without memory."""
RELAXED_PEAKS = 1.5
"""The bound without memory looks at stages up to this many lowest peaks; beyond, a simpler bound holds."""


@dataclass(frozen=True, slots=True)
class SimulatedStages:
    """An assignment, what its indices mean, and how long its step is."""

    tables: StageTables
    stages: tuple[StageChoice, ...]
    costed: tuple[CostedStage, ...]
    pipeline_s: float
    late_s: float

    @property
    def step_s(self) -> float:
        """Pipeline and the late work that shows."""
        return self.pipeline_s + self.late_s


@dataclass(slots=True)
class PoolsAnswer:
    """The best assignment found, the proof, and how much was looked at."""

    space: MicrobatchSpace | None = None
    found: SimulatedStages | None = None
    complete: bool = True
    """Whether time sufficed to look at everything."""
    lower_bound_s: float = math.inf
    choices: int = 0
    solved: int = 0
    sub_meshes: int = 0
    policies: int = 0
    labels: int = 0
    windows: int = 0

    @property
    def step_time_s(self) -> float:
        """Seconds of the best step; infinite before there is one."""
        return math.inf if self.found is None else self.found.step_s


def find_assignment(problem: PoolsProblem, time_limit_s: float | None = None) -> PoolsAnswer:
    """Search all pools.  Raises NoFeasiblePlan or BudgetSpent when there is no answer, DocumentInvalid for pins."""
    deadline = None if time_limit_s is None else time.monotonic() + time_limit_s
    pools = pool_hardware(problem)
    spans = span_classes(problem.model, problem.model.num_layers)
    spaces = [MicrobatchSpace(problem, pools, samples, spans) for samples in _microbatches(problem)]
    answer = PoolsAnswer(choices=len(spaces))
    queue = [(space.bound_s(), False, space.samples, 0.0, space) for space in spaces if math.isfinite(space.bound_s())]
    heapq.heapify(queue)
    while queue and queue[0][0] < answer.step_time_s:
        bound_s, sharpened, samples, peak_s, space = heapq.heappop(queue)
        if deadline is not None and time.monotonic() > deadline:
            answer.lower_bound_s, answer.complete = min(answer.lower_bound_s, bound_s), False
            break
        if sharpened:
            _solve(space, FIRST_PEAKS * peak_s, bound_s, answer, deadline)
            continue
        sharper_s, peak_s = _relaxed(space)
        heapq.heappush(queue, (max(bound_s, sharper_s), True, samples, peak_s, space))
    answer.lower_bound_s = min(answer.lower_bound_s, answer.step_time_s)
    if answer.found is None:
        raise _nothing_found(problem, pools, answer, deadline)
    return answer


def _microbatches(problem: PoolsProblem) -> list[int]:
    """Numbers of samples at a time."""
    batch, pinned = problem.workload.global_batch_size, problem.pins().get("num_microbatches")
    return [samples for samples in divisors(batch) if pinned is None or batch // samples == pinned]


def _relaxed(space: MicrobatchSpace) -> tuple[float, float]:
    """A bound on every step of a space without memory, and the peak where it lies."""
    reach_s = RELAXED_PEAKS * space.lowest_s
    beyond_s = space.bound_s(math.nextafter(reach_s, math.inf))
    tables = space.relaxed(reach_s)
    value_s, peak_s = (math.inf, math.inf) if tables is None else relaxed_value(tables, space.objective)
    return min(value_s, beyond_s), min(peak_s, reach_s)


def _solve(space: MicrobatchSpace, reach_s: float, bound_s: float, answer: PoolsAnswer, deadline: float | None) -> None:
    """Improve the answer with one number of samples, or prove that it cannot."""
    answer.solved += 1
    if math.isfinite(answer.step_time_s):
        reach_s = space.peak_below_s(answer.step_time_s)
    looked_at_s = 0.0
    while reach_s > looked_at_s:
        _assign(space, reach_s, answer, deadline)
        looked_at_s = reach_s
        if deadline is not None and time.monotonic() > deadline:
            answer.lower_bound_s, answer.complete = min(answer.lower_bound_s, bound_s), False
            return
        if math.isfinite(answer.step_time_s):
            reach_s = max(looked_at_s, space.peak_below_s(answer.step_time_s))
        elif looked_at_s < space.largest_s:
            # Nothing fits yet: memory may need stages that are much slower.
            reach_s = 2.0 * looked_at_s


def _assign(space: MicrobatchSpace, reach_s: float, answer: PoolsAnswer, deadline: float | None) -> None:
    """Solve the stages up to one peak."""
    stages = space.tables(reach_s)
    if stages is None:
        return
    answer.sub_meshes += len(stages.meshes)
    answer.policies += sum(len(mesh.rows) for mesh in stages.meshes)
    microbatches = space.num_microbatches

    def simulate(choices: Sequence[StageChoice], value: AssignmentValue) -> None:
        costed = costed_stages(stages, choices)
        found = SimulatedStages(stages, tuple(choices), costed, pipeline_s(costed, microbatches), value.late)
        if found.step_s < answer.step_time_s:
            answer.space, answer.found = space, found

    def solved(tables: AssignmentTables) -> Assignment | None:
        found = assign(
            tables,
            space.objective,
            cutoff=answer.step_time_s,
            consecutive=space.problem.consecutive,
            time_limit_s=None if deadline is None else max(deadline - time.monotonic(), 0.01),
            told=simulate,
        )
        if found is not None:
            answer.labels += found.labels
            answer.windows += found.windows
        return found

    # Where stages count with all their time, what comes out is nearer to a fast step; where they count as the bound
    # lets them, it is the bound.
    solved(replace(stages.tables, pace_share=None))
    bounded = solved(stages.tables)
    if bounded is not None:
        answer.lower_bound_s = min(answer.lower_bound_s, bounded.bound)


def _nothing_found(
    problem: PoolsProblem, pools: tuple[PoolHardware, ...], answer: PoolsAnswer, deadline: float | None
) -> Exception:
    if deadline is not None and time.monotonic() > deadline:
        return BudgetSpent(
            "no plan over the pools was found in the time given", where="--time-limit", hint="allow more time"
        )
    sizes = ", ".join(f"{pool.hardware.num_devices} x {pool.hardware.pool.device.name}" for pool in pools)
    return NoFeasiblePlan(
        f"{problem.model.name} fits on {sizes} in no way: every stage that could hold its share needs more memory",
        binding="device memory of the stages",
        relaxations=("add devices to a pool", "allow recompute and offload (drop the pins that forbid them)"),
        pruned={"micro-batches that could not be filled or did not fit": answer.choices},
    )
