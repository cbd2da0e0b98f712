"""The pins that a back-end cannot take are named, all and no other, with its rule and with values that work."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from planner.backends.asked import problem_hardware
from planner.errors import NoFeasiblePlan
from planner.question.problem import Constraints, Problem, Workload
from planner.search.branch import Search
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.search.pin_conflict import PinConflict, pin_conflict
from planner.strategy.fields import FIELD
from tests.plan_factory import make_cluster, make_model

QUICK = SearchOptions(top_k=0)


def asked(backend: str, gradient_dtype: Literal["fp32", "bf16"] = "fp32", **constraints: Any) -> Problem:
    return Problem(
        model=make_model(8),
        cluster=make_cluster(8),
        workload=Workload(global_batch_size=16, sequence_length=2048, gradient_dtype=gradient_dtype),
        constraints=Constraints(backends=(backend,), **constraints),
    )


def conflict_of(problem: Problem) -> PinConflict:
    found = pin_conflict(problem)
    assert found is not None
    return found


def test_the_refusal_says_pin_rule_and_values_that_work() -> None:
    with pytest.raises(NoFeasiblePlan) as caught:
        find_plan(asked("maxtext", pins={"zero": 2}), QUICK)
    refusal = caught.value
    assert refusal.exit_code == 5
    assert refusal.binding == "rules of maxtext"
    assert str(refusal).startswith("zero=2 contradicts the rules of maxtext: maxtext.Z1: ")
    assert refusal.relaxations == ("pin zero=0, 1 or 3", "drop the pin on zero", "use --backend megatron")


def test_of_several_pins_those_are_named_that_need_each_other() -> None:
    found = conflict_of(asked("deepspeed", pins={"micro_batch_size": 1, "zero_stage": 3, "tp": 1, "pp": 2}))
    assert set(found.pins) == {"zero_stage=3", "pp=2"}
    assert [rule.partition(":")[0] for rule in found.rules] == ["deepspeed.E1"]
    assert found.instead == (("zero_stage", 1),)


def test_a_column_that_the_space_declares_may_still_be_refused_by_the_rules() -> None:
    found = conflict_of(asked("native", pins={"pp": 2, "zero_stage": 2}))
    assert set(found.pins) == {"pp=2", "zero_stage=2"}
    assert found.rules[0].startswith("native.Z1: ")
    assert found.instead == (("zero_stage", 0), ("zero_stage", 1))


def test_a_schedule_that_torchtitan_cannot_run_is_refused_with_its_rule() -> None:
    found = conflict_of(asked("torchtitan", pins={"schedule": "zbv"}))
    assert found.rules[0].startswith("torchtitan.P6: ")
    assert found.instead == tuple(("schedule", name) for name in ("gpipe", "1f1b", "interleaved", "looped_bfs"))


def test_a_forbid_can_contradict_too() -> None:
    found = conflict_of(asked("deepspeed", forbids=("zero_stage",)))
    assert found.pins == ("no zero_stage",)
    assert found.rules[0].startswith("deepspeed.E2: ")
    assert pin_conflict(asked("deepspeed", "bf16", forbids=("zero_stage",))) is None


@pytest.mark.parametrize(
    "problem",
    [
        asked("unrestricted", pins={"zero_stage": 2}),
        asked("maxtext"),
        asked("maxtext", pins={"zero_stage": 3}),
        asked("native", pins={"tp": 3}),
        asked("native", pins={"pp": 1, "schedule": "zbv"}),
        asked("torchtitan", pins={"pp": 4, "schedule": "interleaved"}),
    ],
    ids=lambda problem: f"{problem.constraints.backends[0]} {problem.constraints.pins}",
)
def test_what_is_not_between_the_pins_and_the_back_end_is_no_conflict(problem: Problem) -> None:
    assert pin_conflict(problem) is None


CHOICES = [*(("zero_stage", stage) for stage in range(4)), *(("schedule", name) for name in FIELD["schedule"].words)]


@pytest.mark.parametrize("backend", ["deepspeed", "maxtext"])
def test_a_pin_is_in_conflict_exactly_when_the_search_ends_without_a_plan(backend: str) -> None:
    conflicts = 0
    for field, value in CHOICES:
        problem = asked(backend, pins={field: value})
        found = pin_conflict(problem)
        best = Search(problem, problem_hardware(problem), QUICK).run().best
        assert (found is None) == (best is not None), (field, value)
        if found is not None:
            conflicts += 1
            assert found.rules, found
            assert found.instead, found
    assert 5 <= conflicts < len(CHOICES)
