"""With experts, a plan of Megatron-LM is the optimum under the back-end's own dispatcher and under each pinned one."""

from __future__ import annotations

import itertools
from operator import itemgetter

import numpy as np
import pytest

from planner.backends.asked import problem_hardware
from planner.model.spec import ModelSpec
from planner.question.problem import Constraints, Problem, Workload
from planner.search.branch import Search
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import DISPATCHERS
from tests.declared_space import all_rows
from tests.exhaustive_search import exhaustive_best
from tests.plan_factory import make_cluster, make_mla_model, make_moe_model
from tests.sampling import drawn

QUICK = SearchOptions(top_k=0)
PINS: dict[str, int | str | bool] = {"optimizer_offload": False, "activation_offload": False, "micro_batch_size": 1}
WORDS = (None, *DISPATCHERS)
MODELS = {"experts": make_moe_model(4), "latent": make_mla_model(4)}
BOTH = list(itertools.product(WORDS, MODELS))


def problem(word: str | None, model: ModelSpec, devices: int = 4) -> Problem:
    pins = PINS | ({} if word is None else {"dispatcher": word}) | {"recompute": "selective"}
    return Problem(
        model=model,
        cluster=make_cluster(devices),
        workload=Workload(global_batch_size=4, sequence_length=1024),
        constraints=Constraints(backends=("megatron",), pins=pins),
    )


@pytest.mark.parametrize(("word", "model"), drawn(BOTH, len(WORDS), kind=itemgetter(0)))
def test_nothing_beats_the_plan(word: str | None, model: str) -> None:
    asked = problem(word, MODELS[model])
    best, _ = exhaustive_best(asked)
    plan = find_plan(asked, QUICK)
    assert best is not None
    assert plan.status == "optimal"
    assert plan.step_time_s == pytest.approx(best.step_time_s, rel=1e-9), best
    assert plan.lower_bound_s == plan.step_time_s


@pytest.mark.parametrize("word", WORDS)
def test_the_declared_dispatchers_are_what_the_search_enumerates(word: str | None) -> None:
    asked = problem(word, make_moe_model(4))
    found, wanted = _enumerated(asked), all_rows(asked, 4)
    seen = [_sent(rows) for rows in (found, wanted)]
    assert seen[0] == seen[1]
    usual = {(1, 1, 0), (2, 1, 2), (4, 1, 2), (1, 2, 0), (2, 2, 0), (1, 4, 0)}
    code = None if word is None else DISPATCHERS.index(word)
    assert seen[0] <= {(ep, etp, own if code is None or ep == 1 else code) for ep, etp, own in usual}
    assert {ep for ep, _, _ in seen[0]} == {1, 2, 4}


def _sent(rows: StrategyRows) -> set[tuple[int, int, int]]:
    return set(zip(rows.ep.tolist(), rows.etp.tolist(), rows.dispatcher.tolist(), strict=True))


def _enumerated(asked: Problem) -> StrategyRows:
    space = Search(asked, problem_hardware(asked), QUICK).space
    layouts, key = space.layouts(space.cores, np.arange(len(space.cores)))
    return space.shardings(layouts, key)[0]
