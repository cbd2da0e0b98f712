"""From the optimum of a contest to a deployment with its load and its whole prediction."""

from __future__ import annotations

import math

import numpy as np

from planner.serving.layout import Deployment, InstanceGroup
from planner.serving.plan import RankedDeployment
from planner.serving.predict.prediction import ServingPrediction
from planner.serving.problem import ServingProblem
from planner.serving.search.contests import Goal, Part
from planner.serving.search.curves import LOADS, Evaluator, Family, Limits, best_load, prediction_meets
from planner.serving.search.find import Ranked
from planner.serving.traffic import ServingTraffic

MOST_STEPS = 24
"""A whole prediction may see a promise broken that its instances alone keep: then less load, or one instance more."""


def settled(
    problem: ServingProblem, evaluator: Evaluator, ranked: Ranked, limits: Limits, goal: Goal
) -> RankedDeployment:
    """The deployment of an optimum under the traffic, or under the best load where the traffic leaves it free."""
    family, parts = ranked.contest.family, ranked.optimum.parts
    traffic = problem.traffic
    if traffic.requests_per_s is not None:
        return _with_enough_instances(problem, evaluator, family, parts, limits, goal)
    deployment = family.deployment(*(part.group for part in parts))
    if traffic.concurrency is not None or traffic.all_at_once is not None:
        prediction = evaluator.predicted(deployment, traffic)
        load = float(traffic.concurrency or traffic.all_at_once or 1)
        return ranked_deployment(problem, deployment, prediction, load, limits, goal)
    load, prediction = _at_free_load(evaluator, deployment, traffic, limits, parts, ranked.optimum.rate)
    return ranked_deployment(problem, deployment, prediction, float(load), limits, goal)


def _at_free_load(
    evaluator: Evaluator,
    deployment: Deployment,
    traffic: ServingTraffic,
    limits: Limits,
    parts: tuple[Part, ...],
    rate: float,
) -> tuple[int, ServingPrediction]:
    """The load of a deployment whose pools answer ``rate``, and its prediction; the same for plans and estimates."""
    most = max(1, math.floor(_free_load(parts, rate, limits)))
    return _load_that_keeps(evaluator, deployment, traffic, limits, most)


def _load_that_keeps(
    evaluator: Evaluator, deployment: Deployment, traffic: ServingTraffic, limits: Limits, most: int
) -> tuple[int, ServingPrediction]:
    """The most requests in flight, at most ``most``, whose whole prediction keeps the promises, by halving; else 1."""
    prediction = evaluator.predicted(deployment, _in_flight(traffic, most))
    if prediction_meets(prediction, limits):
        return most, prediction
    low, high, found = 1, most, None
    while high - low > 1:
        middle = (low + high) // 2
        tried = evaluator.predicted(deployment, _in_flight(traffic, middle))
        if prediction_meets(tried, limits):
            low, found = middle, tried
        else:
            high = middle
    return low, found or evaluator.predicted(deployment, _in_flight(traffic, low))


def estimated(
    problem: ServingProblem, evaluator: Evaluator, deployment: Deployment, limits: Limits
) -> RankedDeployment:
    """A given deployment under the traffic; where it leaves the load free, at the best load that keeps the promises."""
    traffic = problem.traffic
    if traffic.requests_per_s is None and traffic.concurrency is None and traffic.all_at_once is None:
        parts = tuple(_part(evaluator, deployment, group) for group in deployment.groups)
        rate = min(best_load(part.curve, limits)[0] * part.group.num_instances for part in parts)
        if rate > 0:
            most, prediction = _at_free_load(evaluator, deployment, traffic, limits, parts, rate)
            return ranked_deployment(problem, deployment, prediction, float(most), limits, "throughput")
        lines = [
            ranked_deployment(
                problem,
                deployment,
                evaluator.predicted(deployment, _in_flight(traffic, load)),
                load,
                limits,
                "throughput",
            )
            for load in LOADS * min(group.num_instances for group in deployment.groups)
        ]
        return max(lines, key=lambda line: (line.meets, line.value))
    prediction = evaluator.predicted(deployment, traffic)
    load = float(traffic.concurrency or traffic.all_at_once or 0) or _in_system(prediction)
    return ranked_deployment(problem, deployment, prediction, load, limits, "throughput")


