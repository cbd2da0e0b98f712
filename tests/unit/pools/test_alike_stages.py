"""Plans over unequal devices in a back-end: alike in what it needs equal, consecutive ranks, its own rules and plan."""

from __future__ import annotations

import itertools

import pytest

from planner.backends.native.space import violations
from planner.backends.rules.rule import rule_input
from planner.errors import BackEndRefused, DocumentInvalid, NoFeasiblePlan
from planner.model.load import load_model
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Workload
from planner.search.pools.launchable import launchable_plan, used_cluster
from planner.search.pools.plan import PoolsPlan
from planner.search.pools.problem import PoolsProblem, complete_pools_problem
from profiles.catalogue import load_cluster
from solver.check import CheckFailed
from tests.unequal_devices import devices, plan_of, question

SHORT = (1_985_000_000, 1_985_000_000)
"""Bytes of devices on which the small model has to recompute."""
ALIKE = ("tp", "sp", "cp", "ep", "dp", "dp_replicate", "micro_batch_size", "zero_stage")


def runs(plan: PoolsPlan) -> list[str]:
    """The pools of the stages, each once for stages that follow each other."""
    return [name for name, _ in itertools.groupby(stage.pool for stage in plan.stages)]


def apart() -> PoolsProblem:
    """A question whose fastest order has the slow device between the two fast ones."""
    return question(devices("slow", 1, 2.0), devices("fast", 2, 1.0), layers=8, pp=3, micro_batch_size=1)


def test_stages_of_a_pool_follow_each_other_also_where_another_order_is_faster() -> None:
    problem = apart()
    assert problem.consecutive
    free = plan_of(problem.model_copy(update={"consecutive": False}))
    assert runs(free) == ["fast", "slow", "fast"]
    with pytest.raises(CheckFailed, match="do not follow each other"):
        used_cluster(free)
    plan = plan_of(problem)
    assert len(runs(plan)) == len(set(runs(plan))) == 2
    assert plan.step_time_s > free.step_time_s


@pytest.mark.parametrize("pools", [(1, 3), (3, 1), (2, 2)])
def test_the_ranks_of_a_pool_are_consecutive_and_all_stages_alike(pools: tuple[int, int]) -> None:
    plan = plan_of(question(devices("slow", pools[0], 3.0), devices("fast", pools[1], 1.0), layers=9))
    assert len(runs(plan)) == len(set(runs(plan)))
    assert len({stage.devices for stage in plan.stages}) == 1
    assert plan.strategy is not None
    for stage in plan.stages:
        assert {name: stage.strategy[name] for name in ALIKE} == {name: plan.strategy[name] for name in ALIKE}
    assert sum(stage.layers for stage in plan.stages) == 9
    assert plan.strategy["pp"] == len(plan.stages)
    runnable = launchable_plan(plan)
    ranks = [pool.name for pool in runnable.problem.cluster.pools for _ in range(pool.num_devices)]
    of_stage = [stage.pool for stage in plan.stages for _ in range(stage.devices)]
    assert ranks == of_stage


def test_the_plan_of_the_back_end_is_legal_there_and_says_the_same() -> None:
    plan = plan_of(question(devices("slow", 2, 2.5), devices("fast", 4, 1.0, nodes=2), layers=9, tp=2))
    runnable = launchable_plan(plan)
    assert isinstance(runnable, Plan)
    assert violations(rule_input(runnable)) == []
    assert Plan.model_validate_json(runnable.model_dump_json()) == runnable
    assert runnable.step_time_s == plan.step_time_s
    assert [stage.layers for stage in runnable.stages] == [stage.layers for stage in plan.stages]
    assert sum(runnable.breakdown_s.values()) == pytest.approx(plan.step_time_s)
    for mine, theirs in zip(runnable.stages, plan.stages, strict=True):
        assert mine.forward_s + mine.backward_s == pytest.approx(theirs.microbatch_s)
    assert runnable.chosen().world_size == runnable.problem.cluster.num_devices


