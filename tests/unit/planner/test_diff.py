from __future__ import annotations

from planner.answers.diff import diff_plans, strategy_changes, worst_stage
from planner.plan.relief import offload_words, recompute_words
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.plan_factory import make_cluster, make_plan

PIPELINE = Strategy(pp=2, dp_shard=4, num_microbatches=8)
TENSOR = Strategy(tp=4, sp=True, dp_shard=2, num_microbatches=16)


def test_a_plan_does_not_differ_from_itself() -> None:
    plan = make_plan(PIPELINE)
    diff = diff_plans(plan, plan)
    assert diff.identical
    assert diff.same_problem
    assert (diff.problem, diff.strategy, diff.stages) == ((), (), ())
    assert all(term.change == 0 for term in (*diff.breakdown_s, *diff.peak_memory_bytes, diff.step_time_s))
    assert diff.summary == "The two plans are the same."


def test_every_change_is_b_minus_a_and_the_terms_add_up() -> None:
    a, b = make_plan(PIPELINE), make_plan(TENSOR)
    diff = diff_plans(a, b)
    assert diff.same_problem
    assert {change.field: (change.a, change.b) for change in diff.strategy}["tp"] == (1, 4)
    assert diff.step_time_s.change == b.step_time_s - a.step_time_s
    assert sum(term.change for term in diff.breakdown_s) == sum(b.breakdown_s.values()) - sum(a.breakdown_s.values())
    *parts, total = diff.peak_memory_bytes
    assert total.term == "total"
    assert sum(part.change for part in parts) == total.change
    assert total.b == worst_stage(b).peak_memory_bytes.total


def test_the_other_direction_is_the_negative() -> None:
    a, b = make_plan(PIPELINE), make_plan(TENSOR)
    there, back = diff_plans(a, b), diff_plans(b, a)
    assert [term.change for term in there.breakdown_s if term.change] == [
        -term.change for term in back.breakdown_s if term.change
    ]
    assert there.summary.startswith("Plan b takes")


def test_stages_that_one_side_lacks_are_shown_as_absent() -> None:
    diff = diff_plans(make_plan(PIPELINE), make_plan(TENSOR))
    assert [stage.stage for stage in diff.stages] == [0, 1]
    assert diff.stages[1].layers == (4, None)
    assert diff.stages[1].peak_memory_bytes[1] is None


def test_different_questions_are_compared_by_time_a_token() -> None:
    strategy = Strategy(dp_shard=8, num_microbatches=4)
    small = make_plan(strategy)
    large = make_plan(
        Strategy(dp_shard=8, num_microbatches=8), workload=Workload(global_batch_size=64, sequence_length=4096)
    )
    diff = diff_plans(small, large)
    assert not diff.same_problem
    assert {change.field for change in diff.problem} == {"/workload/global_batch_size"}
    assert "a token" in diff.summary
    assert "same time a token" in diff.summary, "twice the batch in twice the time"


def test_a_changed_cluster_is_named_by_its_pointer() -> None:
    diff = diff_plans(make_plan(PIPELINE), make_plan(PIPELINE, cluster=make_cluster(8, architecture="ampere")))
    assert [(change.field, change.a, change.b) for change in diff.problem] == [
        ("/cluster/pools/0/device/architecture", "hopper", "ampere")
    ]


def test_words_for_recompute_and_offload() -> None:
    plan = make_plan(
        Strategy(pp=2, num_microbatches=2, recompute="full", optimizer_offload=True, activation_offload=True),
        recompute_layers_per_chunk=(1, 4),
    )
    assert [recompute_words(stage) for stage in plan.stages] == ["full 1/4", "full 4/4"]
    assert offload_words(plan.stages[0]) == "optimizer + activations of 4 layers"
    plain = make_plan(PIPELINE).stages[0]
    assert (recompute_words(plain), offload_words(plain)) == ("none", "none")
    modules = make_plan(Strategy(recompute="selective", recompute_modules=("norm", "mlp")))
    assert recompute_words(modules.stages[0]) == "selective norm+mlp 8/8"


def test_changes_come_in_the_order_of_a_strategy_however_it_was_stored() -> None:
    a, b = Strategy(), Strategy(tp=2, pp=4, zero_stage=2, dp_shard=2)
    changes = strategy_changes(dict(sorted(a.to_dict().items())), dict(sorted(b.to_dict().items())))
    assert [each.field for each in changes] == ["tp", "pp", "dp_shard", "zero_stage", "dp"]


def test_plans_of_two_back_ends_are_compared_by_the_step_and_both_are_named() -> None:
    here = make_plan(Strategy(dp_shard=8), backend="megatron", release="0.19.2")
    constraints = here.problem.constraints.model_copy(update={"backends": ("nanotron",)})
    there = make_plan(TENSOR, backend="nanotron", release="0.5")
    there = there.model_copy(update={"problem": here.problem.model_copy(update={"constraints": constraints})})
    diff = diff_plans(here, there)
    assert {(each.field, each.a, each.b) for each in diff.problem} == {("/constraints/backends/0", "any", "nanotron")}
    assert diff.same_problem
    assert "a step" in diff.summary
    assert "Back-end: megatron 0.19.2 -> nanotron 0.5." in diff.summary
    assert "Back-end" not in diff_plans(here, make_plan(TENSOR, backend="megatron", release="0.19.2")).summary


def test_the_recommended_plan_and_the_fastest_one_answer_the_same_question() -> None:
    fastest, recommended = make_plan(PIPELINE), make_plan(TENSOR)
    objective = recommended.problem.objective.model_copy(update={"prefer": "recommended"})
    problem = recommended.problem.model_copy(update={"objective": objective})
    diff = diff_plans(recommended.model_copy(update={"problem": problem}), fastest)
    assert diff.same_problem
    assert [each.field for each in diff.problem] == ["/objective/prefer"]
    assert "a step" in diff.summary
    assert "different problems" not in diff.summary
