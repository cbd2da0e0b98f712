"""What a search knows of the strategies near its best plan is what a second descent would find: real searches."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from planner.backends.asked import asked_software
from planner.model.load import load_model
from planner.question.problem import Constraints, Objective, Problem, Workload
from planner.search import branch
from planner.search.across_backends import Entry, compare_backends
from planner.search.mechanisms import MECHANISMS
from planner.search.options import SearchOptions
from planner.search.recommend import BAND, Near
from profiles.catalogue import load_cluster

QUESTIONS = {
    "mixtral-8x7b": ("dgx-h100", 64, 512, 4096),
    "qwen3-30b-a3b": ("dgx-h100", 32, 512, 4096),
    "llama-3.1-8b": ("dgx-h100", 64, 256, 8192),
}


def searched(model: str) -> Entry:
    cluster, devices, batch, length = QUESTIONS[model]
    problem = Problem(
        model=load_model(model),
        cluster=load_cluster(cluster, devices),
        workload=Workload(global_batch_size=batch, sequence_length=length),
        constraints=Constraints(backends=("megatron",)),
        objective=Objective(prefer="recommended"),
    )
    fastest = compare_backends(problem, asked_software(problem), SearchOptions(top_k=3)).fastest
    assert fastest is not None
    return fastest


def near_of(entry: Entry) -> Near:
    assert entry.best is not None
    assert entry.search is not None
    below_s = math.nextafter(entry.best.step_time_s * (1 + BAND), math.inf)
    return Near(entry, entry.search, entry.best, below_s, None)


@pytest.mark.parametrize("model", QUESTIONS)
def test_what_is_known_is_what_a_second_descent_finds(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = searched(model)
    near = near_of(entry)
    part = near.part(len(MECHANISMS) + 1, common=False)
    descents = list[float]()
    descend = branch.Search.descend_waves

    def noted(search: branch.Search, cutoff_s: float) -> None:
        descents.append(cutoff_s)
        descend(search, cutoff_s)

    monkeypatch.setattr(branch.Search, "descend_waves", noted)
    known = near.collected(near.search.rules.limit_bytes, part)
    assert not descents
    near.search.alternatives.keeps_near = False
    descended = near.collected(near.search.rules.limit_bytes, part)
    assert descents == [near.below_s]
    assert known
    costs = near.search.costs
    assert {each.context(costs).strategy: each.bound_s for each in known} == pytest.approx(
        {each.context(costs).strategy: each.bound_s for each in descended}, rel=1e-9
    )


def test_it_descends_where_more_is_asked_than_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    near = near_of(searched("llama-3.1-8b"))
    near = replace(near, below_s=1.01 * near.below_s)
    descents = list[float]()
    monkeypatch.setattr(branch.Search, "descend_waves", lambda _, cutoff_s: descents.append(cutoff_s))
    near.collected(near.sure_bytes, near.part(2, common=False))
    assert descents == [near.below_s]
