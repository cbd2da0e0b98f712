"""What must hold for every plan, whatever the problem: monotone answers, honest sums, pins, rules, proofs."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.backends.asked import software_of, the_software
from planner.backends.emission.layout import chunks_in_model_order, layout_of
from planner.backends.folders.emit import emit_plan
from planner.backends.registry import files_of, names_with_files
from planner.errors import BudgetSpent, NoFeasiblePlan
from planner.plan.plan import Plan
from planner.plan.relief import of_stages
from planner.predict.cost.hardware import hardware_of
from planner.question.problem import Problem
from planner.search.branch import Search
from planner.search.estimate import estimate
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.strategy.relief_layers import relief_layers
from profiles.cluster import Pool
from tests.rules_over_plans import over_plans
from tests.sampling import examples
from tests.search_problems import Size, random_problem

QUICK = SearchOptions(top_k=0)
SMALL = Size(max_devices=6, max_layers=5, max_batch=6, narrowings=2)
EXAMPLES = settings(max_examples=examples(12, 6))
SEEDS = st.integers(0, 10_000)


def _plan(problem: Problem, options: SearchOptions = QUICK) -> Plan | None:
    try:
        return find_plan(problem, options)
    except NoFeasiblePlan:
        return None


def _on_its_devices(problem: Problem) -> Problem:
    """The problem on devices of a maker that its one back-end trains on."""
    vendors = the_software(problem).backend.vendors
    pool = problem.cluster.pools[0]
    if pool.device.vendor in vendors:
        return problem
    return _with_pool(
        problem, pool.model_copy(update={"device": pool.device.model_copy(update={"vendor": min(vendors)})})
    )


def _with_pool(problem: Problem, pool: Pool) -> Problem:
    return problem.model_copy(update={"cluster": problem.cluster.model_copy(update={"pools": (pool,)})})


def _better(problem: Problem, what: str, factor: float) -> Problem:
    """The same problem with one thing of the hardware ``factor`` times as large."""
    pool = problem.cluster.pools[0]
    device, scale_up, host = pool.device, pool.scale_up, pool.host
    changes: dict[str, dict[str, Any]] = {
        "memory": {"device": device.model_copy(update={"memory_bytes": int(device.memory_bytes * factor)})},
        "memory bandwidth": {
            "device": device.model_copy(
                update={"memory_bandwidth_bytes_per_s": device.memory_bandwidth_bytes_per_s * factor}
            )
        },
        "scale-up bandwidth": {
            "scale_up": scale_up.model_copy(update={"bandwidth_bytes_per_s": scale_up.bandwidth_bytes_per_s * factor})
        },
        "NIC bandwidth": {"nic_bandwidth_bytes_per_s": pool.nic_bandwidth_bytes_per_s * factor},
        "host link": {
            "host": host.model_copy(update={"link_bandwidth_bytes_per_s": host.link_bandwidth_bytes_per_s * factor})
        },
        "host memory": {"host": host.model_copy(update={"memory_bytes": int(host.memory_bytes * factor)})},
        "peak FLOPs": {
            "device": device.model_copy(
                update={"peak_flops_per_s": {name: rate * factor for name, rate in device.peak_flops_per_s.items()}}
            )
        },
    }
    return _with_pool(problem, pool.model_copy(update=changes[what]))


@pytest.mark.parametrize(
    "what",
    ["memory", "memory bandwidth", "scale-up bandwidth", "NIC bandwidth", "host link", "host memory", "peak FLOPs"],
)
@settings(max_examples=examples(8, 4))
@given(seed=SEEDS, factor=st.floats(1.01, 4.0))
def test_better_hardware_never_worsens_the_plan(what: str, seed: int, factor: float) -> None:
    problem = random_problem(seed, SMALL)
    before, after = _plan(problem), _plan(_better(problem, what, factor))
    if before is not None:
        assert after is not None, f"{factor} x {what} made the problem infeasible"
        assert after.step_time_s <= before.step_time_s * (1 + 1e-9)


@EXAMPLES
@given(seed=SEEDS)
def test_a_plan_adds_up(seed: int) -> None:
    plan = _plan(random_problem(seed, SMALL))
    if plan is None:
        return
    strategy, workload = plan.chosen(), plan.problem.workload
    assert strategy.world_size == plan.problem.cluster.num_devices
    assert strategy.global_batch_size == workload.global_batch_size
    assert sum(plan.breakdown_s.values()) == pytest.approx(plan.step_time_s, rel=1e-9)
    assert min(plan.breakdown_s.values()) >= -1e-12 * plan.step_time_s, plan.breakdown_s
    for stage in plan.stages:
        bill = stage.peak_memory_bytes
        assert bill.total == bill.weights + bill.gradients + bill.optimizer + bill.activations + bill.buffers
        assert stage.layers == sum(chunk.num_layers for chunk in stage.chunks)
    chunks = sorted((chunk for stage in plan.stages for chunk in stage.chunks), key=lambda chunk: chunk.chunk)
    assert [chunk.first_layer for chunk in chunks] == [
        sum(other.num_layers for other in chunks[:index]) for index in range(len(chunks))
    ]
    assert sum(chunk.num_layers for chunk in chunks) == plan.problem.model.num_layers
    low_s, high_s = plan.step_time_interval_s
    assert low_s < plan.step_time_s < high_s
    assert 0 < plan.model_flops_utilization < 1
    assert plan.gap == 0
    assert plan.lower_bound_s == plan.step_time_s


@EXAMPLES
@given(seed=SEEDS)
def test_an_estimate_of_the_plan_says_what_the_plan_says(seed: int) -> None:
    plan = _plan(random_problem(seed, SMALL))
    if plan is None:
        return
    chunks = sorted((chunk for stage in plan.stages for chunk in stage.chunks), key=lambda chunk: chunk.chunk)
    layers = tuple(chunk.num_layers for chunk in chunks)
    dealt = estimate(plan.problem, plan.chosen(), layers, relief=of_stages(plan))
    free = estimate(plan.problem, plan.chosen(), relief=relief_layers(plan.problem.constraints.pins))
    for again in (dealt, free):
        assert again.status == "feasible"
        assert again.step_time_s == pytest.approx(plan.step_time_s, rel=1e-12)
    assert dealt.stages == plan.stages
    assert dealt.breakdown_s == plan.breakdown_s


@settings(max_examples=examples(6, 4))
@given(seed=SEEDS)
def test_the_same_problem_gives_the_same_bytes(seed: int) -> None:
    problem = random_problem(seed, SMALL)
    options = SearchOptions(top_k=3)
    first, second = _plan(problem, options), _plan(problem.model_copy(deep=True), options)
    if first is not None and second is not None:
        assert first.canonical_json() == second.canonical_json()
        assert first.plan_id == second.plan_id
    assert (first is None) == (second is None)


@EXAMPLES
@given(seed=SEEDS)
def test_pins_and_forbids_are_respected(seed: int) -> None:
    problem = random_problem(seed, SMALL)
    plan = _plan(problem, SearchOptions(top_k=2))
    if plan is None:
        return
    for strategy in (plan.strategy, *(other.strategy for other in plan.alternatives)):
        for name, value in problem.constraints.pins.items():
            # A relief that memory forces on no layer is allowed by its pin, not used, and not named.
            unused = {"recompute": "none", "activation_offload": False}.get(name, value)
            assert strategy[name] in (value, unused), name
        assert not any(strategy[name] for name in problem.constraints.forbids)


@EXAMPLES
@given(seed=SEEDS, backend=st.sampled_from(names_with_files()))
def test_a_plan_of_a_back_end_passes_its_rules(seed: int, backend: str) -> None:
    plan = _plan(_on_its_devices(random_problem(seed, SMALL, backend)))
    if plan is not None:
        assert plan.backend == backend
        rules = over_plans(software_of(plan).release.space.rules)
        assert [message for rule in rules if (message := rule.check(plan)) is not None] == []


@EXAMPLES
@given(seed=SEEDS)
def test_alternatives_are_of_other_degrees_and_not_faster(seed: int) -> None:
    plan = _plan(random_problem(seed, SMALL), SearchOptions(top_k=3))
    if plan is None:
        return
    names = ("tp", "cp", "pp", "ep", "etp", "dp")
    degrees = [tuple(one[name] for name in names) for one in (plan.strategy, *(a.strategy for a in plan.alternatives))]
    assert len(set(degrees)) == len(degrees)
    times = [plan.step_time_s, *(other.step_time_s for other in plan.alternatives)]
    assert times == sorted(times)
    for other in plan.alternatives:
        assert other.slower_by == pytest.approx(other.step_time_s / plan.step_time_s - 1)
        assert other.peak_memory_bytes <= plan.memory_limit_bytes * (1 + 1e-8)
        assert other.differs_in


@EXAMPLES
@given(seed=SEEDS)
def test_asking_for_alternatives_does_not_change_the_plan(seed: int) -> None:
    problem = random_problem(seed, SMALL)
    alone, accompanied = _plan(problem, QUICK), _plan(problem, SearchOptions(top_k=3))
    assert (alone is None) == (accompanied is None)
    if alone is not None and accompanied is not None:
        assert alone.step_time_s == accompanied.step_time_s


class _Hurried(Search):
    """A search whose time is up after so many looks at the clock."""

    looks = 0

    def _late(self) -> bool:
        self.looks -= 1
        return self.looks < 0


@EXAMPLES
@given(seed=SEEDS, looks=st.integers(0, 60))
def test_a_bound_after_a_stop_is_a_bound(seed: int, looks: int) -> None:
    problem = random_problem(seed, SMALL)
    hardware = hardware_of(problem.cluster, problem.workload.precision)
    proved = Search(problem, hardware, QUICK).run()
    search = _Hurried(problem, hardware, QUICK)
    search.looks = looks
    stopped = search.run()
    optimum_s = math.inf if proved.best is None else proved.best.step_time_s
    assert stopped.lower_bound_s <= optimum_s
    if stopped.best is not None:
        assert stopped.best.step_time_s >= optimum_s
    if stopped.complete:
        assert stopped.best is None or stopped.best.step_time_s == optimum_s


@settings(max_examples=examples(10, 6))
@given(seed=SEEDS, limit_s=st.sampled_from([0.0, 0.005, 0.02, 0.05]))
def test_a_time_limit_gives_a_plan_with_its_gap_or_says_that_it_was_too_short(seed: int, limit_s: float) -> None:
    problem = random_problem(seed, SMALL)
    proved = _plan(problem)
    try:
        plan = find_plan(problem, SearchOptions(top_k=0, time_limit_s=limit_s))
    except (BudgetSpent, NoFeasiblePlan):
        return
    assert proved is not None
    assert plan.bound is not None
    assert plan.bound.step_time_s <= proved.step_time_s * (1 + 1e-9)
    assert plan.step_time_s >= proved.step_time_s * (1 - 1e-9)
    assert plan.status == ("optimal" if plan.bound.gap < 1e-9 else "feasible")
    assert plan.gap == pytest.approx(1 - plan.bound.step_time_s / plan.step_time_s, abs=1e-9)


@settings(max_examples=examples(16, 10))
@given(seed=SEEDS, backend=st.sampled_from(names_with_files()))
def test_the_files_of_a_plan_say_all_of_it(seed: int, backend: str) -> None:
    """Written and read back, a searched plan is the same strategy on the same layers, at the step time it was found."""
    plan = _plan(_on_its_devices(random_problem(seed, SMALL, backend)))
    if plan is not None:
        files = files_of(software_of(plan))
        strategy, layout = files.read(emit_plan(plan, "torchrun").files)
        assert strategy == plan.chosen()
        assert layout == layout_of(plan)
        dealt = tuple(chunk.num_layers for chunk in chunks_in_model_order(layout))
        again = estimate(plan.problem, strategy, dealt, relief=of_stages(plan))
        assert again.step_time_s == pytest.approx(plan.step_time_s, rel=1e-9)
