"""The number of devices to use: fewest for a target, cheapest per token, and the curve in between."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from planner.errors import BudgetSpent, DocumentInvalid, NoFeasiblePlan
from planner.plan.plan import Plan
from planner.predict.packed_rows import real_tokens_per_step
from planner.question.problem import Problem
from planner.search.options import Progress, SearchOptions
from planner.search.reach import fewest_nodes, reaches
from profiles.cluster import Cluster

PlanOnAll = Callable[[Problem, SearchOptions, Progress | None], Plan]


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """The best plan for one number of devices; ``efficient`` when no other point is both faster and cheaper."""

    num_devices: int
    plan: Plan
    efficient: bool


def device_counts(cluster: Cluster) -> list[int]:
    """Numbers of devices that the cluster can be cut to: node counts that halve, and the whole."""
    per_node, nodes = cluster.pools[0].devices_per_node, cluster.pools[0].num_nodes
    counts = {nodes}
    step = 1
    while step <= nodes:
        counts |= {step, min(nodes, step * 3 // 2)} if step > 1 else {step}
        step *= 2
    return [count * per_node for count in sorted(counts)]


def cut_to(problem: Problem, num_devices: int) -> Problem:
    """The same question on the first ``num_devices`` devices of the cluster."""
    pool = problem.cluster.pools[0]
    cut = pool.model_copy(update={"num_nodes": num_devices // pool.devices_per_node})
    if cut.scale_up.domain_size > cut.num_devices:
        cut = cut.model_copy(
            update={"scale_up": cut.scale_up.model_copy(update={"domain_size": cut.num_devices, "torus_shape": None})}
        )
    cluster = problem.cluster.model_copy(update={"pools": (cut,)})
    return problem.model_copy(update={"cluster": cluster})


def pareto_front(
    problem: Problem, options: SearchOptions, progress: Progress | None, plan_on_all: PlanOnAll
) -> list[FrontPoint]:
    """The best plan for every device count that has one, fewest devices first."""
    plans: list[tuple[int, Plan]] = []
    for count in device_counts(problem.cluster):
        try:
            plans.append((count, plan_on_all(cut_to(problem, count), options, progress)))
        except NoFeasiblePlan:
            continue
    points = []
    for count, plan in plans:
        cost = count * plan.step_time_s
        beaten = any(
            other_count * other.step_time_s <= cost
            and other.step_time_s <= plan.step_time_s
            and (other_count * other.step_time_s, other.step_time_s) != (cost, plan.step_time_s)
            for other_count, other in plans
        )
        points.append(FrontPoint(num_devices=count, plan=plan, efficient=not beaten))
    return points


def fewest_devices(problem: Problem, options: SearchOptions, progress: Progress | None, plan_on_all: PlanOnAll) -> Plan:
    """The plan with the fewest devices that reaches the step time or token rate of the constraints.

    Every whole number of nodes is looked at, the fewest first; most are decided by the bounds of their strategies.
    Raises BudgetSpent where the time was too short to decide a smaller number, NoFeasiblePlan where none reaches it.
    """
    target_s = slowest_allowed_s(problem)
    if not math.isfinite(target_s):
        raise DocumentInvalid(
            "the objective 'devices' needs a target",
            where="/constraints",
            hint="give max_step_time_s or min_tokens_per_s",
        )
    pool = problem.cluster.pools[0]
    for nodes in range(fewest_nodes(problem, target_s), pool.num_nodes + 1):
        cut = cut_to(problem, nodes * pool.devices_per_node)
        answer = reaches(cut, target_s, options)
        if answer is None:
            raise BudgetSpent(
                f"whether {cut.cluster.num_devices} devices reach {target_s:.4g} s was not decided in time",
                where="--time-limit",
                hint="allow more time, or ask for a plan on a number of devices",
            )
        if answer:
            return plan_on_all(cut, options, progress)
    points = pareto_front(problem, options, progress, plan_on_all)
    if not points:
        return plan_on_all(problem, options, progress)  # raises NoFeasiblePlan with the reason
    raise too_slow(target_s, min((point.plan for point in points), key=lambda plan: plan.step_time_s))


def slowest_allowed_s(problem: Problem) -> float:
    """Longest step that the constraints allow; infinity when they do not say."""
    constraints, workload = problem.constraints, problem.workload
    limits = [math.inf if constraints.max_step_time_s is None else constraints.max_step_time_s]
    if constraints.min_tokens_per_s is not None:
        limits.append(real_tokens_per_step(workload) / constraints.min_tokens_per_s)
    return min(limits)


def too_slow(target_s: float, fastest: Plan) -> NoFeasiblePlan:
    """Even the fastest plan misses the step time that was asked for."""
    return NoFeasiblePlan(
        f"no plan reaches a step time of {target_s:.4g} s; the fastest takes {fastest.step_time_s:.4g} s"
        f" on {fastest.problem.cluster.num_devices} devices",
        binding="step time",
        relaxations=(f"allow a step time of {fastest.step_time_s:.4g} s", "offer more devices"),
    )


def cheapest(problem: Problem, options: SearchOptions, progress: Progress | None, plan_on_all: PlanOnAll) -> Plan:
    """The plan with the lowest cost per token (device seconds when no price is given)."""
    points = pareto_front(problem, options, progress, plan_on_all)
    if not points:
        return plan_on_all(problem, options, progress)  # raises NoFeasiblePlan with the reason
    target_s = slowest_allowed_s(problem)
    if all(point.plan.step_time_s > target_s for point in points):
        raise too_slow(target_s, min((point.plan for point in points), key=lambda plan: plan.step_time_s))
    points = [point for point in points if point.plan.step_time_s <= target_s]
    return min(points, key=lambda point: point.num_devices * point.plan.step_time_s).plan
