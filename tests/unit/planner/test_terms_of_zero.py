"""What does not happen in a step is exactly nothing, and not what rounding left."""

from __future__ import annotations

import pytest

from planner.model.load import load_model
from planner.plan.plan import Plan
from planner.predict.step_terms import told_terms
from planner.question.problem import Constraints, Problem, Workload
from planner.search.estimate import estimate
from planner.strategy.text import complete_strategy, parse_assignments
from profiles.catalogue import load_cluster

NOISE = 1e-9


def estimated(backend: str, model: str, text: str, devices: int) -> Plan:
    problem = Problem(
        model=load_model(model),
        cluster=load_cluster("dgx-h100", devices),
        workload=Workload(global_batch_size=16, sequence_length=4096),
        constraints=Constraints(backends=(backend,)),
    )
    values = parse_assignments([text], "--strategy")
    strategy, _ = complete_strategy(values, devices, 16)
    return estimate(problem, strategy, None, values)


def test_what_rounding_left_is_not_told() -> None:
    """Plans of earlier versions hold it."""
    assert told_terms({"optimizer": 0.5, "compute": 2.0, "pp_bubble": 8.9e-16, "tp": 0.0, "ep": -1e-16}) == [
        ("compute", 2.0),
        ("optimizer", 0.5),
    ]
    assert told_terms({}) == []


@pytest.mark.parametrize(
    ("backend", "model"),
    [
        ("megatron", "llama-3.1-8b"),
        ("megatron", "mixtral-8x7b"),
        ("deepspeed", "llama-3.2-1b"),
        ("deepspeed", "llama-3.1-8b"),
        ("native", "llama-3.1-8b"),
    ],
)
@pytest.mark.parametrize(("text", "devices"), [("tp=1", 1), ("tp=2", 2), ("dp=2,zero_stage=3", 2), ("pp=2", 2)])
def test_a_term_is_nothing_or_more_than_rounding(backend: str, model: str, text: str, devices: int) -> None:
    plan = estimated(backend, model, text, devices)
    terms = plan.breakdown_s
    assert (terms["pp_bubble"] == 0.0) == (plan.strategy["pp"] == 1)
    assert devices > 1 or terms["dp"] == 0.0
    assert all(value == 0.0 or value > NOISE * plan.step_time_s for value in terms.values()), terms
    assert sum(terms.values()) == pytest.approx(plan.step_time_s, rel=1e-12)
