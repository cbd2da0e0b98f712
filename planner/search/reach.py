"""Whether some plan on these devices takes no longer than a target: a search that ends at the first one."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from planner.backends.asked import asked_software, inside
from planner.predict.cost.hardware import problem_hardware
from planner.predict.training_flops import step_flops
from planner.question.problem import Problem
from planner.search.backend_rules import why_none_there
from planner.search.branch import Search
from planner.search.options import Incumbent, SearchOptions, SearchProgress


class _Reached(Exception):
    """Ends a search at its first plan."""


def fewest_nodes(problem: Problem, target_s: float) -> int:
    """Nodes below which no plan can reach the target: ``flops / (devices * peak) <= target``, at least one."""
    pool, flops = problem.cluster.pools[0], step_flops(problem.model, problem.workload)
    peak = max(pool.device.peak_flops_per_s.values())
    return max(1, math.ceil(flops / (target_s * peak * pool.devices_per_node) * (1 - 1e-9)))


def reaches(problem: Problem, target_s: float, options: SearchOptions) -> bool | None:
    """Whether some back-end that was asked has such a plan on all devices; None where the time was too short to say.

    Strategies whose bound is above the target are left out, so that most device counts are decided by their bounds.
    """
    end_s = None if options.time_limit_s is None else time.monotonic() + options.time_limit_s
    just_above_s, undecided = math.nextafter(target_s, math.inf), False

    def found(snapshot: SearchProgress) -> None:
        if snapshot.phase == "improved":
            raise _Reached

    for wanted in asked_software(problem):
        own = inside(problem, wanted)
        if why_none_there(wanted, problem):
            continue
        left_s = None if end_s is None else max(0.0, end_s - time.monotonic())
        quick = replace(options, top_k=0, time_limit_s=left_s)
        search = Search(own, problem_hardware(own, wanted.release.physics), quick, found)
        # Another plan just above the target stands in for the one to beat: nothing slower is looked at.
        search.incumbent, search.near = Incumbent(just_above_s), 1.0
        if search.waves.least_bound_s > target_s:
            continue
        try:
            undecided |= not search.run(just_above_s).closed
        except _Reached:
            return True
    return None if undecided else False
