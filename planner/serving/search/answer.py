"""A serving question answered: searched, settled, explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.errors import BudgetSpent, NoFeasiblePlan
from planner.serving.plan import PromiseCost, RankedDeployment, ServingPlan
from planner.serving.problem import ServingProblem
from planner.serving.search.amounts import model_amounts, request_amounts
from planner.serving.search.contests import Goal
from planner.serving.search.curves import Evaluator, Family, Limits, Refusal, limits_of
from planner.serving.search.explain import GIB, traffic_changes, why, why_not_other_kind
from planner.serving.search.find import Found, Ranked, Space, search
from planner.serving.search.instances import NO_ROOM
from planner.serving.search.layouts import ARITHMETIC
from planner.serving.search.settling import settled
from planner.serving.words import WEIGHT_BYTES

UNITS: dict[Goal, str] = {
    "throughput": "output tokens a second and device of the cluster",
    "cheapest": "output tokens a second and device used",
    "fewest_devices": "devices",
}
USER_SPEEDS = (5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 60.0, 80.0, 110.0, 150.0, 200.0)
"""Tokens a second and user at which the Pareto curve is searched."""
SPLITS = 6
SEARCHING = 0.6
"""Part of a time limit for the question; the rest is for what promises cost, for whole predictions and the curve."""
CLOSED = 1e-3
"""A gap that counts as none."""
PROMISES = ("ttft", "tpot", "end_to_end")


def answered(
    problem: ServingProblem,
    families: Sequence[Family],
    evaluator: Evaluator,
    refusal: Refusal,
    *,
    most_s: float | None = None,
    explained: bool = True,
) -> ServingPlan:
    """The best deployment with its proof.

    Raises NoFeasiblePlan where nothing fits or keeps the promises, BudgetSpent where the time ended before anything.
    """
    space = Space(problem, tuple(families), evaluator, refusal, problem.num_devices)
    limits, goal = limits_of(problem.promised), goal_of(problem)
    load = problem.traffic.concurrency or problem.traffic.all_at_once
    share = None if most_s is None else SEARCHING * most_s
    found = search(space, limits, goal, concurrency=load, rate=problem.traffic.requests_per_s, most_s=share)
    if not found.ranked:
        raise _nothing(space, found, limits, goal)
    lines = _settled(problem, evaluator, found, limits, goal)
    best = lines[0]
    bound = _bound(problem, found, goal, best)
    gap = abs(bound - best.value) / max(bound, best.value, 1e-12)
    return ServingPlan(
        problem=problem,
        status="optimal" if found.proved and gap < CLOSED else "feasible",
        unit=UNITS[goal],
        best=best,
        runners_up=tuple(lines[1:]),
        pareto=_pareto(space, limits, most_s) if problem.objective == "pareto" else (),
        bound=bound,
        gap=0.0 if gap < 1e-12 else gap,
        proof=_proof(space, found),
        num_deployments=space.num_deployments(),
        num_evaluated=space.num_evaluated(),
        refused=space.refused(),
        why=why(problem, best) if explained else (),
        why_not_other_kind=why_not_other_kind(problem, lines) if explained else "",
        promise_costs=_promise_costs(space, limits, goal, found, most_s) if explained else (),
        traffic_changes=traffic_changes(problem, evaluator, best, limits) if explained else (),
        notes=_notes(space, best),
    )


def _settled(
    problem: ServingProblem, evaluator: Evaluator, found: Found, limits: Limits, goal: Goal
) -> list[RankedDeployment]:
    """The best of each engine and kind by its whole prediction, the best first.

    Prompts that wait for a free prefill instance are in whole predictions alone, so other splits of the devices are
    tried for the best disaggregated contest.
    """
    lines, widened, seen = [], False, set[tuple[str, bool]]()
    for each in found.ranked:
        kind = each.contest.family.engine, each.contest.disaggregated
        if kind in seen:
            continue
        seen.add(kind)
        number = 1 if widened or not each.contest.disaggregated else SPLITS
        widened = widened or each.contest.disaggregated
        tried = [
            settled(problem, evaluator, Ranked(each.contest, optimum), limits, goal)
            for optimum in each.contest.alternatives(number)
        ]
        lines.append(min(tried, key=lambda line: _order(line, goal)))
    return sorted(lines, key=lambda line: _order(line, goal))


def _order(line: RankedDeployment, goal: Goal) -> tuple[bool, float, float]:
    """Sorts the best first: promises kept, the objective, then the shorter time to the first token."""
    first = line.prediction.ttft.mean_s if line.prediction.ttft else 0.0
    return not line.meets, line.value if goal == "fewest_devices" else -line.value, first


def goal_of(problem: ServingProblem) -> Goal:
    """What is searched: with a given number of requests a second, the devices that answer them."""
    if problem.traffic.requests_per_s is not None:
        return "fewest_devices"
    return "cheapest" if problem.objective == "cheapest" else "throughput"


def in_unit(problem: ServingProblem, value: float, goal: Goal) -> float:
    """A value of the search in the unit of the answer: output tokens for requests, devices as they are."""
    return -value if goal == "fewest_devices" else value * request_amounts(problem.traffic).output_tokens


def _bound(problem: ServingProblem, found: Found, goal: Goal, best: RankedDeployment) -> float:
    """The bound in the answer's unit; never on the wrong side of the best, whose whole prediction may differ."""
    bound = in_unit(problem, found.bound, goal)
    return min(bound, best.value) if goal == "fewest_devices" else max(bound, best.value)


