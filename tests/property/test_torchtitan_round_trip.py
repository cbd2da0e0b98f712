"""The files of both dialects say exactly the plan, and can say every plan of the space."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import strategies as st

from planner.backends.torchtitan.read import read_back
from planner.backends.torchtitan.version import VERSIONS
from planner.backends.torchtitan.write import violations_for
from planner.plan.plan import Plan
from tests.drawn_from_space import drawn_plans, question
from tests.emitter import emitter
from tests.plan_strategies import plans
from tests.round_trip import as_spelled, assert_comes_back, outcomes_of_reading_back
from tests.torchtitan_cases import random_plan

emit = emitter("torchtitan")


@st.composite
def near_plans(draw: st.DrawFn) -> Plan:
    """Mostly what torchtitan can say; switches that it cannot are drawn too."""
    plan = random_plan(random.Random(draw(st.integers(0, 2**32))))
    changed = replace(
        plan.chosen(),
        zero_stage=draw(st.integers(0, 3)),
        overlap_grad_reduce=draw(st.booleans()),
        overlap_ep=draw(st.booleans()),
        optimizer_offload=draw(st.sampled_from([False, False, True])),
    )
    keep = draw(st.booleans())
    return plan if keep else plan.model_copy(update={"strategy": changed.to_dict()})


@pytest.mark.parametrize("version", VERSIONS)
def test_reading_back_gives_the_emitted_plan(version: str) -> None:
    outcomes = outcomes_of_reading_back(
        st.one_of(*[near_plans()] * 5, plans()).map(lambda plan: as_spelled(plan, f"torchtitan=={version}")),
        lambda plan: emit(plan, "torchrun", version),
        read_back,
        refusals=lambda plan: violations_for(plan, version),
        max_examples=400,
    )
    assert outcomes["emitted"] >= 15, outcomes
    assert outcomes["refused"] >= 20, outcomes


@pytest.mark.parametrize(
    ("backend", "model", "devices"),
    [
        ("torchtitan", "llama-3.1-8b", 8),
        ("torchtitan", "llama-3.1-70b", 64),
        ("torchtitan", "qwen3-30b-a3b", 32),
        ("torchtitan", "deepseek-v2", 128),
        ("torchtitan==0.2.2", "llama-3.1-8b", 16),
        ("torchtitan==0.2.2", "deepseek-v2", 128),
    ],
)
def test_every_plan_of_the_space_is_written_and_comes_back(backend: str, model: str, devices: int) -> None:
    problem = question(model, "dgx-h100", devices)
    seen = [assert_comes_back(plan) for plan in drawn_plans(problem, backend, wanted=12)]
    assert len(seen) >= 6
