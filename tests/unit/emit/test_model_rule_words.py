"""What rules say of models that a back-end cannot build: whole sentences, and names that help."""

from __future__ import annotations

import pytest

from planner.backends.registry import backend
from planner.backends.rules.rule import RuleInput
from planner.model.load import load_model
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy

BUILD = "Megatron-LM's flags cannot build"
TITAN = "torchtitan's families do not build layers with"


def said(room: str, rule_id: str, model: str) -> str:
    given = RuleInput(Strategy(), load_model(model), Workload(global_batch_size=8, sequence_length=256), "hopper")
    rules = backend(room).releases[0].space.rules.model_rules
    return next(rule.check(given) for rule in rules if rule.id == rule_id) or ""


@pytest.mark.parametrize(
    ("room", "rule_id", "model", "words"),
    [
        ("megatron", "M2", "gemma-2-27b", f"{BUILD} layers with 4 norms instead of 2; name another --backend"),
        ("megatron", "M2", "mpt-30b", f"{BUILD} norms other than RMSNorm and LayerNorm with bias (layer_no_bias);"),
        ("megatron", "M9", "gemma-2-27b", f"{BUILD} attention with a cap on its logits;"),
        ("megatron", "M9", "olmo-2-13b", f"{BUILD} attention with one norm over all query heads together;"),
        ("megatron", "M20", "t5-11b", f"{BUILD} an encoder beside the decoder;"),
        ("torchtitan", "M2", "mistral-7b", "the family llama3 does not build attention with a sliding window"),
        ("torchtitan", "M4", "gemma-2-27b", f"{TITAN} 4 norms, the activation 'gelu_pytorch_tanh'"),
        ("torchtitan", "M4", "nemotron-h-8b", f"{TITAN} 1 norm, no MLP and no experts, an MLP without gate"),
    ],
)
def test_refusals_are_sentences(room: str, rule_id: str, model: str, words: str) -> None:
    assert said(room, rule_id, model).startswith(words)


def test_families_of_two_stacks_are_not_offered_to_a_decoder() -> None:
    offered = said("deepspeed", "M1", "bloom-176b")
    assert "llama" in offered
    assert not {"t5", "bart", "marian"} & set(offered.replace(")", "").replace(",", "").split())
