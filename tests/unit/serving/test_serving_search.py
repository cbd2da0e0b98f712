"""The search gives what trying every deployment gives, and its bounds are above every curve."""

from __future__ import annotations

from itertools import product

import pytest

from planner.errors import NoFeasiblePlan
from planner.model.load import load_model
from planner.serving.layout import Formats, InstanceGroup, InstanceSettings
from planner.serving.plan import ServingPlan
from planner.serving.problem import ServingConstraints, ServingProblem
from planner.serving.search.answer import answered
from planner.serving.search.bounds import Shape, bounds_of
from planner.serving.search.contests import Goal
from planner.serving.search.curves import LOADS, Family, Limits, best_load, limits_of
from planner.serving.search.explain import deployment_words, lag_words
from planner.serving.search.find import ROLES, Space, search
from planner.serving.search.instances import Evaluated, Instances
from planner.serving.search.layouts import layouts_of
from planner.serving.search.settling import estimated
from planner.serving.traffic import Lengths, ServiceLevel, ServingTraffic
from profiles.catalogue import load_cluster
from tests.sampling import drawn
from tests.unit.serving.roofline_evaluator import RooflineEvaluator

TRAFFIC = ServingTraffic(input_tokens=Lengths(mean=2000), output_tokens=Lengths(mean=300))
FAMILIES = (
    Family("vllm", "1", Formats(weights="fp8")),
    Family("sglang", "1", Formats(weights="fp8", kv_cache="fp8")),
)
LIMITS = (Limits(50), Limits(90, 1.0, 0.02), Limits(90, 0.3, None), Limits(99, None, 0.012))
CASES = list(product(("llama-3.1-70b", "qwen3-30b-a3b"), LIMITS, ("throughput", "cheapest", "fewest_devices")))


def problem(model: str = "llama-3.1-70b", devices: int = 8, **more: object) -> ServingProblem:
    return ServingProblem.model_validate(
        {
            "model": load_model(model),
            "cluster": load_cluster("dgx-h100", devices),
            "traffic": TRAFFIC,
            "checkpoint": "fp8",
            **more,
        }
    )


def space(asked: ServingProblem) -> Space:
    evaluator = RooflineEvaluator(asked.model, asked.cluster, asked.traffic)
    return Space(asked, FAMILIES, evaluator, lambda family, group: None, asked.num_devices)


def every_instance(instances: Instances) -> list[Evaluated]:
    for row in range(len(instances.layouts.columns)):
        instances.evaluate(row)
    return [each for found in instances.evaluated.values() for each in found]


