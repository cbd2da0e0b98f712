"""A good plan quickly: from a narrow space, bounded over the whole one.

A scheduler that compares twenty allocations cannot wait for twenty proofs.  The narrow space leaves out what is rarely
worth much or rarely needed (context parallelism, offload, replicated sharding, other axis orders), so it is searched
whole in a fraction of the time.  Micro-batches may have any size: the fastest plan that was found cuts the larger ones
at once where they do not pay, and a back-end may need them (one micro-batch a step, for example).  The bound is that of
the whole declared space: the gap says honestly how much better another plan could be.  Where nothing narrow fits, the
whole space is searched for what time is left.

``closer_plan`` closes that gap as far as its time goes: it searches the whole space below the quick plan's step time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from planner.backends.asked import asked_software, inside, problem_hardware, why_not_these_devices
from planner.backends.backend import Software
from planner.errors import BudgetSpent, NoFeasiblePlan
from planner.plan.plan import Plan, SearchReport
from planner.predict.cost.hardware import Hardware
from planner.question.problem import Constraints, Problem
from planner.search.assemble_plan import assemble_plan
from planner.search.backend_rules import BackEndRules
from planner.search.branch import Search
from planner.search.find import OPTIMAL_GAP
from planner.search.options import Incumbent, SearchOptions
from planner.search.search_result import SearchResult
from planner.search.spelled import as_spelled

LEFT_OUT = ("cp", "activation_offload", "optimizer_offload", "dp_replicate")
HELD: dict[str, Any] = {"axis_order": "tp-cp-ep-dp-pp"}
PROOF = "the best of a narrow space (no cp, no offload, no replicated sharding); the lower bound is of the whole space"
PROOF_OF_ALL = "nothing narrow fits; the whole space was searched as long as time was"


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A back-end that may run the question."""

    software: Software
    problem: Problem
    hardware: Hardware
    bound_s: float
    """No strategy of its whole space is faster."""


def quick_plan(problem: Problem, time_limit_s: float) -> Plan:
    """A good plan on all devices of the problem, with the bound of the whole space.

    Raises NoFeasiblePlan when nothing fits, BudgetSpent when that could not be decided in time.
    """
    end_s = time.monotonic() + time_limit_s
    candidates, refused = list[_Candidate](), list[str]()
    for each in asked_software(problem):
        own = inside(problem, each)
        wrong = why_not_these_devices(each, problem) or "; ".join(BackEndRules(own).always())
        if wrong:
            refused.append(f"{each.name}: {wrong}")
        else:
            hardware = problem_hardware(own)
            candidates.append(_Candidate(each, own, hardware, _bound_s(own, hardware)))
    if not candidates:
        raise NoFeasiblePlan(
            f"no back-end can run a plan of this problem, whatever the strategy: {'; '.join(refused)}",
            binding="rules of the back-ends",
            relaxations=("choose another --backend",),
        )
    candidates.sort(key=lambda each: each.bound_s)
    bound_s, undecided = candidates[0].bound_s, False
    for narrow, proof in ((True, PROOF), (False, PROOF_OF_ALL)):
        found, results = _fastest(candidates, end_s, narrow)
        if found is not None:
            return _plan(problem, *found, bound_s, proof)
        undecided = not all(each.complete for each in results)
    if undecided:
        raise BudgetSpent("whether it fits was not decided in time", hint="allow more time, or ask for a plan")
    raise NoFeasiblePlan(
        f"no strategy fits on {problem.cluster.num_devices:,} devices",
        binding="device memory",
        relaxations=("offer more devices or more memory",),
    )


def _fastest(
    candidates: Sequence[_Candidate], end_s: float, narrow: bool
) -> tuple[tuple[_Candidate, SearchResult] | None, list[SearchResult]]:
    """The fastest plan of all back-ends, and what each search gave; a slower back-end is left at once."""
    incumbent, found, results = Incumbent(), None, []
    for each in candidates:
        own = each.problem
        if narrow:
            own = own.model_copy(update={"constraints": narrowed(own.constraints)})
        if each.bound_s >= incumbent.step_time_s:
            break
        left_s = max(end_s - time.monotonic(), 0.01)
        search = Search(own, each.hardware, SearchOptions(top_k=0, time_limit_s=left_s))
        search.incumbent, search.near = incumbent, 1.0
        results.append(search.run())
        best = results[-1].best
        if best is not None and best.step_time_s <= incumbent.step_time_s:
            found = each, results[-1]
    return found, results


def narrowed(constraints: Constraints) -> Constraints:
    """The constraints with more left out; what was pinned stays as it was said."""
    pins = {**HELD, **constraints.pins}
    forbids = {*constraints.forbids, *(name for name in LEFT_OUT if name not in constraints.pins)}
    return constraints.model_copy(update={"pins": pins, "forbids": tuple(sorted(forbids))})


def _bound_s(problem: Problem, hardware: Hardware) -> float:
    """The smallest bound over everything that the whole space shares; infinity where nothing can fit."""
    return Search(problem, hardware, SearchOptions(top_k=0)).waves.least_bound_s


def _plan(problem: Problem, found: _Candidate, result: SearchResult, bound_s: float, proof: str) -> Plan:
    best = result.best
    assert best is not None
    bound_s = min(bound_s, best.step_time_s)
    proved = bound_s >= best.step_time_s * (1 - OPTIMAL_GAP)
    report = SearchReport(
        enumerated=result.enumerated,
        pruned={reason: count for reason, count in sorted(result.pruned.items()) if count},
        bounded=result.bounded,
        evaluated=result.evaluated,
        proof=proof,
    )
    return assemble_plan(
        problem,
        found.hardware,
        as_spelled(found.problem, found.hardware, best),
        software=found.software,
        status="optimal" if proved else "feasible",
        lower_bound_s=best.step_time_s if proved else bound_s,
        report=report,
    )
