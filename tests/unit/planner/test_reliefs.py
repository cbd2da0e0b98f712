"""The reliefs tried: all that a back-end runs and that free something; what is left out is never better."""

from __future__ import annotations

import numpy as np
import pytest

from planner.backends.asked import the_software
from planner.model.load import load_model
from planner.model.operators import layer_operators
from planner.model.recompute import region
from planner.predict.layer_keys import KEY_COLUMNS, LayerKeys
from planner.predict.memory.activations import saved_bytes
from planner.question.problem import Constraints, Problem, Workload
from planner.question.routing import EVEN
from planner.search.backend_rules import BackEndRules
from planner.search.reliefs import SETS, relief_choices, selective_sets
from planner.strategy.strategy import Relief, Strategy
from profiles.catalogue import load_cluster

MODELS = ("llama-3.1-8b", "mixtral-8x7b", "deepseek-v3")
BACKENDS = ("megatron", "megatron==23.04", "mindspeed", "maxtext", "native", "torchtitan", "unrestricted")
KEYS = {"tp": 2, "cp": 2, "ring": 1, "sp": 1, "ep": 1, "etp": 1, "micro_batch_size": 3}


def _problem(model: str, backend: str) -> Problem:
    return Problem(
        model=load_model(model),
        cluster=load_cluster("dgx-h100", 8),
        workload=Workload(global_batch_size=8, sequence_length=4096),
        constraints=Constraints(backends=(backend,)),
    )


def _kept_bytes(problem: Problem, relief: Relief) -> list[float]:
    """What one layer of each kind keeps."""
    columns = {name: np.array([float(KEYS.get(name, 1))]) for name in KEY_COLUMNS}
    keys = LayerKeys(**columns, sequence_length=problem.workload.sequence_length, routing=EVEN)
    physics, hidden = the_software(problem).release.physics, problem.model.hidden_size
    kinds = range(len(problem.model.layer_kinds))
    operators = [layer_operators(problem.model, kind) for kind in kinds]
    return [float(saved_bytes(each, keys, relief, hidden, physics)[0]) for each in operators]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_set_that_is_left_out_keeps_as_much_as_a_smaller_one_that_is_tried(model: str, backend: str) -> None:
    problem = _problem(model, backend)
    rules, tried = BackEndRules(problem), selective_sets(problem)
    operators = [layer_operators(problem.model, kind) for kind in range(len(problem.model.layer_kinds))]
    ids = {rule.id for rule in the_software(problem).release.space.rules.strategy_rules}
    assert ids or backend == "unrestricted"
    for modules in (each for each in SETS if each not in tried):
        strategy = Strategy(recompute="selective", recompute_modules=modules)
        if {"recompute_modules"} & {name for found in rules.broken(strategy) for name in found.fields}:
            continue
        smaller = [each for each in tried if set(each) < set(modules)]
        reliefs = [Relief(), *(Relief("selective", each) for each in smaller)]
        kept = _kept_bytes(problem, Relief("selective", modules))
        same = [relief for relief in reliefs if np.allclose(_kept_bytes(problem, relief), kept, rtol=1e-12)]
        assert same, modules
        for each in operators:
            again = set().union(*(region(each, module) for module in modules))
            assert any(set().union(*(region(each, module) for module in one.modules)) <= again for one in same)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_set_that_is_tried_frees_something_and_none_is_tried_twice(model: str, backend: str) -> None:
    problem = _problem(model, backend)
    if the_software(problem).release.space.rules.model_rules and BackEndRules(problem).always():
        return
    reliefs, none = relief_choices(problem), _kept_bytes(problem, Relief())
    assert len(set(reliefs)) == len(reliefs)
    assert reliefs[0] == Relief()
    for relief in reliefs[1:]:
        assert any(np.array(_kept_bytes(problem, relief)) < np.array(none)), relief


def test_the_core_of_attention_is_tried_where_scores_are_written() -> None:
    assert selective_sets(_problem("gpt3-175b", "megatron==23.04")) == [("attention_core",)]
    assert not any("attention_core" in each for each in selective_sets(_problem("mixtral-8x7b", "megatron")))


def test_a_dense_model_may_recompute_the_mlp_alone() -> None:
    assert selective_sets(_problem("llama-3.1-8b", "megatron")) == [("mlp",)]