def _proof(space: Space, found: Found) -> str:
    """Of what the bound is a bound."""
    kept = "at a load of the grid under the promises, by the prediction of its instances"
    what = f"no deployment of the space (layouts, formats, limits, numbers of instances) is above it {kept}"
    if not found.proved:
        what = f"the time limit ended the proof early, so it rests on rooflines of what was not evaluated; {what}"
    if any(each.contest.disaggregated for each in found.ranked[:1]):
        what += "; waiting for a free prefill instance is in whole predictions and not in the bound"
    return what


def _promise_costs(
    space: Space, limits: Limits, goal: Goal, kept: Found, most_s: float | None
) -> tuple[PromiseCost, ...]:
    """The best without each promise; instances that were evaluated serve again."""
    costs = []
    part = None if most_s is None else most_s * (0.2 if kept.proved else 0.05)
    traffic = space.problem.traffic
    for promise in PROMISES:
        limit = getattr(limits, f"{promise}_s")
        if limit is None:
            continue
        without = limits.without(promise)
        load = traffic.concurrency or traffic.all_at_once
        found = search(space, without, goal, concurrency=load, rate=traffic.requests_per_s, most_s=part)
        if not found.ranked:
            continue
        value = in_unit(space.problem, found.ranked[0].optimum.value, goal)
        best = in_unit(space.problem, kept.ranked[0].optimum.value, goal)
        gain = best / value - 1.0 if goal == "fewest_devices" else value / best - 1.0
        costs.append(PromiseCost(promise=promise, limit_s=limit, value=value, gain=max(gain, 0.0)))
    return tuple(costs)


def _pareto(space: Space, limits: Limits, most_s: float | None) -> tuple[RankedDeployment, ...]:
    """The most tokens a second and device at each of ``USER_SPEEDS`` (median), with the other promises kept."""
    lines: list[RankedDeployment] = []
    share = None if most_s is None else most_s / len(USER_SPEEDS)
    for speed in USER_SPEEDS:
        asked = replace(limits, tpot_s=1.0 / speed)
        found = search(space, asked, "cheapest", most_s=share)
        if not found.ranked:
            break
        lines.append(settled(_free(space.problem), space.evaluator, found.ranked[0], asked, "cheapest"))
    kept: list[RankedDeployment] = []
    for line in sorted(lines, key=lambda each: -each.prediction.output_tokens_per_s_per_user):
        most = max((each.prediction.output_tokens_per_s_per_device for each in kept), default=0.0)
        if line.prediction.output_tokens_per_s_per_device > most:
            kept.append(line)
    return tuple(reversed(kept))


