"""Packed documents in the files of each back-end, and the rules of those that pack none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.backends.maxtext.read import parse_config
from planner.backends.maxtext.version import CONFIG_FILE
from planner.backends.registry import backend, backends
from planner.backends.rules.rule import RuleInput, rule_input
from planner.errors import BackEndRefused
from planner.plan.plan import Plan
from planner.question.sequences import Packing, Sequences
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_cluster, make_plan

BASE = Strategy(tp=1, dp_shard=8, zero_stage=1, num_microbatches=4)
REPLAYED = replace(BASE, zero_stage=3, recompute="full")
PACKS = {
    "megatron": {"concatenated"},
    "torchtitan": {"concatenated"},
    "maxtext": {"concatenated", "greedy"},
    "nemo": {"greedy"},
    "hugging-face": {"concatenated", "greedy"},
    "unrestricted": {"concatenated", "greedy", "balanced"},
}
"""All other back-ends pack nothing."""


def _plan(packing: Packing | None, strategy: Strategy = BASE) -> Plan:
    plan = make_plan(strategy, cluster=make_cluster(8))
    kind = "padded" if packing is None else "packed"
    said = Sequences.model_validate({"kind": kind, "mean": 300, "packing": packing})
    workload = plan.problem.workload.model_copy(update={"sequences": said})
    return plan.model_copy(update={"problem": plan.problem.model_copy(update={"workload": workload})})


def _packing_rules(name: str, given: RuleInput) -> list[str]:
    table = backend(name).releases[0].space.rules
    return [each.rule for each in table.violations(given) if each.rule.endswith((".K2", ".K3"))]


@pytest.mark.parametrize("packing", ["concatenated", "greedy", "balanced", None])
def test_each_space_says_which_packing_it_has(packing: Packing | None) -> None:
    given = rule_input(_plan(packing))
    refused = {name for name in backends() if _packing_rules(name, given)}
    assert refused == {name for name in backends() if packing is not None and packing not in PACKS.get(name, set())}


def test_megatron_masks_between_documents_and_takes_no_ring_beside() -> None:
    emit = emitter("megatron")
    flag = "--dataloader-inter-document-masking"
    assert flag in "\n".join(emit(_plan("concatenated"), "torchrun").files.values())
    assert flag not in "\n".join(emit(_plan(None), "torchrun").files.values())
    ring = _plan("concatenated", replace(BASE, dp_shard=4, cp=2, cp_kind="ring"))
    with pytest.raises(BackEndRefused, match=r"megatron\.K3"):
        emit(ring, "torchrun")


@pytest.mark.parametrize(("packing", "way"), [("concatenated", "concat_then_split"), ("greedy", "best_fit")])
def test_maxtext_packs_as_asked(packing: Packing, way: str) -> None:
    config = parse_config(emitter("maxtext")(_plan(packing, REPLAYED), "torchrun").files[CONFIG_FILE])
    assert (config["packing"], config["grain_packing_type"]) == (True, way)
    assert config["max_segments_per_seq"] >= 1
    plain = parse_config(emitter("maxtext")(_plan(None, REPLAYED), "torchrun").files[CONFIG_FILE])
    assert plain["packing"] is False
    assert "max_segments_per_seq" not in plain


def test_the_toml_release_masks_no_documents() -> None:
    given = rule_input(_plan("concatenated"))
    newest, toml = backend("torchtitan").releases[:2]
    assert not [each for each in newest.space.rules.violations(given) if each.rule.endswith(".K2")]
    assert [each.rule for each in toml.space.rules.violations(given) if "V8" in each.rule] == ["torchtitan.V8"]
