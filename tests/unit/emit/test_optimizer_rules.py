"""Which optimizers each back-end refuses, and with which sharding it runs the others."""

from __future__ import annotations

import pytest

from planner.backends.registry import backend, backends
from planner.backends.rules.rule import RuleInput
from planner.question.optimizers import OPTIMIZERS
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.plan_factory import make_model

ADAM = {"adam", "adam_bf16_states", "sgd"}
HAVE: dict[str, set[str]] = {
    "megatron": {*ADAM, "adam_precision_aware", "muon", "lion"},
    "megatron-bridge": {*ADAM, "adam_precision_aware", "muon", "lion"},
    "mindspeed": {"adam", "sgd", "muon"},
    "nemo": {*ADAM, "adam_precision_aware"},
    "deepspeed": {"adam", "sgd", "muon", "lion"},
    "torchtitan": {"adam"},
    "native": {"adam"},
    "maxtext": {"adam"},
    "accelerate": {"adam", "sgd", "adam_8bit", "adafactor"},
    "megatron-deepspeed": {"adam", "sgd"},
    "llm-foundry": {"adam", "lion"},
    "megascale": {"adam"},
    "nanotron": {"adam", "sgd"},
    "nemo-automodel": {"adam", "sgd", "muon"},
    "pytorch-fsdp": {"adam", "sgd"},
    "hugging-face": {"adam", "sgd", "adam_8bit", "adafactor", "lion"},
}
"""With plain data parallelism and no sharding."""


def refusals(room: str, optimizer: str, strategy: Strategy) -> list[str]:
    """Findings that another optimizer than Adam adds."""

    def found(name: str) -> set[tuple[str, str]]:
        workload = Workload.model_validate({"global_batch_size": 8, "sequence_length": 1024, "optimizer": name})
        given = RuleInput(strategy, make_model(), workload, "hopper")
        rules = backend(room).releases[0].space.rules
        return {(each.rule, each.message) for each in rules.violations(given)}

    return sorted(rule for rule, _ in found(optimizer) - found("adam"))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("room", HAVE)
def test_each_back_end_has_what_its_release_has(room: str, optimizer: str) -> None:
    strategy = Strategy(dp_shard=8, zero_stage=int(optimizer in ("adam_bf16_states", "adam_precision_aware")))
    assert (not refusals(room, optimizer, strategy)) is (optimizer in HAVE[room])


@pytest.mark.parametrize("optimizer", ["muon", "lion"])
@pytest.mark.parametrize(("zero", "replicate", "taken"), [(0, 1, True), (1, 1, True), (1, 2, False), (2, 1, False)])
def test_megatron_deals_whole_weights_out(optimizer: str, zero: int, replicate: int, *, taken: bool) -> None:
    strategy = Strategy(dp_shard=8 // replicate, dp_replicate=replicate, zero_stage=zero)
    assert (refusals("megatron", optimizer, strategy) == []) is taken


def test_bridges_files_keep_whole_states_of_muon() -> None:
    assert refusals("megatron-bridge", "muon", Strategy(dp_shard=8, zero_stage=1)) == ["megatron-bridge.M45"]
    assert refusals("megatron-bridge", "sgd", Strategy(dp_shard=8, zero_stage=1)) == []


def test_torchs_adafactor_runs_on_whole_weights_only() -> None:
    assert refusals("accelerate", "adafactor", Strategy(dp_shard=8, zero_stage=3)) == ["accelerate.A11"]
    assert refusals("accelerate", "adam_8bit", Strategy(dp_shard=8, zero_stage=3)) == []
    assert refusals("accelerate", "lion", Strategy(dp_shard=8, zero_stage=1)) == []


@pytest.mark.parametrize("room", sorted(set(backends()) - {"unrestricted"}))
def test_every_back_end_says_which_optimizers_it_has(room: str) -> None:
    """None takes an optimizer because nobody asked whether it has it."""
    plain = Strategy(dp_shard=8, zero_stage=0)
    assert all(refusals(room, name, plain) for name in OPTIMIZERS if name not in HAVE[room])
