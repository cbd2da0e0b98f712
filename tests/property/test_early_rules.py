"""A rule that is asked early never refuses what it would take once the strategy is complete."""

from __future__ import annotations

from operator import itemgetter

import numpy as np
import pytest

from planner.model.load import load_model
from planner.question.problem import UNRESTRICTED, Constraints, Problem, Workload
from planner.search.backend_rules import BackEndRules
from planner.search.early_rules import OF_CORES, OF_LAYOUTS, OF_SHARDINGS, EarlyRules, KeptVerdicts
from planner.search.reliefs import relief_choices
from planner.search.sample import random_strategies
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from tests.sampling import drawn

BACKENDS = ("megatron", "megatron==23.04", "megatron-deepspeed", "mindspeed", "maxtext", "native", "deepspeed")
MORE = ("accelerate", "torchtitan", "nemo-automodel", "nanotron", "megatron-bridge")
DRAWN = 250


def _problem(model: str, backend: str) -> Problem:
    return Problem(
        model=load_model(model),
        cluster=load_cluster("dgx-h100", 32),
        workload=Workload(global_batch_size=96, sequence_length=2048),
        constraints=Constraints(backends=(backend,)),
    )


ASKED = [
    *((backend, "gpt-22b") for backend in (*BACKENDS, *MORE) if backend != "mindspeed"),
    *((backend, "mixtral-8x7b") for backend in (*BACKENDS, *MORE)),
]


@pytest.mark.parametrize(("backend", "model"), drawn(ASKED, len(BACKENDS) + len(MORE), kind=itemgetter(0)))
def test_what_falls_early_is_refused_when_it_is_complete(backend: str, model: str) -> None:
    free = _problem(model, UNRESTRICTED)
    reliefs = relief_choices(free)
    some = [each for _, each in zip(range(DRAWN), random_strategies(free, seed=3), strict=False)]
    rows, rules = StrategyRows.of(some, reliefs), BackEndRules(_problem(model, backend))

    def strategy(rows: StrategyRows, at: int) -> Strategy:
        return rows.strategy(at, reliefs)

    refused, early = np.array([rules.refuses(each) for each in some]), EarlyRules(rules, strategy)
    assert refused.any()
    assert not early.refused(rows, OF_SHARDINGS).any(), "no rule is asked before it refused something"
    kept, places = KeptVerdicts(rules, strategy), range(len(some))
    assert [kept.refuses(rows, at) for at in places] == refused.tolist()
    assert [kept.refuses(rows.slice(at, at + 1), 0) for at in places] == refused.tolist(), "asked a second time"
    assert early.learn(some[int(np.flatnonzero(refused)[0])])
    for each in some:
        early.learn(each)
    before = np.zeros(len(some), dtype=np.bool_)
    for level in (OF_CORES, OF_LAYOUTS, OF_SHARDINGS):
        fallen = early.refused(rows, level)
        assert not (fallen & ~refused).any(), "a verdict that leans on what was not decided"
        assert not (before & ~fallen).any(), "what fell with a core falls with its layouts"
        before = fallen
    assert before.any(), "some rule must be able to answer before the strategy is complete"
