"""What a process keeps between questions changes no answer, is bounded, and is of one question alone."""

from __future__ import annotations

from random import Random

import pytest

from planner.model.load import load_model
from planner.predict.cost.hardware import hardware_of
from planner.question.problem import Constraints, Objective, Preference, Problem, Workload
from planner.search import ground
from planner.search.find import find_plan
from planner.search.ground import Grounds
from planner.search.options import SearchOptions
from profiles.catalogue import load_cluster

NATIVE = Constraints(backends=("native",), forbids=("cp", "optimizer_offload", "activation_offload"))


def question(devices: int, constraints: Constraints, prefer: Preference = "fastest") -> Problem:
    return Problem(
        model=load_model("llama-3.1-8b"),
        cluster=load_cluster("dgx-h100", devices),
        workload=Workload(global_batch_size=32, sequence_length=4096),
        constraints=constraints,
        objective=Objective(prefer=prefer),
    )


def pinned(**pins: int) -> Constraints:
    return NATIVE.model_copy(update={"pins": pins})


QUESTIONS = [
    question(8, NATIVE),
    question(8, NATIVE, "recommended"),
    question(8, pinned(tp=2)),
    question(8, NATIVE.model_copy(update={"fits": 0.999})),
]


def answer(problem: Problem, grounds: Grounds | None) -> dict[str, object]:
    plan = find_plan(problem, SearchOptions(top_k=0, grounds=grounds)).model_dump(mode="json")
    plan["search"].pop("wall_s", None)
    return plan


def test_a_warm_answer_is_the_cold_one_to_the_bit_in_any_order() -> None:
    grounds, draw, cold = Grounds(), Random(7), [answer(each, None) for each in QUESTIONS]
    assert len({str(each) for each in cold}) == len(QUESTIONS)
    order = [*range(len(QUESTIONS)), 0, 3]
    draw.shuffle(order)
    for number in order:
        assert repr(answer(QUESTIONS[number], grounds)) == repr(cold[number])


def test_the_objective_alone_makes_no_new_ground() -> None:
    grounds, hardware = Grounds(), hardware_of(QUESTIONS[0].cluster, "bf16")
    assert grounds.of(QUESTIONS[0], hardware) is grounds.of(QUESTIONS[1], hardware)
    assert grounds.of(QUESTIONS[0], hardware) is not grounds.of(QUESTIONS[3], hardware)


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    grounds, hardware = Grounds(), hardware_of(QUESTIONS[0].cluster, "bf16")
    monkeypatch.setattr(ground, "MOST_KEPT", 2)
    asked = [question(8, pinned(tp=tp)) for tp in (1, 2, 4)]
    found = [grounds.of(each, hardware) for each in asked]
    assert grounds.of(asked[2], hardware) is found[2]
    assert grounds.of(asked[1], hardware) is found[1]
    assert grounds.of(asked[0], hardware) is not found[0]
    monkeypatch.setattr(ground, "MOST_CORES", 1)
    large = question(8, pinned(pp=1))
    assert grounds.of(large, hardware) is not grounds.of(large, hardware)
