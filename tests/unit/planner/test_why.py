from __future__ import annotations

import warnings

import pytest

from planner.answers.explain.why import explain
from planner.answers.explain.why_not import broken_rules, with_pins
from planner.plan.plan import Alternative, Plan
from planner.strategy.strategy import Strategy
from tests.plan_factory import make_plan


@pytest.fixture
def plan() -> Plan:
    return make_plan(Strategy(pp=2, dp_shard=4, num_microbatches=8))


def test_causes_are_the_breakdown_with_reasons(plan: Plan) -> None:
    said = explain(plan, with_neighbours=False)
    assert {cause.term: cause.seconds for cause in said.causes} == plan.breakdown_s
    assert sum(cause.share for cause in said.causes) == pytest.approx(1)
    bubble = next(cause for cause in said.causes if cause.term == "pp_bubble")
    assert bubble.choice == "pp=2 1f1b"
    assert "8 micro-batches fill 2 stages" in bubble.because
    assert said.neighbours == ()


def test_memory_binds_when_little_is_spare(plan: Plan) -> None:
    loose = explain(plan, with_neighbours=False).memory
    assert not loose.binding
    assert loose.total_bytes == sum(loose.terms_bytes.values())
    tight = plan.model_copy(update={"memory_limit_bytes": int(plan.peak_memory_bytes * 1.01)})
    said = explain(tight, with_neighbours=False)
    assert said.memory.binding
    assert any(sentence.startswith("Memory binds: stage 0") for sentence in said.sentences)


def test_a_plan_that_does_not_fit_says_what_is_missing(plan: Plan) -> None:
    small = plan.model_copy(update={"memory_limit_bytes": plan.peak_memory_bytes - 2**30, "status": "infeasible"})
    assert explain(small, with_neighbours=False).sentences[0] == (
        "This strategy does not fit: the worst device misses 1.0 GiB."
    )


def test_a_plan_without_proof_says_how_far_it_may_be_off(plan: Plan) -> None:
    cut = plan.model_copy(update={"status": "feasible", "gap": 0.034})
    assert "up to 3.4% faster is not excluded" in explain(cut, with_neighbours=False).sentences[0]


def test_degrees_that_break_a_rule_are_named_and_never_costed(plan: Plan) -> None:
    # Eight expert ranks of two: a replica count of zero, which numpy would warn of.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (rule,) = broken_rules(plan, {"pp": 4, "ep": 8})
    assert rule.startswith("etp * ep must divide tp * cp * dp")


def test_the_runner_up_is_told_without_what_follows_from_the_rest(plan: Plan) -> None:
    other = Alternative(
        strategy={**plan.strategy, "tp": 2, "sp": True, "dp": 2, "num_microbatches": 16},
        step_time_s=plan.step_time_s * 1.05,
        peak_memory_bytes=2**33,
        slower_by=0.05,
        differs_in=("tp", "sp", "num_microbatches", "dp"),
    )
    sentences = explain(plan.model_copy(update={"alternatives": (other,)}), with_neighbours=False).sentences
    (said,) = [sentence for sentence in sentences if sentence.startswith("The runner-up")]
    assert said == "The runner-up (tp 1 -> 2, sp false -> true) is 5.0% slower and peaks at 8.0 GiB."


def test_new_pins_replace_old_ones_of_the_same_field(plan: Plan) -> None:
    once = with_pins(plan.problem, {"tp": 2, "pp": 2})
    twice = with_pins(once, {"tp": 4})
    assert twice.constraints.pins == {"tp": 4, "pp": 2}
    assert plan.problem.constraints.pins == {}


def test_waits_for_the_host_are_the_back_end_s_or_the_calibration_s(plan: Plan) -> None:
    late = plan.model_copy(
        update={
            "breakdown_s": {**plan.breakdown_s, "host": 0.1},
            "backend": "nanotron",
            "release": "0.5",
        }
    )
    host = next(cause for cause in explain(late, with_neighbours=False).causes if cause.term == "host")
    assert host.choice == "nanotron 0.5"