def _part(evaluator: Evaluator, deployment: Deployment, group: InstanceGroup) -> Part:
    family = Family(deployment.engine, deployment.release, deployment.formats)
    return Part(group, evaluator.curve(family, group, LOADS))


def _in_system(prediction: ServingPrediction) -> float:
    """Requests in flight by Little's law."""
    return max(prediction.requests_per_s * (prediction.end_to_end.mean_s if prediction.end_to_end else 1.0), 1e-3)


def ranked_deployment(  # what a line of the answer is made of
    problem: ServingProblem,
    deployment: Deployment,
    prediction: ServingPrediction,
    load: float,
    limits: Limits,
    goal: Goal,
) -> RankedDeployment:
    """A deployment with its prediction, judged."""
    tokens, devices = prediction.output_tokens_per_s, deployment.num_devices
    if goal == "fewest_devices":
        value = float(devices)
    else:
        value = tokens / (problem.num_devices if goal == "throughput" else devices)
    price = problem.cluster.price_per_device_hour
    cost = None if price is None or tokens <= 0 else price * devices / 3600.0 / tokens * 1e6
    meets = prediction_meets(prediction, limits)
    return RankedDeployment(
        deployment=deployment,
        prediction=prediction,
        concurrency=load,
        meets=meets,
        value=value,
        cost_per_million_output_tokens=cost,
    )


def _in_flight(traffic: ServingTraffic, load: float) -> ServingTraffic:
    return traffic.model_copy(update={"concurrency": int(load), "requests_per_s": None, "all_at_once": None})


def _free_load(parts: tuple[Part, ...], rate: float, limits: Limits) -> float:
    """Requests in flight at this rate: at the best load of one pool, or in both pools, the fewest with the rate."""
    if len(parts) == 1:
        return best_load(parts[0].curve, limits)[1] * parts[0].group.num_instances
    load = 0.0
    for part in parts:
        # Of loads with one rate the least: a prefill instance answers the same at every load.
        rates, first = np.unique(np.maximum.accumulate(part.curve.requests_per_s), return_index=True)
        loads = part.curve.loads[first]
        load += float(np.interp(rate / part.group.num_instances, rates, loads)) * part.group.num_instances
    return load


def _with_enough_instances(
    problem: ServingProblem,
    evaluator: Evaluator,
    family: Family,
    parts: tuple[Part, ...],
    limits: Limits,
    goal: Goal,
) -> RankedDeployment:
    """Add instances until requests that arrive at random see the promises kept, or the devices end."""
    groups = [part.group for part in parts]
    for _ in range(MOST_STEPS):
        deployment = family.deployment(*groups)
        prediction = evaluator.predicted(deployment, problem.traffic)
        if prediction_meets(prediction, limits) and _answers(prediction, problem.traffic):
            break
        late = prediction.ttft is not None and limits.ttft_s is not None and _late(prediction, limits)
        grown = _grown(groups, 0 if late else len(groups) - 1)
        if sum(group.num_devices for group in grown) > problem.num_devices:
            break
        groups = grown
    return ranked_deployment(problem, deployment, prediction, _in_system(prediction), limits, goal)


def _grown(groups: list[InstanceGroup], at: int) -> list[InstanceGroup]:
    more = groups[at].model_copy(update={"num_instances": groups[at].num_instances + 1})
    return [*groups[:at], more, *groups[at + 1 :]]


def _answers(prediction: ServingPrediction, traffic: ServingTraffic) -> bool:
    return prediction.requests_per_s >= 0.98 * (traffic.requests_per_s or 0.0)


def _late(prediction: ServingPrediction, limits: Limits) -> bool:
    found = getattr(prediction.ttft, f"p{limits.percentile}_s")
    return bool(found > (limits.ttft_s or math.inf))
