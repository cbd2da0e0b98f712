"""Whether a strategy is a point of a back-end's space, and if not, why.

A point is what the search enumerates: legal, within the back-end's columns, refused by none of its rules.  Switches
that the search sets by itself, because the cost model never finds them slower (``planner.search.choices``), may stand
otherwise: such a strategy is told as *covered*, since the space holds one that differs in these alone and is not
slower.  How the layers are dealt is not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.backends.asked import the_software
from planner.backends.rules.legality import RULES, model_shape
from planner.question.problem import Problem
from planner.search.backend_rules import BackEndRules
from planner.search.pin_cause import pin_cause
from planner.search.reliefs import relief_choices
from planner.search.space import Space
from planner.strategy.rows import StrategyRows, relief_of
from planner.strategy.strategy import Strategy

SET_BY_THE_SEARCH = (
    *("overlap_grad_reduce", "overlap_param_gather", "overlap_tp", "overlap_ep", "dispatcher", "fp8_parameters"),
)
PINNED = (
    *("tp", "sp", "cp", "cp_kind", "ep", "etp", "pp", "vpp", "dp_replicate", "dp_shard", "micro_batch_size"),
    *("num_microbatches", "schedule", "microbatch_group_size", "zero_stage", "optimizer_offload", "axis_order"),
)
"""Fields of which the space must have the very value."""


@dataclass(frozen=True, slots=True)
class Membership:
    """``reasons``: what keeps the strategy out; none where it is a point or covered by one."""

    reasons: tuple[str, ...] = ()
    differs_in: tuple[str, ...] = ()
    """Switches that the search sets otherwise; none = the very strategy is a point."""

    @property
    def inside(self) -> bool:
        """Whether the space holds the strategy, or one that differs in switches of the search alone."""
        return not self.reasons


def membership(problem: Problem, strategy: Strategy) -> Membership:
    """Whether the space of the problem's one back-end holds a strategy on all devices of the problem."""
    rules = BackEndRules(problem)
    strategy = rules.spelled(strategy)
    if reasons := (*_illegal(problem, strategy), *rules.always()):
        return Membership(reasons)
    points = _points(problem, strategy)
    spelled = {rules.spelled(point) for point in points if not rules.refuses(point)}
    if not spelled:
        return Membership(_why_not(problem, strategy, rules, points))
    if strategy in spelled:
        return Membership()
    differs = [_differences(strategy, point) for point in spelled]
    return Membership(differs_in=min(differs, key=lambda names: (len(names), names)))


def _illegal(problem: Problem, strategy: Strategy) -> tuple[str, ...]:
    """Rules of legality that the strategy breaks, which hold in every back-end."""
    devices = problem.cluster.num_devices
    if strategy.world_size != devices:
        return (f"its degrees make {strategy.world_size} devices, not {devices}",)
    columns = the_software(problem).release.space.columns
    shape = model_shape(problem.model, problem.workload, devices, empty_ends=columns.empty_ends)
    rows = StrategyRows.of([strategy], (relief_of(strategy),))
    return tuple(rule.message for rule in RULES if bool(rule.broken(rows, shape)[0]))


def _points(problem: Problem, strategy: Strategy) -> list[Strategy]:
    """Points of the space that have the pinned fields and the relief of a strategy."""
    space = Space(_with_pins(problem, strategy), problem.cluster.num_devices)
    cores = space.cores
    if len(cores) == 0 or relief_of(strategy) not in space.reliefs:
        return []
    rows, key = space.layouts(cores, np.arange(len(cores)))
    rows = space.shardings(rows, key)[0] if len(rows) else rows
    relief = np.full(len(rows), space.reliefs.index(relief_of(strategy)))
    rows = replace(rows, relief=relief)
    return [rows.strategy(index, space.reliefs) for index in range(len(rows))]


def _with_pins(problem: Problem, strategy: Strategy) -> Problem:
    pins = {name: getattr(strategy, name) for name in PINNED}
    constraints = problem.constraints.model_copy(update={"pins": pins, "forbids": ()})
    return problem.model_copy(update={"constraints": constraints})


def _why_not(problem: Problem, strategy: Strategy, rules: BackEndRules, points: list[Strategy]) -> tuple[str, ...]:
    """What keeps a legal strategy out: rules of the back-end, its relief, or a value that its columns do not have."""
    nearest = points[0] if points else strategy
    refused = tuple(rules.messages(nearest))
    if refused:
        return refused
    relief = relief_of(strategy)
    if relief not in relief_choices(problem):
        if relief.recompute in the_software(problem).release.space.columns.recompute and not relief.offload:
            return (f"recompute of {' + '.join(relief.modules)} alone frees nothing here, or not more than less of it",)
        return (f"no {'activation offload' if relief.offload else f'{relief.recompute} recompute'}",)
    cause = pin_cause(_with_pins(problem, strategy))
    return (cause.message(problem.cluster.num_devices) if cause else "no point of the space has these values",)


def _differences(strategy: Strategy, point: Strategy) -> tuple[str, ...]:
    return tuple(name for name in SET_BY_THE_SEARCH if getattr(strategy, name) != getattr(point, name))