def _free(problem: ServingProblem) -> ServingProblem:
    free = problem.traffic.model_copy(update={"concurrency": None, "requests_per_s": None, "all_at_once": None})
    return problem.model_copy(update={"traffic": free})


def _nothing(space: Space, found: Found, limits: Limits, goal: Goal) -> NoFeasiblePlan | BudgetSpent:
    """Why there is no answer: the promise without which there is one, or memory."""
    if not found.proved:
        return BudgetSpent("the time ended before a deployment was found", hint="give more --time-limit")
    traffic = space.problem.traffic
    load = traffic.concurrency or traffic.all_at_once
    free = Limits(limits.percentile)
    for promise in PROMISES:
        limit = getattr(limits, f"{promise}_s")
        if limit is None:
            continue
        without = search(space, limits.without(promise), goal, concurrency=load, rate=traffic.requests_per_s)
        if without.ranked:
            line = settled(space.problem, space.evaluator, without.ranked[0], free, goal)
            spread = getattr(line.prediction, promise)
            seen = (
                ""
                if spread is None
                else f"; the best without it has {getattr(spread, f'p{limits.percentile}_s'):.4g} s"
            )
            return NoFeasiblePlan(
                f"no deployment keeps {promise} of {limit:g} s at the {limits.percentile}th percentile{seen}",
                binding=promise,
                relaxations=(f"promise a longer {promise}", "ask for more devices or fewer requests in flight"),
                pruned=space.refused(),
            )
    if goal == "fewest_devices":
        most = search(space, limits, "throughput")
        if most.ranked:
            rate = most.ranked[0].optimum.rate
            return NoFeasiblePlan(
                f"{space.devices:,} devices answer at most {rate:.3g} requests a second under the promises, not"
                f" {traffic.requests_per_s:g}",
                binding="devices",
                relaxations=(f"ask for at most {rate:.3g} requests a second", "give more devices"),
                pruned=space.refused(),
            )
    binding, lack, relaxations = _lack(space)
    return NoFeasiblePlan(
        f"no deployment of {space.problem.model.name} fits these {space.devices:,} devices: {lack}",
        binding=binding,
        relaxations=relaxations,
        pruned=space.refused(),
    )


def _lack(space: Space) -> tuple[str, str, tuple[str, ...]]:
    """Why nothing runs (pins, weights larger than all memory, or the commonest refusal): what binds, words, repairs."""
    if all(not len(each.columns) for each in space.layouts.values()):
        return "pins", "no layout is as pinned", ("pin other values: degrees divide the model and a node",)
    smaller = ("give more devices", "allow a smaller format with --weights", "ask for shorter requests")
    amounts, family = model_amounts(space.problem.model), space.families[0]
    dense = (amounts.attention_weights + amounts.other_weights) * WEIGHT_BYTES[family.formats.weights]
    weights = dense + amounts.expert_weights * WEIGHT_BYTES[family.formats.of_experts]
    memory = space.devices * space.problem.cluster.pools[0].device.memory_bytes
    if weights > 0.8 * memory:
        words = f"its matrices take {weights / GIB:,.0f} GiB in {family.formats.weights}, they have {memory / GIB:,.0f}"
        return "memory", f"{words} GiB, of which an engine keeps a part for itself", smaller
    reasons = {reason: count for reason, count in space.refused().items() if reason not in ARITHMETIC}
    most = max(reasons, key=reasons.__getitem__, default=NO_ROOM)
    if most == NO_ROOM:
        return "memory", most, smaller
    return "engine", most, ("ask about another --engine, --weights or --cluster", *smaller[:1])


def _notes(space: Space, best: RankedDeployment) -> tuple[str, ...]:
    notes = []
    used, given = best.deployment.num_devices, space.devices
    if used < given:
        notes.append(f"{given - used:,} of {given:,} devices are not used")
    if best.prediction.measured_share < 0.5:
        notes.append(
            f"{best.prediction.measured_share:.0%} of the predicted time rests on measured kernels of this device"
        )
    return tuple(notes)
