"""How fast is a job on these devices, nearly, and now?  A good plan from a narrow space, bounded over the whole one.

A scheduler that compares twenty allocations cannot wait for twenty proofs.  The narrow space leaves out what is rarely
worth much or rarely needed (context parallelism, offload, replicated sharding, other axis orders, larger
micro-batches), so it is searched whole in a fraction of the time.  The bound is that of the whole declared space: the
gap says honestly how much better another plan could be.  Where nothing narrow fits, the whole space is searched for
what time is left.
"""

from __future__ import annotations

import math
import time
from typing import Any

from planner.assemble_plan import assemble_plan
from planner.backends.asked import asked_software, inside, problem_hardware, why_not_these_devices
from planner.backends.backend import Software
from planner.cost.hardware import Hardware
from planner.errors import BudgetSpent, NoFeasiblePlan
from planner.plan import Plan, SearchReport
from planner.problem import Constraints, Problem
from planner.search.backend_rules import BackEndRules
from planner.search.branch import Search
from planner.search.find import OPTIMAL_GAP
from planner.search.options import SearchOptions
from planner.search.search_result import SearchResult
from planner.search.spelled import as_spelled

LEFT_OUT = ("cp", "activation_offload", "optimizer_offload", "dp_replicate")
HELD: dict[str, Any] = {"axis_order": "tp-cp-ep-dp-pp", "micro_batch_size": 1}
PROOF = "the best of a narrow space (no cp, no offload, micro-batches of one); the lower bound is of the whole space"


def quick_plan(problem: Problem, time_limit_s: float) -> Plan:
    """A good plan on all devices of the problem, with the bound of the whole space.

    Raises NoFeasiblePlan when nothing fits, BudgetSpent when that could not be decided in time.
    """
    end_s = time.monotonic() + time_limit_s
    candidates, refused = list[tuple[float, Software]](), list[str]()
    for each in asked_software(problem):
        own = inside(problem, each)
        wrong = [why_not_these_devices(each, problem), *BackEndRules(own).always()]
        if any(wrong):
            refused.append(f"{each.name}: {'; '.join(word for word in wrong if word)}")
        else:
            candidates.append((_bound_s(own, problem_hardware(own)), each))
    if not candidates:
        raise NoFeasiblePlan("; ".join(refused), binding="rules of the back-ends")
    candidates.sort(key=lambda pair: pair[0])
    # The most promising back-end that has a plan answers; the bound is over all of them.
    bound_s = candidates[0][0]
    for position, (_, each) in enumerate(candidates):
        try:
            return _plan_in(problem, each, bound_s, end_s)
        except NoFeasiblePlan:
            if position + 1 == len(candidates):
                raise
    raise AssertionError("unreachable: the last back-end returns or raises")


def _plan_in(problem: Problem, wanted: Software, bound_s: float, end_s: float) -> Plan:
    """A good plan of one back-end.  Raises as ``quick_plan`` does."""
    own = inside(problem, wanted)
    hardware = problem_hardware(own)
    narrow = own.model_copy(update={"constraints": narrowed(own.constraints)})
    result = _search(narrow, hardware, end_s)
    proof = PROOF
    if result.best is None:
        result, proof = _search(own, hardware, end_s), "searched in the whole space as long as time was"
        bound_s = min(bound_s, result.lower_bound_s)
    if result.best is None:
        if result.complete:
            raise NoFeasiblePlan(
                f"no strategy fits on {problem.cluster.num_devices:,} devices",
                binding="device memory",
                relaxations=("offer more devices or more memory",),
            )
        raise BudgetSpent("whether it fits was not decided in time", hint="allow more time, or ask for a plan")
    return _plan(problem, wanted, hardware, result, bound_s, proof)


def narrowed(constraints: Constraints) -> Constraints:
    """The constraints with more left out; what was pinned stays as it was said."""
    pins = {**HELD, **constraints.pins}
    forbids = {*constraints.forbids, *(name for name in LEFT_OUT if name not in constraints.pins)}
    if "num_microbatches" in constraints.pins and "micro_batch_size" not in constraints.pins:
        del pins["micro_batch_size"]
    return constraints.model_copy(update={"pins": pins, "forbids": tuple(sorted(forbids))})


def _bound_s(problem: Problem, hardware: Hardware) -> float:
    """The smallest bound over everything that the whole space shares; infinity where nothing can fit."""
    search = Search(problem, hardware, SearchOptions(top_k=0))
    cores = search.space.cores
    return float(search.core_bounds(cores, *search.costs.keyed(cores)).min()) if len(cores) else math.inf


def _search(problem: Problem, hardware: Hardware, end_s: float) -> SearchResult:
    left_s = max(end_s - time.monotonic(), 0.01)
    return Search(problem, hardware, SearchOptions(top_k=0, time_limit_s=left_s)).run()


def _plan(
    problem: Problem, wanted: Software, hardware: Hardware, result: SearchResult, bound_s: float, proof: str
) -> Plan:
    best = result.best
    if best is None:
        raise BudgetSpent("no plan was found in time")
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
        hardware,
        as_spelled(inside(problem, wanted), hardware, best),
        software=wanted,
        status="optimal" if proved else "feasible",
        lower_bound_s=best.step_time_s if proved else bound_s,
        report=report,
    )
