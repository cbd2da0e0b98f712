"""The plan with the most tokens a day: which part of the cluster trains, and which nodes stand by for failures.

Candidates: the plan on all nodes; on all but the spare nodes that pay for a job of that size; and on 15/16, 7/8, 3/4
and 1/2 of the nodes, because few numbers of devices divide a model and a batch well.  Nodes that do not train are spare
(``planner.search.goodput``).  Each candidate's plan is the best of its number of devices; the proof is of that number.
"""

from __future__ import annotations

from planner.errors import NoFeasiblePlan
from planner.plan.plan import Plan
from planner.question.problem import Problem
from planner.question.reliability import Reliability
from planner.search.device_counts import PlanOnAll, cut_to, slowest_allowed_s, too_slow
from planner.search.goodput.failures import rates_of
from planner.search.goodput.goodput import Goodput, goodput
from planner.search.goodput.interval import best_spares
from planner.search.options import Progress, SearchOptions

PARTS = (15 / 16, 7 / 8, 3 / 4, 1 / 2)


def most_tokens(problem: Problem, options: SearchOptions, progress: Progress | None, plan_on_all: PlanOnAll) -> Plan:
    """The plan of the candidate with the most tokens a day; its ``search.proof`` says what the fastest plan would give.

    Raises NoFeasiblePlan where no candidate has a plan, or none is as fast as the constraints ask.
    """
    reliability = problem.objective.reliability
    assert reliability is not None
    found: list[tuple[Plan, Goodput]] = []
    per_node, nodes = problem.cluster.pools[0].devices_per_node, problem.cluster.pools[0].num_nodes
    for count in node_counts(problem, reliability):
        try:
            plan = plan_on_all(cut_to(problem, count * per_node), options, progress)
        except NoFeasiblePlan:
            continue
        found.append((plan, goodput(plan, standing_by(reliability, nodes - count))))
    if not found:
        return plan_on_all(problem, options, progress)  # raises NoFeasiblePlan with the reason
    target_s = slowest_allowed_s(problem)
    if all(plan.step_time_s > target_s for plan, _ in found):
        raise too_slow(target_s, min((plan for plan, _ in found), key=lambda plan: plan.step_time_s))
    found = [each for each in found if each[0].step_time_s <= target_s]
    plan, best = max(found, key=lambda each: each[1].tokens_per_day)
    fastest = max(found, key=lambda each: each[1].tokens_per_day_without_failures)
    said = f"{plan.search.proof}; {_words(best, fastest[1], nodes * per_node)}"
    return plan.model_copy(update={"search": plan.search.model_copy(update={"proof": said})})


def node_counts(problem: Problem, reliability: Reliability) -> list[int]:
    """Numbers of nodes that may train, the most first."""
    pool = problem.cluster.pools[0]
    rates = rates_of(reliability, pool.device.name)
    load = rates.per_device_hour(only_nodes=True) * pool.num_devices * (reliability.repair_hours or 0.0)
    counts = {pool.num_nodes, pool.num_nodes - best_spares(load, pool.num_nodes)}
    counts |= {int(pool.num_nodes * part) for part in PARTS}
    return sorted((count for count in counts if count > 0), reverse=True)


def standing_by(reliability: Reliability, nodes: int) -> Reliability:
    """The same with these spare nodes; without repairs a node is always there, and spares make no difference."""
    return reliability.model_copy(update={"spare_nodes": nodes if reliability.repair_hours is not None else None})


def _words(best: Goodput, fastest: Goodput, devices: int) -> str:
    chosen = (
        f"{best.num_devices:,} of {devices:,} devices train and the others stand by: {best.tokens_per_day:.4g} tokens a"
        f" day with failures, {best.useful:.1%} of the time"
    )
    if fastest.num_devices == best.num_devices:
        return f"{chosen}; without failures the pick is the same"
    return (
        f"{chosen}; without failures the pick would be {fastest.num_devices:,} devices, which give"
        f" {fastest.tokens_per_day:.4g} with them"
    )
