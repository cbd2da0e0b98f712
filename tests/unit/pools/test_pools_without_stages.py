"""Why there is no plan over pools: the pin, the back-end's rule, or memory, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from planner.errors import NoFeasiblePlan
from planner.search.pools.problem import PoolsProblem
from tests.unequal_devices import devices, plan_of, question

POOLS = devices("slow", 2, 2.0), devices("fast", 2, 1.0)


def refused(problem: PoolsProblem) -> NoFeasiblePlan:
    with pytest.raises(NoFeasiblePlan) as caught:
        plan_of(problem)
    assert "memory of the stages" not in caught.value.binding
    assert "add devices" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("pins", "words"),
    [
        ({"pp": 9}, ("pp=9 leaves no stages", "2 to 4 stages", "drop pp=9")),
        ({"tp": 3}, ("tp=3 leaves no stages", "drop tp=3")),
        ({"tp": 3, "zero_stage": 1}, ("tp=3 leaves no stages",)),
        ({"tp": 2, "pp": 4}, ("tp=2 and pp=4 together leave no stages",)),
        ({"num_microbatches": 3}, ("num_microbatches=3 leaves no stages",)),
    ],
)
def test_pins_that_leave_no_stages_are_named(pins: dict[str, Any], words: tuple[str, ...]) -> None:
    error = refused(question(*POOLS, layers=8, **pins))
    assert error.binding == "pins"
    name = "tp" if "tp" in pins else next(iter(pins))
    assert error.where == f"--pin {name}={pins[name]}"
    assert all(word in str(error) + (error.hint or "") for word in words), str(error)


def test_a_plan_for_study_names_its_pins_too() -> None:
    asked = question(*POOLS, layers=8, tp=3)
    free = asked.model_copy(update={"constraints": asked.constraints.model_copy(update={"backends": ("any",)})})
    assert "tp=3 leaves no stages" in str(refused(free))


def test_a_rule_of_the_back_end_against_every_number_of_stages_is_named() -> None:
    asked = question(*POOLS, layers=8)
    tied = asked.model_copy(update={"model": asked.model.model_copy(update={"tie_embeddings": True})})
    error = refused(tied)
    assert error.binding == "rules of the back-end"
    assert "native.P5" in str(error)