def by_trying(whole: Space, limits: Limits, goal: Goal, rate: float) -> float:
    """The best value over every deployment, in the search's unit."""
    best = float("-inf")
    for family, apart in product(FAMILIES, (False, True)):
        pools = []
        for role in ROLES[apart]:
            rates = [
                (each.group.num_devices, best_load(each.curve, limits)[0])
                for each in every_instance(whole.instances(family, role))
            ]
            pools.append({(size * n, n * r) for size, r in rates for n in range(1, whole.devices // size + 1) if r > 0})
        for chosen in product(*pools):
            used, answered_rate = sum(size for size, _ in chosen), min(r for _, r in chosen)
            if used > whole.devices:
                continue
            if goal == "fewest_devices":
                best = max(best, -used) if answered_rate >= rate * (1 - 1e-9) else best
            else:
                best = max(best, answered_rate / (whole.devices if goal == "throughput" else used))
    return best


@pytest.mark.parametrize(("model", "limits", "goal"), drawn(CASES, 5))
def test_it_finds_what_trying_all_finds(model: str, limits: Limits, goal: Goal) -> None:
    whole = space(problem(model, 4))
    found = search(whole, limits, goal, rate=2.0 if goal == "fewest_devices" else None)
    assert found.proved
    best = by_trying(space(problem(model, 4)), limits, goal, 2.0)
    if best == float("-inf"):
        assert not found.ranked
    else:
        # Of loads within a thousandth of the most the smallest is taken.
        assert found.ranked[0].optimum.value == pytest.approx(best, rel=2e-3)
        assert found.bound == pytest.approx(found.ranked[0].optimum.value)


@pytest.mark.parametrize("role", ["aggregated", "prefill", "decode"])
def test_bounds_are_above_every_curve(role: str) -> None:
    whole = space(problem("qwen3-30b-a3b", 8))
    instances = whole.instances(FAMILIES[0], role)  # type: ignore[arg-type]
    every_instance(instances)
    for limits in LIMITS:
        asked = bounds_of(
            Shape(
                whole.evaluator.amounts,  # type: ignore[attr-defined]
                whole.evaluator.request,  # type: ignore[attr-defined]
                whole.problem.cluster.pools[0],
                FAMILIES[0].formats,
            ),
            instances.layouts,
            role,  # type: ignore[arg-type]
        ).rate(role, limits.ttft_s, limits.tpot_s)  # type: ignore[arg-type]
        for row, found in instances.evaluated.items():
            for each in found:
                assert best_load(each.curve, limits)[0] <= asked[row] * (1 + 1e-9)


def test_layouts_pack_into_nodes_and_are_counted() -> None:
    dense = layouts_of(load_model("llama-3.1-70b"), load_cluster("dgx-h100", 16).pools[0], "decode", {})
    assert set(dense.devices.tolist()) == {1, 2, 4, 8, 16}
    assert (dense.column("attention_dp") == 1).all()
    assert dense.refused["attention_dp without experts is what replicas are"] > 0
    pinned = layouts_of(load_model("deepseek-v3"), load_cluster("dgx-h200", 104).pools[0], "decode", {"ep": 72})
    assert set(pinned.redundant.tolist()) == {32}


def answer(asked: ServingProblem) -> ServingPlan:
    evaluator = RooflineEvaluator(asked.model, asked.cluster, asked.traffic)
    return answered(asked, FAMILIES, evaluator, lambda family, group: None)


def test_an_answer_explains_itself_and_keeps_its_promises() -> None:
    plan = answer(problem(promised=ServiceLevel(ttft_s=0.6, tpot_s=0.02, percentile=90)))
    assert plan.best.meets
    assert plan.best.prediction.tpot is not None
    assert plan.best.prediction.tpot.p90_s <= 0.02
    assert plan.bound >= plan.best.value > 0
    assert {each.promise for each in plan.promise_costs} == {"ttft", "tpot"}
    assert all(each.gain >= 0 for each in plan.promise_costs)
    assert plan.why_not_other_kind
    assert len(plan.traffic_changes) == 4
    assert plan.num_deployments > plan.num_evaluated > 0
    assert ServingPlan.model_validate_json(plan.model_dump_json()) == plan


def test_a_curve_is_a_trade_of_users_against_devices() -> None:
    curve = answer(problem(objective="pareto", constraints=ServingConstraints(disaggregation="never"))).pareto
    users = [line.prediction.output_tokens_per_s_per_user for line in curve]
    devices = [line.prediction.output_tokens_per_s_per_device for line in curve]
    assert len(curve) > 2
    assert users == sorted(users)
    assert devices == sorted(devices, reverse=True)


def test_the_fewest_devices_answer_the_requests() -> None:
    traffic = TRAFFIC.model_copy(update={"requests_per_s": 3.0})
    plan = answer(problem(traffic=traffic, objective="fewest_devices"))
    assert plan.best.prediction.requests_per_s >= 0.98 * 3.0
    assert plan.best.deployment.num_devices == plan.best.value <= 8
    assert lag_words(plan, plan.best, ()) == ("it takes 2 devices, the plan 2",)
    slow = plan.best.model_copy(update={"prediction": plan.best.prediction.model_copy(update={"requests_per_s": 1.5})})
    assert lag_words(plan, slow, ()) == ("it answers 1.5 requests a second of the 3 that arrive",)


def test_a_promise_that_nobody_keeps_is_named() -> None:
    with pytest.raises(NoFeasiblePlan, match="no deployment keeps tpot of 1e-05 s") as caught:
        answer(problem(promised=ServiceLevel(ttft_s=2.0, tpot_s=1e-5)))
    assert caught.value.binding == "tpot"
    with pytest.raises(NoFeasiblePlan, match="no layout is as pinned") as caught:
        answer(problem(constraints=ServingConstraints(pins={"tp": 3})))
    assert caught.value.binding == "pins"
    with pytest.raises(NoFeasiblePlan, match="its matrices take 376 GiB in fp8"):
        answer(problem("llama-3.1-405b", 2))
    with pytest.raises(NoFeasiblePlan, match="answer at most"):
        answer(problem(traffic=TRAFFIC.model_copy(update={"requests_per_s": 1e4})))


def test_a_deployment_has_one_number() -> None:
    """Plans and estimates judge a deployment at one load; pools of one rate at every load do not lose theirs."""
    asked = problem(promised=ServiceLevel(ttft_s=0.6, tpot_s=0.02, percentile=90))
    plan, evaluator = answer(asked), RooflineEvaluator(asked.model, asked.cluster, asked.traffic)
    assert any(line.deployment.disaggregated for line in (plan.best, *plan.runners_up))
    for line in (plan.best, *plan.runners_up):
        assert estimated(asked, evaluator, line.deployment, limits_of(asked.promised)) == line
        assert line.concurrency > 1


def test_settings_are_part_of_a_deployments_words() -> None:
    group = InstanceGroup(num_instances=2, settings=InstanceSettings(max_num_batched_tokens=2048))
    deployment = FAMILIES[0].deployment(group)
    assert deployment_words(deployment) == "2 aggregated (one device, max_num_batched_tokens=2048)"


def test_loads_are_a_grid() -> None:
    assert LOADS[0] == 1
    assert (LOADS[1:] > LOADS[:-1]).all()
