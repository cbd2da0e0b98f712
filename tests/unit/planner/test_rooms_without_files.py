"""A search of a prediction-only generation of software stays inside its published limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import pytest

from planner.backends.asked import inside
from planner.backends.registry import backend, software
from planner.backends.rules.rule import RuleInput
from planner.question.problem import Workload
from planner.search.backend_rules import BackEndRules
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.search.sample import random_strategies
from planner.strategy.strategy import Strategy
from tests.drawn_from_space import question
from tests.plan_factory import make_model, make_moe_model

PLAIN = ("tp", "cp", "ep", "pp")


def no_model_axes(s: Strategy) -> bool:
    return all(getattr(s, axis) == 1 for axis in PLAIN)


LIMITS: dict[str, Callable[[Strategy], bool]] = {
    "nanotron": lambda s: (
        s.cp == s.ep == s.vpp == s.dp_replicate == 1
        and s.zero_stage <= 1
        and s.schedule in ("1f1b", "gpipe")
        and (s.schedule == "gpipe" or s.num_microbatches >= s.pp - 1)
        and (s.overlap_grad_reduce, s.overlap_param_gather, s.overlap_tp) == (True, False, False)
        and s.recompute != "selective"
        and 8 % s.tp == 0
    ),
    "pytorch-fsdp": lambda s: no_model_axes(s) and s.zero_stage != 1 and not s.optimizer_offload,
    "llm-foundry": lambda s: no_model_axes(s) and s.zero_stage != 1 and s.dp_replicate == 1,
    "hugging-face": lambda s: no_model_axes(s) and s.zero_stage == 0,
    "nemo": lambda s: s.schedule in ("1f1b", "interleaved") and not s.overlap_ep and not s.optimizer_offload,
    "nemo-automodel": lambda s: (
        s.etp == 1
        and (s.zero_stage == 1) == (s.pp > 1)
        and s.schedule not in ("dualpipev", "zb_h1")
        and s.cp_kind != "all_to_all"
        and not (s.pp > 1 and s.overlap_grad_reduce)
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_every_strategy_of_the_search_is_inside_the_published_limits(name: str) -> None:
    problem = inside(question("llama-3.1-8b", "dgx-a100-80g", 16), software(name))
    rules, kept = BackEndRules(problem), list[Strategy]()
    for strategy in islice(random_strategies(problem, 3), 400):
        if not rules.refuses(strategy):
            assert LIMITS[name](strategy), strategy
            kept.append(strategy)
    assert len(kept) >= 50 or name == "hugging-face"
    if name == "nanotron":
        assert {strategy.sp for strategy in kept if strategy.tp > 1} == {True, False}


@pytest.mark.parametrize("name", ["nanotron", "pytorch-fsdp", "llm-foundry", "nemo-automodel"])
def test_a_searched_plan_is_inside_them_and_breaks_no_rule(name: str) -> None:
    problem = inside(question("llama-3.1-8b", "dgx-a100-80g", 16), software(name))
    strategy = find_plan(problem, SearchOptions(compare=False, top_k=0)).chosen()
    assert LIMITS[name](strategy)
    assert BackEndRules(problem).messages(strategy) == []


GOOD = Strategy(dp_shard=4, num_microbatches=4, zero_stage=3)


@pytest.mark.parametrize(
    ("name", "rule", "strategy", "first_field"),
    [
        ("nanotron", "P1", Strategy(pp=4, num_microbatches=2, overlap_param_gather=False), "num_microbatches"),
        ("nanotron", "T1", Strategy(tp=16, sp=True, overlap_param_gather=False), "tp"),
        ("nanotron", "C1", Strategy(cp=2, cp_kind="ring", overlap_param_gather=False), "tp"),
        ("nanotron", "C4", replace(GOOD, overlap_param_gather=False), "zero_stage"),
        ("nanotron", "C6", replace(GOOD, zero_stage=1), "overlap_grad_reduce"),
        ("pytorch-fsdp", "C1", replace(GOOD, tp=2), "tp"),
        ("llm-foundry", "C4", replace(GOOD, dp_replicate=2), "zero_stage"),
        ("llm-foundry", "C5", replace(GOOD, recompute="selective", recompute_modules=("norm",)), "recompute"),
        ("hugging-face", "C4", GOOD, "zero_stage"),
        ("nemo", "T1", replace(GOOD, tp=2, overlap_tp=True), "overlap_tp"),
        ("nemo", "C3", Strategy(pp=2, vpp=2, schedule="zbv", num_microbatches=4), "schedule"),
        ("nemo-automodel", "D1", replace(GOOD, tp=2, sp=True, zero_stage=0), "zero_stage"),
        ("nemo-automodel", "D2", replace(GOOD, dp_replicate=4, dp_shard=1), "dp_replicate"),
        ("nemo-automodel", "P1", Strategy(pp=4, num_microbatches=2), "num_microbatches"),
        (
            "nemo-automodel",
            "C3",
            Strategy(pp=4, vpp=2, schedule="interleaved", num_microbatches=6, microbatch_group_size=4),
            "schedule",
        ),
    ],
)
def test_a_strategy_outside_is_refused_by_a_rule_that_names_its_fields(
    name: str, rule: str, strategy: Strategy, first_field: str
) -> None:
    workload = Workload(global_batch_size=strategy.global_batch_size, sequence_length=4096)
    given = RuleInput(strategy, make_model(num_kv_heads=8), workload)
    found = {each.rule: each.fields for each in backend(name).releases[0].space.rules.violations(given)}
    assert found[f"{name}.{rule}"][0] == first_field


def test_switches_without_meaning_break_no_column() -> None:
    """One rank: whatever the overlap switches and the ZeRO stage say, nothing is sent."""
    workload = Workload(global_batch_size=4, sequence_length=4096)
    for name in LIMITS:
        given = RuleInput(Strategy(num_microbatches=4, overlap_tp=True), make_model(), workload)
        assert backend(name).releases[0].space.rules.violations(given) == [], name


@pytest.mark.parametrize("name", [*LIMITS, "torchtitan", "native", "maxtext", "accelerate"])
def test_rules_name_fields_of_a_strategy(name: str) -> None:
    for release in backend(name).releases:
        for rule in release.space.rules.strategy_rules:
            assert set(rule.fields) <= {*Strategy.__dataclass_fields__, "dp"}, rule.id
            assert rule.fields, rule.id
        for rule in release.space.rules.model_rules:
            assert rule.fields == (), rule.id


def test_experts_may_overlap_nothing_in_automodel() -> None:
    strategy = Strategy(dp_shard=4, ep=4, zero_stage=3, num_microbatches=2, overlap_ep=True)
    workload = Workload(global_batch_size=strategy.global_batch_size, sequence_length=4096)
    found = software("nemo-automodel").release.space.rules.violations(RuleInput(strategy, make_moe_model(), workload))
    assert [each.rule for each in found] == ["nemo-automodel.C7"]


EARLY = [
    ("2.1.0", "C4", Strategy(dp_shard=4, zero_stage=2, num_microbatches=2), "zero_stage"),
    ("2.2.0", "C4", Strategy(dp_shard=4, zero_stage=3, num_microbatches=2), "zero_stage"),
    ("2.1.0", "C1", Strategy(tp=2, ep=2, dp_shard=4, num_microbatches=2), "etp"),
    ("2.2.0", "C5", Strategy(dp_shard=4, recompute="selective", recompute_modules=("norm",)), "recompute"),
]


@pytest.mark.parametrize(("version", "rule", "strategy", "field"), EARLY)
def test_early_nemo_refuses_what_came_later(version: str, rule: str, strategy: Strategy, field: str) -> None:
    """Megatron-Core's FSDP, experts' own tensor parallelism, sets of modules: refused early, taken by the default."""
    workload = Workload(global_batch_size=strategy.global_batch_size, sequence_length=4096)
    given = RuleInput(strategy, make_moe_model(), workload)
    early, today = (software(name).release.space.rules.violations(given) for name in (f"nemo=={version}", "nemo"))
    assert field in {each.rule: each.fields for each in early}[f"nemo.{rule}"]
    assert today == []
