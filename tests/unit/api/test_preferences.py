"""The plan that a question prefers over the wire."""

from __future__ import annotations

from typing import Any

import pytest

from api.client.question_body import body_of
from api.http.document_check import checked_document
from api.wire.questions import PlanQuestion
from planner.model.load import load_model
from planner.question.problem import Objective, Preference, Problem, Workload
from profiles.catalogue import load_cluster

ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "cluster": "dgx-h100",
    "workload": {"global_batch_size": 8, "sequence_length": 4096},
}


@pytest.mark.parametrize(
    ("said", "prefer"),
    [
        ({}, None),
        ({"prefer": "fastest"}, "fastest"),
        ({"objective": {"minimize": "step_time"}}, None),
        ({"objective": {"prefer": "fastest"}}, "fastest"),
        ({"objective": {"prefer": "recommended"}}, "recommended"),
        ({"objective": {"prefer": "recommended"}, "prefer": "fastest"}, "fastest"),
    ],
)
def test_what_is_said_last_counts(said: dict[str, Any], prefer: Preference | None) -> None:
    question = checked_document(PlanQuestion, {**ASKED, **said})
    assert question.prefer == prefer
    # Sent on by a client it still says the same.
    assert PlanQuestion.model_validate(body_of(question)).prefer == prefer


@pytest.mark.parametrize("prefer", ["fastest", "recommended"])
def test_a_whole_problem_keeps_its_preference(prefer: Preference) -> None:
    problem = Problem(
        model=load_model("llama-3.1-8b"),
        cluster=load_cluster("dgx-h100", 8),
        workload=Workload(global_batch_size=8, sequence_length=4096),
        objective=Objective(prefer=prefer),
    )
    assert PlanQuestion.model_validate(body_of(problem)).prefer == prefer
    assert PlanQuestion(**{**ASKED, "objective": Objective(prefer=prefer)}).prefer == prefer
