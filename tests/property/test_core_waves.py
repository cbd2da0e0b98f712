"""Waves of cores change nothing but the work: against the search that costs all cores at once."""

from __future__ import annotations

import numpy as np
import pytest

from planner.backends.asked import problem_hardware
from planner.question.problem import Problem
from planner.search import core_waves
from planner.search.branch import Search
from planner.search.core_waves import CoreWaves, core_bounds
from planner.search.options import SearchOptions
from planner.search.search_result import SearchResult
from tests.sampling import drawn, runs_whole
from tests.search_problems import Size, random_problem

SMALL = Size(max_devices=8, max_layers=8, max_batch=16, narrowings=1)
SEEDS = drawn(range(6000, 6060), 15, kind=lambda seed: seed % 3)
FEWEST = (30, 20) if runs_whole() else (0, 0)
"""Of these questions more have several waves, and more have a plan."""
BACKENDS = ("unrestricted", "megatron", "deepspeed")


def problems() -> list[Problem]:
    return [random_problem(seed, SMALL, BACKENDS[seed % len(BACKENDS)]) for seed in SEEDS]


def searched(problem: Problem) -> tuple[Search, SearchResult]:
    search = Search(problem, problem_hardware(problem), SearchOptions(top_k=2))
    return search, search.run()


@pytest.fixture
def many_waves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waves even for a few cores, each hardly slower than the one before."""
    monkeypatch.setattr(core_waves, "CORE_BATCH", 8)
    monkeypatch.setattr(core_waves, "FIRST_WAVE", 1.01)


def waves_of(search: Search) -> CoreWaves:
    return CoreWaves(search.costs, search.space.cores, search.rules.limit_bytes)


def test_the_plan_and_its_proof_are_the_same_in_waves(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = [searched(problem)[1] for problem in problems()]
    monkeypatch.setattr(core_waves, "CORE_BATCH", 8)
    monkeypatch.setattr(core_waves, "FIRST_WAVE", 1.01)
    several = found = 0
    for problem, expected in zip(problems(), at_once, strict=True):
        search, result = searched(problem)
        several += search.waves.wave(1) is not None
        assert result.complete
        assert (result.best is None) == (expected.best is None)
        assert (result.bounded, result.enumerated) == (expected.bounded, expected.enumerated)
        if result.best is not None and expected.best is not None:
            assert result.best.step_time_s == pytest.approx(expected.best.step_time_s, rel=1e-12)
            assert result.lower_bound_s == pytest.approx(expected.lower_bound_s, rel=1e-12)
            found += 1
        else:
            assert result.pruned == expected.pruned, "without a plan every wave is looked at"
    assert several > FEWEST[0]
    assert found > FEWEST[1]


@pytest.mark.usefixtures("many_waves")
def test_waves_hold_every_core_once_and_bound_what_comes_after_them() -> None:
    several = 0
    for problem in problems():
        search = Search(problem, problem_hardware(problem), SearchOptions(top_k=0))
        cores, waves, seen, number = search.space.cores, waves_of(search), [], 0
        if len(cores) == 0:
            assert waves.wave(0) is None
            assert waves.least_bound_s == np.inf
            continue
        bounds = core_bounds(search.costs, cores, search.costs.keyed(cores), search.rules.limit_bytes)
        while (wave := waves.wave(number)) is not None:
            assert wave.cores.bounds == pytest.approx(bounds[wave.index], rel=1e-12)
            seen.append(wave.index)
            rest = np.setdiff1d(np.arange(len(cores)), np.concatenate(seen))
            assert wave.rest_s <= bounds[rest].min(initial=np.inf)
            number += 1
        assert sorted(np.concatenate(seen).tolist()) == list(range(len(cores)))
        assert waves_of(search).least_bound_s == pytest.approx(bounds.min(), rel=1e-12)
        several += number > 1
    assert several > FEWEST[0]
