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
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
PROOF_OF_WHOLE = "no strategy of the whole space is below the lower bound, which its search showed"
PROOF_IN_TIME = "the whole space was searched as long as time was: the lower bound is that of what was not examined"


@dataclass(slots=True)
class _Candidate:
    """A back-end that may run the question."""

    software: Software
    problem: Problem
    hardware: Hardware
    bound_s: float
    """No strategy of its whole space is faster."""


def quick_plan(problem: Problem, time_limit_s: float, seed: int = 0, stop: Callable[[], bool] | None = None) -> Plan:
    """A good plan on all devices of the problem, with the bound of the whole space.

    ``stop``: asked often; True ends the search as the end of the time does.

    Raises NoFeasiblePlan when nothing fits, BudgetSpent when that could not be decided in time.
    """
    end_s = time.monotonic() + time_limit_s
    candidates = _candidates(problem, stop)
    undecided = False
    for narrow, proof in ((True, PROOF), (False, PROOF_OF_ALL)):
        found, results = _fastest(
            candidates, end_s, Incumbent(), SearchOptions(top_k=0, seed=seed, stop=stop), narrow=narrow
        )
        if found is not None:
            return _plan(problem, *found, min(each.bound_s for each in candidates), proof)
        undecided = not all(each.complete for each in results)
    if undecided:
        raise BudgetSpent("whether it fits was not decided in time", hint="allow more time, or ask for a plan")
    raise NoFeasiblePlan(
        f"no strategy fits on {problem.cluster.num_devices:,} devices",
        binding="device memory",
        relaxations=("offer more devices or more memory",),
    )


def closer_plan(
    plan: Plan, time_limit_s: float, seed: int = 0, stop: Callable[[], bool] | None = None
) -> tuple[Plan, bool]:
    """The fastest plan of the whole space that the time suffices for, and whether more time may find more.

    ``plan``: a quick plan of the question, below whose step time is searched; where nothing is faster it comes back
    with the bound that this shows.
    """
    end_s = time.monotonic() + time_limit_s
    candidates = _candidates(plan.problem, None)
    options = SearchOptions(top_k=0, seed=seed, stop=stop)
    found, results = _fastest(candidates, end_s, Incumbent(plan.step_time_s), options, narrow=False)
    more, bound_s = not all(each.complete for each in results), min(each.bound_s for each in candidates)
    proof = PROOF_IN_TIME if more else PROOF_OF_WHOLE
    if found is not None:
        return _plan(plan.problem, *found, bound_s, proof), more
    bound_s = min(max(bound_s, plan.lower_bound_s or 0.0), plan.step_time_s)
    proved = _is_proved(bound_s, plan.step_time_s)
    bound_s = plan.step_time_s if proved else bound_s
    closer = {
        "status": "optimal" if proved else "feasible",
        "lower_bound_s": bound_s,
        "gap": 1.0 - bound_s / plan.step_time_s,
        "search": _report(results, proof),
    }
    return plan.model_copy(update=closer), more


def _candidates(problem: Problem, stop: Callable[[], bool] | None) -> list[_Candidate]:
    """The back-ends that may run the question, the most promising first.

    Raises NoFeasiblePlan without one, BudgetSpent where it is to stop: bounds of large spaces take seconds.
    """
    candidates, refused = list[_Candidate](), list[str]()
    for each in asked_software(problem):
        if stop is not None and stop():
            raise BudgetSpent("the search was stopped", hint="ask again")
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
    return sorted(candidates, key=lambda each: each.bound_s)


def _fastest(
    candidates: Sequence[_Candidate], end_s: float, incumbent: Incumbent, options: SearchOptions, *, narrow: bool
) -> tuple[tuple[_Candidate, SearchResult] | None, list[SearchResult]]:
    """The fastest plan of all back-ends below the incumbent, and what each search gave.

    A slower back-end is left at once.  A search of the whole space raises the bounds of the candidates.
    """
    found, results = None, []
    for each in candidates:
        own = each.problem
        if narrow:
            own = own.model_copy(update={"constraints": narrowed(own.constraints)})
        if each.bound_s >= incumbent.step_time_s:
            break
        left_s = max(end_s - time.monotonic(), 0.01)
        search = Search(own, each.hardware, replace(options, time_limit_s=left_s))
        search.incumbent, search.near = incumbent, 1.0
        results.append(search.run())
        best = results[-1].best
        if best is not None and best.step_time_s <= incumbent.step_time_s:
            found = each, results[-1]
        if not narrow:
            each.bound_s = max(each.bound_s, results[-1].lower_bound_s)
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
    proved = _is_proved(bound_s, best.step_time_s)
    return assemble_plan(
        problem,
        found.hardware,
        as_spelled(found.problem, found.hardware, best),
        software=found.software,
        status="optimal" if proved else "feasible",
        lower_bound_s=best.step_time_s if proved else bound_s,
        report=_report([result], proof),
    )


def _is_proved(bound_s: float, step_time_s: float) -> bool:
    return bound_s >= step_time_s * (1 - OPTIMAL_GAP)


def _report(results: Sequence[SearchResult], proof: str) -> SearchReport:
    """What the searches looked at."""
    pruned = sum((each.pruned for each in results), Counter[str]())
    return SearchReport(
        enumerated=sum(each.enumerated for each in results),
        pruned=dict(sorted(pruned.items())),
        bounded=sum(each.bounded for each in results),
        evaluated=sum(each.evaluated for each in results),
        proof=proof,
    )
