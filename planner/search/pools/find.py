"""The search for the best pipeline over several pools: its entry point.

For every number of samples b that divides the batch, ``MicrobatchSpace`` holds all stages and a bound.

First look     In the order of the bounds, each is solved (``solver.stage_assignment``) as if every stage counted with
               all its time: that is no bound, but what comes out is near to a fast step.  Every assignment that was the
               best one on the way is simulated (``step``): the fastest of them is the answer.  Tables reach a little
               above the lowest peak; once there is an answer, the bound says up to which peak a step could be faster.
Proof          Each is solved again for the least bound of a step (``step_objective``), those that took most labels in
               the first look first.  Nothing is below a cutoff when no assignment has a bound below it, and that is the
               quicker to see the lower the cutoff: it climbs in steps (``RUNGS``) towards the fastest step, or towards
               what another number of samples could not be proved above.  The labels of the proof are limited, not its
               time, so that every machine gives the same answer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from planner.search.pools.alike import alike_spaces, demand_trainable, with_one_relief
from planner.search.pools.microbatch_space import MicrobatchSpace, StageTables
from planner.search.pools.neighbours import fastest_neighbour
from planner.search.pools.problem import PoolsProblem
from planner.search.pools.stage_tables import span_classes
from planner.search.pools.step import SimulatedStages, simulated_stages
from planner.search.pools.sub_mesh import PoolHardware, pool_hardware
from planner.search.pools.why_none import microbatch_samples, nothing_found
from solver.stage_assignment.assign import relaxed_value, search_below
from solver.stage_assignment.tables import AssignmentTables, AssignmentValue, Searched, StageChoice

FIRST_PEAKS = 1.15
"""The first tables reach this many lowest peaks."""
NEAR = 1.02
"""Assignments up to this much slower than the answer are looked around."""
RUNGS = (0.9, 0.925, 0.95, 0.965, 0.98)
"""Parts of the cutoff that a proof tries on the way up to it."""
LOOK_LIMIT = 4_000_000
"""Labels that the first look at one number of samples may grow."""
PROOF_LIMIT = 8_000_000
"""Labels that the proof of one number of samples may grow."""


@dataclass(slots=True)
class PoolsAnswer:
    """The best assignment found, the proof, and how much was looked at."""

    space: MicrobatchSpace | None = None
    found: SimulatedStages | None = None
    complete: bool = True
    """Whether time and labels sufficed to look at everything."""
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


@dataclass(slots=True)
class _Choice:
    """One number of samples at a time: what is known of it."""

    space: MicrobatchSpace
    bound_s: float
    reach_s: float = 0.0
    """Stages up to this peak were looked at."""
    grown: int = 0
    """Labels of the first look."""
    found: SimulatedStages | None = None
    """Its fastest step so far."""
    mixed_s: float = math.inf
    """The fastest step whose stages relieve memory in unlike ways, where all must do it alike."""
    parts: list[_Choice] = field(default_factory=list)
    """The choice again with one kind of relief each, where it had to be looked at."""

    def divided(self) -> list[_Choice]:
        """The choice for every kind of relief; no part is faster than the whole."""
        if not self.parts:
            self.parts = [_Choice(each, self.bound_s) for each in with_one_relief(self.space)]
        return self.parts


def find_assignment(problem: PoolsProblem, time_limit_s: float | None = None) -> PoolsAnswer:
    """Search all pools.  Raises NoFeasiblePlan or BudgetSpent when there is no answer, DocumentInvalid for pins."""
    deadline = None if time_limit_s is None else time.monotonic() + time_limit_s
    pools = pool_hardware(problem)
    choices = _choices(problem, pools)
    answer = PoolsAnswer(choices=len(choices))
    _look_at_all(choices, answer, deadline)
    unlike = sorted((each for each in choices if each.mixed_s < answer.step_time_s), key=lambda each: each.mixed_s)
    for choice in unlike:
        if choice.mixed_s < answer.step_time_s:
            _look_at_all(choice.divided(), answer, deadline)
    if answer.found is None:
        raise nothing_found(problem, pools, answer.choices, late=_late(deadline))
    for choice in choices:
        for each in (choice, *choice.parts):
            _polish(each, answer)
    _prove(choices, answer, deadline)
    return answer


def _choices(problem: PoolsProblem, pools: tuple[PoolHardware, ...]) -> list[_Choice]:
    """Every number of samples at a time; in a back-end with every sharding that all stages may have."""
    spans = span_classes(problem.model, problem.model.num_layers)
    if not problem.alike:
        spaces = [MicrobatchSpace(problem, pools, samples, spans) for samples in microbatch_samples(problem)]
        found = [_Choice(space, space.bound_s()) for space in spaces]
        return [choice for choice in found if math.isfinite(choice.bound_s)]
    demand_trainable(problem, pools)
    found = []
    for samples in microbatch_samples(problem):
        for space in alike_spaces(problem, pools, samples, spans):
            bound_s = space.bound_s()
            if math.isfinite(bound_s):
                found.append(_Choice(space, bound_s))
    return found


def _late(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline


def _look_at_all(choices: Sequence[_Choice], answer: PoolsAnswer, deadline: float | None) -> None:
    for choice in sorted(choices, key=lambda each: (each.bound_s, each.space.samples)):
        if choice.bound_s < answer.step_time_s and not _late(deadline):
            _look(choice, answer, deadline)


def _look(choice: _Choice, answer: PoolsAnswer, deadline: float | None) -> None:
    """Improve the answer with one number of samples: stages count with all their time."""
    answer.solved += 1
    space, found = choice.space, math.isfinite(answer.step_time_s)
    reach_s = space.peak_below_s(answer.step_time_s) if found else FIRST_PEAKS * space.lowest_s
    while reach_s > choice.reach_s and not _late(deadline):
        choice.reach_s = reach_s
        stages = space.tables(reach_s, answer.step_time_s)
        if stages is not None:
            answer.sub_meshes += len(stages.meshes)
            answer.policies += sum(len(mesh.rows) for mesh in stages.meshes)
            plain = replace(stages.tables, pace_share=None, pace_mix=None)
            limits = _Limits(answer.step_time_s, LOOK_LIMIT, deadline, dives=True)
            choice.grown += _searched(space, plain, limits, answer, _simulate(choice, stages, answer)).grown
        if math.isfinite(answer.step_time_s):
            reach_s = space.peak_below_s(answer.step_time_s)
        elif math.isinf(choice.mixed_s) and reach_s < space.largest_s:
            # Nothing fits yet: memory may need stages that are much slower.
            reach_s = 2.0 * reach_s


def _prove(choices: Sequence[_Choice], answer: PoolsAnswer, deadline: float | None) -> None:
    """Raise the bounds of all numbers of samples towards the answer, and improve it where that finds a faster step."""
    goal_s = math.inf
    for choice in sorted(choices, key=lambda each: (-each.grown, each.bound_s, each.space.samples)):
        goal_s = min(goal_s, answer.step_time_s)
        if choice.bound_s < goal_s:
            _raise_bound(choice, goal_s, answer, deadline)
        if choice.bound_s < goal_s and choice.mixed_s < goal_s:
            # What is left below the goal may relieve memory in unlike ways.
            for part in choice.divided():
                if part.bound_s < goal_s:
                    _raise_bound(part, goal_s, answer, deadline)
            choice.bound_s = max(choice.bound_s, min(part.bound_s for part in choice.parts))
        goal_s = min(goal_s, choice.bound_s)
    answer.lower_bound_s = min(goal_s, answer.step_time_s)


def _raise_bound(choice: _Choice, goal_s: float, answer: PoolsAnswer, deadline: float | None) -> None:
    """Prove that no assignment of one number of samples has a step below ``goal_s``, or how far that goes."""
    space = choice.space
    if _late(deadline):
        answer.complete = False
        return
    # What is not in the tables is no faster than the cutoff.
    stages = space.tables(space.peak_below_s(goal_s), goal_s)
    if stages is None:
        choice.bound_s = goal_s
        return
    simulate = _simulate(choice, stages, answer)
    choice.bound_s = max(choice.bound_s, min(relaxed_value(stages.tables, space.objective)[0], goal_s))
    left = PROOF_LIMIT
    for part in (*RUNGS, 1.0):
        cutoff_s = part * goal_s
        if cutoff_s <= choice.bound_s:
            continue
        searched = _searched(
            space, stages.tables, _Limits(cutoff_s, left, deadline, dives=part == 1.0), answer, simulate
        )
        left -= searched.grown
        choice.bound_s = max(choice.bound_s, min(searched.bound, cutoff_s))
        if searched.found is not None or not searched.complete:
            _polish(choice, answer)
            answer.complete = answer.complete and searched.complete
            return


@dataclass(frozen=True, slots=True)
class _Limits:
    """Where a search below a cutoff stops."""

    cutoff_s: float
    grown: int
    deadline: float | None
    dives: bool


def _searched(
    space: MicrobatchSpace,
    tables: AssignmentTables,
    limits: _Limits,
    answer: PoolsAnswer,
    told: Callable[[Sequence[StageChoice], AssignmentValue], None],
) -> Searched:
    """One search of the solver, counted."""
    searched = search_below(
        tables,
        space.objective,
        cutoff=limits.cutoff_s,
        consecutive=space.problem.consecutive,
        time_limit_s=None if limits.deadline is None else max(limits.deadline - time.monotonic(), 0.01),
        grown_limit=limits.grown,
        dives=limits.dives,
        told=told,
    )
    answer.labels += searched.labels
    answer.windows += searched.windows
    return searched


def _simulate(
    choice: _Choice, stages: StageTables, answer: PoolsAnswer
) -> Callable[[Sequence[StageChoice], AssignmentValue], None]:
    """What runs an assignment of some tables, and keeps the fastest step of its choice and of all."""
    microbatches = choice.space.num_microbatches

    def simulate(assigned: Sequence[StageChoice], value: AssignmentValue) -> None:
        _keep(choice, simulated_stages(stages, tuple(assigned), microbatches, value.late), answer)

    return simulate


def _keep(choice: _Choice, found: SimulatedStages, answer: PoolsAnswer) -> None:
    if choice.space.alike is not None and found.num_reliefs > 1:
        choice.mixed_s = min(choice.mixed_s, found.step_s)
        return
    if choice.found is None or found.step_s < choice.found.step_s:
        choice.found = found
    if found.step_s < answer.step_time_s:
        answer.space, answer.found = choice.space, found


def _polish(choice: _Choice, answer: PoolsAnswer) -> None:
    """Look around the fastest assignment of a choice, where that could make it the answer."""
    if choice.found is not None and choice.found.step_s <= NEAR * answer.step_time_s:
        space = choice.space
        _keep(choice, fastest_neighbour(choice.found, space.num_microbatches, space.objective), answer)
