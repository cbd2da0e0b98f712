"""Which layers recompute or offload: what the words mean, and that whatever is given is held."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.answers.explain.why_not import why_not
from planner.errors import NoFeasiblePlan
from planner.model.load import load_model
from planner.plan.plan import Plan
from planner.plan.relief import of_stages, relieves_every_layer, relieves_first
from planner.question.problem import Constraints, Problem, Workload
from planner.search.estimate import estimate
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.search.recheck import recheck_plan
from planner.strategy.relief_layers import ReliefLayers, policies, relief_layers, relief_word
from planner.strategy.strategy import Strategy
from planner.strategy.text import complete_strategy, parse_assignments
from profiles.catalogue import load_cluster
from profiles.validation import FindingsInvalid
from solver.check import CheckFailed
from tests.exhaustive_search import exhaustive_best
from tests.sampling import drawn
from tests.search_problems import Size, random_problem

HELD = SearchOptions(top_k=0)


def asked(backend: str = "megatron", **constraints: Any) -> Problem:
    return Problem(
        model=load_model("llama-3.1-8b"),
        cluster=load_cluster("dgx-h100", 8),
        workload=Workload(global_batch_size=32, sequence_length=4096),
        constraints=Constraints(backends=(backend,), **constraints),
    )


def said(text: str, problem: Problem, layers: tuple[int, ...] | None = None) -> Plan:
    """What the command line makes of ``--strategy``."""
    values = parse_assignments([text], "--strategy")
    strategy, _ = complete_strategy(values, problem.cluster.num_devices, problem.workload.global_batch_size)
    return estimate(problem, strategy, layers, values, relief_layers(values))


@pytest.mark.parametrize(
    ("values", "layers"),
    [
        ({"recompute": "full"}, "every"),
        ({"recompute": "selective"}, "every"),
        ({"recompute_modules": "norm"}, "every"),
        ({"activation_offload": True}, "every"),
        ({"recompute": "full-where-needed"}, "where_needed"),
        ({"recompute": "selective-where-needed"}, "where_needed"),
        ({"activation_offload": "where-needed"}, "where_needed"),
        ({"recompute": "full-first-4"}, 4),
        ({"recompute": "none", "activation_offload": True}, "every"),
        ({"recompute": "none"}, "where_needed"),
        ({"tp": 8}, "where_needed"),
    ],
)
def test_the_words(values: dict[str, Any], layers: ReliefLayers) -> None:
    assert relief_layers(values) == layers


def test_a_strategy_has_the_policy_alone() -> None:
    words = {"recompute": "full-first-4", "activation_offload": "where-needed", "tp": 2}
    assert policies(words) == {"recompute": "full", "activation_offload": True, "tp": 2}
    for layers in ("every", "where_needed", 4):
        assert relief_layers({"recompute": relief_word("recompute", "full", layers)}) == layers


@pytest.mark.parametrize("word", ["full-first-0", "full-first-x", "selective-first-2", "none-where-needed", "complete"])
def test_words_that_mean_nothing_are_refused(word: str) -> None:
    with pytest.raises(FindingsInvalid):
        parse_assignments([f"recompute={word}"], "--strategy")


@pytest.mark.parametrize("backend", ["megatron", "pytorch-fsdp", "unrestricted"])
@pytest.mark.parametrize("degrees", ["tp=2", "tp=2,pp=2", "pp=2,vpp=2"])
def test_recompute_that_is_given_is_of_every_layer_though_nothing_needs_it(backend: str, degrees: str) -> None:
    problem = asked(backend)
    if backend == "pytorch-fsdp":
        degrees = "zero_stage=3"
    plan = said(f"{degrees},recompute=full", problem)
    assert plan.status != "infeasible"
    assert [sum(stage.recompute.num_layers_per_chunk) for stage in plan.stages] == [s.layers for s in plan.stages]
    needed = said(f"{degrees},recompute=full-where-needed", problem)
    assert not any(of_stages(needed))
    assert plan.breakdown_s["recompute"] > 0
    assert plan.step_time_s > needed.step_time_s
    assert plan.peak_memory_bytes < needed.peak_memory_bytes


@pytest.mark.parametrize("backend", ["torchtitan", "deepspeed"])
def test_where_needed_is_nowhere_where_every_layer_fits_without(backend: str) -> None:
    problem = asked(backend)
    degrees = {"torchtitan": "pp=2,tp=2", "deepspeed": "zero=3"}[backend]
    needed = said(f"{degrees},recompute=full-where-needed", problem)
    plain = said(f"{degrees},recompute=none", problem)
    assert plain.status != "infeasible"
    assert not any(of_stages(needed))
    assert needed.step_time_s == plain.step_time_s
    pinned = find_plan(asked(backend, pins={"recompute": "full-where-needed"}), HELD)
    recheck_plan(pinned, pinned.problem)
    assert pinned.step_time_s <= find_plan(asked(backend, pins={"recompute": "full"}), HELD).step_time_s
    assert pinned.step_time_s <= find_plan(asked(backend, pins={"recompute": "none"}), HELD).step_time_s


def test_a_back_end_that_recomputes_every_layer_or_none_takes_no_number() -> None:
    with pytest.raises(FindingsInvalid, match="every layer or none"):
        said("pp=2,recompute=full-first-3", asked("torchtitan"))
    assert relieves_every_layer(said("pp=2,recompute=full", asked("torchtitan")))


@pytest.mark.parametrize("degrees", ["tp=2", "tp=2,pp=2", "pp=2,vpp=2"])
def test_a_number_of_layers_is_held(degrees: str) -> None:
    plan = said(f"{degrees},recompute=full-first-3", asked())
    for stage in plan.stages:
        assert stage.recompute.num_layers_per_chunk == tuple(min(3, chunk.num_layers) for chunk in stage.chunks)
    dealt = said(f"{degrees},recompute=full-first-3", asked(), _layers(plan))
    assert dealt.stages == plan.stages


def test_offload_that_is_given_is_of_every_layer() -> None:
    plan = said("tp=2,activation_offload=true", asked("unrestricted"))
    assert [stage.offload.activation_layers for stage in plan.stages] == [stage.layers for stage in plan.stages]
    assert not any(of_stages(said("tp=2,activation_offload=where-needed", asked("unrestricted"))))


def test_what_does_not_fit_is_told_with_the_relief_that_was_given() -> None:
    problem = asked(memory_margin_fraction=0.95)
    for word, relieved in (("full", 32), ("full-first-3", 3), ("full-where-needed", 32)):
        plan = said(f"tp=8,recompute={word}", problem)
        assert plan.status == "infeasible"
        assert sum(plan.stages[0].recompute.num_layers_per_chunk) == relieved


def test_the_answer_says_what_was_given_filled_in_and_searched() -> None:
    plan = said("tp=2,mbs=1,recompute=full-where-needed", asked())
    assert plan.origins is not None
    origins = plan.origins
    assert origins.given == {"tp": 2, "micro_batch_size": 1, "recompute": "full-where-needed"}
    assert set(origins.chosen) == {"layers", "relieved_layers"}
    assert origins.default["sp"] is True
    assert {*origins.given, *origins.default} == set(plan.strategy)
    held = said("tp=2,recompute=full", asked(), (32,)).origins
    assert held is not None
    assert (held.given["layers"], held.given["relieved_layers"], held.chosen) == ("32", "32", {})


@pytest.mark.parametrize("backend", ["megatron", "unrestricted", "deepspeed"])
def test_a_pinned_recompute_is_of_every_layer(backend: str) -> None:
    problem = asked(backend, pins={"recompute": "full"})
    plan = find_plan(problem, HELD)
    assert relieves_every_layer(plan)
    recheck_plan(plan, problem)
    needed = asked(backend, pins={"recompute": "full-where-needed"})
    lean = find_plan(needed, HELD)
    assert lean.step_time_s < plan.step_time_s
    recheck_plan(lean, needed)
    with pytest.raises(CheckFailed, match="every layer"):
        recheck_plan(lean.model_copy(update={"problem": problem}), problem)


def test_the_best_pinned_plan_is_no_slower_than_any_estimate_of_it() -> None:
    problem = asked(pins={"recompute": "full"})
    best = find_plan(problem, HELD)
    for degrees in ("tp=1", "tp=2", "tp=4", "tp=2,pp=2", "pp=2", "tp=1,mbs=2", "pp=2,vpp=2"):
        other = said(f"{degrees},recompute=full", asked())
        assert other.status == "infeasible" or best.step_time_s <= other.step_time_s * (1 + 1e-9)


def test_a_pinned_number_of_layers_is_held() -> None:
    problem = asked(pins={"recompute": "full-first-4"})
    plan = find_plan(problem, HELD)
    recheck_plan(plan, problem)
    assert relieves_first(plan, 4)
    for degrees in ("tp=1", "tp=2", "tp=2,pp=2", "pp=2,vpp=2"):
        other = said(f"{degrees},recompute=full-first-4", asked())
        assert other.status == "infeasible" or plan.step_time_s <= other.step_time_s * (1 + 1e-9)
    every = find_plan(asked(pins={"recompute": "full"}), HELD).model_copy(update={"problem": problem})
    with pytest.raises(CheckFailed, match="the first 4 layers"):
        recheck_plan(every, problem)
    with pytest.raises(NoFeasiblePlan):
        find_plan(asked("torchtitan", pins={"recompute": "full-first-4"}), HELD)


@pytest.mark.parametrize("seed", drawn(range(5200, 5230), 10))
def test_a_pinned_number_of_layers_is_proved_best(seed: int) -> None:
    free = random_problem(seed, Size(max_devices=4, max_layers=5, max_batch=8))
    pins = {**free.constraints.pins, "recompute": f"full-first-{1 + seed % 3}", "activation_offload": False}
    problem = free.model_copy(update={"constraints": Constraints(backends=free.constraints.backends, pins=pins)})
    best, _ = exhaustive_best(problem)
    if best is None:
        with pytest.raises(NoFeasiblePlan):
            find_plan(problem, HELD)
    else:
        assert find_plan(problem, HELD).step_time_s == pytest.approx(best.step_time_s, rel=1e-9)


@pytest.mark.parametrize("backend", ["megatron", "unrestricted"])
def test_a_plan_estimated_from_its_own_decisions_gives_its_own_number(backend: str) -> None:
    """Its relief is of some layers, so neither every layer nor none would do."""
    pins = {"pp": 2, "tp": 4, "micro_batch_size": 4, "recompute": "full-where-needed"}
    forbids = ("vpp", "optimizer_offload", "activation_offload")
    problem = asked(backend, memory_margin_fraction=0.6, pins=pins, forbids=forbids)
    plan = find_plan(problem, HELD)
    assert any(of_stages(plan))
    assert not relieves_every_layer(plan)
    again = estimate(problem, plan.chosen(), _layers(plan), relief=of_stages(plan))
    assert (again.step_time_s, again.peak_memory_bytes, again.stages) == (
        plan.step_time_s,
        plan.peak_memory_bytes,
        plan.stages,
    )
    assert again.status == "feasible"
    every = estimate(problem, plan.chosen(), _layers(plan))
    assert every.step_time_s > plan.step_time_s
    wished = why_not(plan, {"recompute": "full"}, HELD)
    assert wished.other is not None
    assert relieves_every_layer(wished.other)
    assert why_not(plan, {"recompute": "full-where-needed"}, HELD).already_so


def test_relief_of_single_stages_needs_their_layers() -> None:
    with pytest.raises(FindingsInvalid, match="relieved layers are given for 1 stages"):
        estimate(asked(), replace(Strategy(dp_shard=8, num_microbatches=4), recompute="full"), relief=(3,))


def _layers(plan: Plan) -> tuple[int, ...]:
    chunks = sorted((chunk for stage in plan.stages for chunk in stage.chunks), key=lambda chunk: chunk.chunk)
    return tuple(chunk.num_layers for chunk in chunks)
