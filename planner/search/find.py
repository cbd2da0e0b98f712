"""What is the best plan for a problem?  The door of the search.

``step_time``  the fastest plan on all devices of the cluster
``devices``    the fewest devices that reach a step time or token rate
``cost``       the cheapest plan per token over all device counts that the cluster can be cut to
"""

from __future__ import annotations

from planner.assemble_plan import assemble_plan
from planner.cost.hardware import problem_hardware
from planner.errors import BudgetSpent, NoFeasiblePlan
from planner.plan import Plan, SearchReport
from planner.problem import Problem
from planner.search.branch import Search
from planner.search.device_counts import cheapest, fewest_devices, slowest_allowed_s, too_slow
from planner.search.infeasible import no_feasible_plan
from planner.search.options import Progress, SearchOptions
from planner.search.search_result import SearchResult, degrees
from planner.search.target_rules import TargetRules

OPTIMAL_GAP = 1e-9


def find_plan(problem: Problem, options: SearchOptions | None = None, progress: Progress | None = None) -> Plan:
    """Find the best plan, with its bound.

    Raises NoFeasiblePlan (with the binding constraint and what would relax it), BudgetSpent when the time limit ended
    before any plan was found, DocumentInvalid for impossible pins.
    """
    options = options or SearchOptions()
    if problem.objective.minimize == "devices":
        return fewest_devices(problem, options, progress, plan_on_all_devices)
    if problem.objective.minimize == "cost":
        return cheapest(problem, options, progress, plan_on_all_devices)
    plan = plan_on_all_devices(problem, options, progress)
    target_s = slowest_allowed_s(problem)
    if plan.step_time_s > target_s:
        raise too_slow(target_s, plan)
    return plan


def plan_on_all_devices(problem: Problem, options: SearchOptions, progress: Progress | None = None) -> Plan:
    """The fastest plan that uses every device of the problem's cluster."""
    refused = TargetRules(problem).always()
    if refused:
        target = problem.constraints.target
        raise NoFeasiblePlan(
            f"{target} can run no plan of this problem, whatever the strategy: {'; '.join(refused)}",
            binding=f"rules of {target}",
            relaxations=("choose another --target",),
        )
    hardware = problem_hardware(problem)
    search = Search(problem, hardware, options, progress)
    result = search.run()
    if result.best is None:
        if not result.complete:
            raise BudgetSpent(
                f"no plan was found within {options.time_limit_s} s",
                where="--time-limit",
                hint="allow more time, or pin degrees to make the space smaller",
            )
        raise no_feasible_plan(problem, result)
    if options.top_k:
        search.find_alternatives()
    best = result.best
    others = sorted(
        (candidate for key, candidate in result.by_degrees.items() if key != degrees(best)),
        key=lambda candidate: candidate.step_time_s,
    )
    proved = result.complete or result.lower_bound_s >= best.step_time_s * (1 - OPTIMAL_GAP)
    return assemble_plan(
        problem,
        hardware,
        best,
        status="optimal" if proved else "feasible",
        lower_bound_s=best.step_time_s if proved else result.lower_bound_s,
        report=_report(result, proved),
        others=others[: options.top_k],
    )


def _report(result: SearchResult, proved: bool) -> SearchReport:
    proof = (
        "every strategy of the declared space was evaluated or has a lower bound that is not below this plan"
        if proved
        else "stopped early: the lower bound is the smallest bound of what was not examined"
    )
    return SearchReport(
        enumerated=result.enumerated,
        pruned={reason: count for reason, count in sorted(result.pruned.items()) if count},
        refused={reason: count for reason, count in sorted(result.refused.items()) if count},
        bounded=result.bounded,
        evaluated=result.evaluated,
        proof=proof,
    )