def test_the_best_of_all_shardings_is_that_of_the_best_pinned_one() -> None:
    clusters = devices("slow", 2, 2.0), devices("fast", 2, 1.0)
    best = plan_of(question(*clusters, layers=7))
    pinned = []
    for tp, size, zero in itertools.product((1, 2), (1, 2, 4), (0, 1)):
        try:
            pinned.append(plan_of(question(*clusters, layers=7, tp=tp, micro_batch_size=size, zero_stage=zero)))
        except NoFeasiblePlan:
            continue
    assert best.step_time_s == pytest.approx(min(plan.step_time_s for plan in pinned), rel=best.gap + 1e-9)
    assert best.lower_bound_s <= min(plan.step_time_s for plan in pinned) * (1 + 1e-12)


def test_one_kind_of_relief_serves_all_stages_where_memory_is_short() -> None:
    small = [devices("slow", 1, 2.0, memory_bytes=SHORT[0]), devices("fast", 2, 1.0, memory_bytes=SHORT[1])]
    problem = question(*small, layers=8, micro_batch_size=1)
    plan = plan_of(problem)
    kinds = {(stage.recompute, stage.recompute_modules) for stage in plan.stages if stage.recompute != "none"}
    assert len(kinds) == 1
    assert plan.strategy is not None
    assert (plan.strategy["recompute"], tuple(plan.strategy["recompute_modules"])) in kinds
    assert violations(rule_input(launchable_plan(plan))) == []
    for stage in plan.stages:
        assert stage.peak_memory_bytes.total <= stage.memory_limit_bytes + 2
    for recompute in ("none", "selective", "full"):
        try:
            pinned = plan_of(question(*small, layers=8, micro_batch_size=1, recompute=recompute))
        except NoFeasiblePlan:
            continue
        assert plan.lower_bound_s <= pinned.step_time_s * (1 + 1e-12)
        assert plan.step_time_s <= pinned.step_time_s / (1 - plan.gap) * (1 + 1e-9)


def test_late_work_hides_under_nothing_where_a_norm_over_all_stages_is_waited_for() -> None:
    plan = plan_of(apart())
    assert not plan.problem.hides_late_work
    assert plan.breakdown_s["late"] == pytest.approx(max(stage.late_s for stage in plan.stages))


def refused(**changes: object) -> BackEndRefused:
    said = {
        "model": load_model("llama-3.1-8b"),
        "clusters": (load_cluster("dgx-a100-40g", 8), load_cluster("dgx-h100", 8)),
        "workload": Workload(global_batch_size=16, sequence_length=2048),
        "constraints": Constraints(backends=("native",)),
        **changes,
    }
    with pytest.raises(BackEndRefused) as found:
        complete_pools_problem(**said)  # type: ignore[arg-type]
    return found.value


def test_other_back_ends_say_why_not_and_which_one_can() -> None:
    found = refused(constraints=Constraints(backends=("megatron",)))
    assert "unequal devices" in found.what
    assert "native" in (found.hint or "")


def test_devices_of_two_makers_have_no_library_in_common() -> None:
    found = refused(clusters=(load_cluster("dgx-h100", 8), load_cluster("mi300x-8", 8)))
    assert "AMD and NVIDIA" in found.what


def test_a_model_that_the_back_end_cannot_train_says_its_rules() -> None:
    tied = load_model("llama-3.1-8b").model_copy(update={"tie_embeddings": True})
    with pytest.raises(NoFeasiblePlan):
        plan_of(
            complete_pools_problem(
                tied,
                (load_cluster("dgx-a100-40g", 8), load_cluster("dgx-h100", 8)),
                Workload(global_batch_size=16, sequence_length=2048),
                Constraints(backends=("native",)),
            )
        )


def test_a_pin_on_one_stage_is_told_by_its_cause() -> None:
    clusters = load_cluster("dgx-a100-40g", 8), load_cluster("dgx-h100", 8)
    workload = Workload(global_batch_size=16, sequence_length=2048)
    asked = Constraints(backends=("native",), pins={"pp": 1})
    with pytest.raises(NoFeasiblePlan, match="pp=1 is one stage"):
        plan_of(complete_pools_problem(load_model("llama-3.1-8b"), clusters, workload, asked))


def test_limits_that_the_search_does_not_hold_are_refused() -> None:
    clusters = load_cluster("dgx-a100-40g", 8), load_cluster("dgx-h100", 8)
    workload = Workload(global_batch_size=16, sequence_length=2048)
    with pytest.raises(DocumentInvalid, match="step time alone"):
        complete_pools_problem(load_model("llama-3.1-8b"), clusters, workload, Constraints(max_step_time_s=1.0))
