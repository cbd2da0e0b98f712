"""``--training`` and the document that it means."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from planner.cli.training_flag import training_of
from planner.errors import DocumentInvalid
from planner.question.problem import Workload
from planner.question.training import EVERY_TARGET, Training


def test_options_follow_the_kind() -> None:
    said = training_of("qlora,rank=64,targets=q+v,dora,task=dpo,reference=shared,double_quantization=false")
    found = Training.model_validate(said)
    assert (found.kind, found.rank, found.targets, found.dora) == ("qlora", 64, ("q", "v"), True)
    assert (found.reference_at, found.stored, found.double_quantization) == ("shared", "nf4", False)
    assert training_of(None) is None


@pytest.mark.parametrize("text", ["sft", "lora,rank", "lora,rank=8,rank=9", ""])
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(DocumentInvalid):
        training_of(text)


WRONG: tuple[dict[str, Any], ...] = (
    {"kind": "full", "base": "nf4"},
    {"kind": "lora", "base": "nf4"},
    {"kind": "qlora", "base": "bf16"},
    {"kind": "full", "dora": True},
    {"kind": "full", "ends": True},
    {"kind": "lora", "reference": "shared"},
    {"kind": "full", "task": "dpo", "reference": "shared"},
    {"kind": "lora", "targets": "q,q"},
    {"kind": "lora", "targets": "w1"},
    {"kind": "lora", "rank": 0},
)


@pytest.mark.parametrize("said", WRONG, ids=str)
def test_what_does_not_go_together_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Training.model_validate(said)


def test_a_word_is_a_kind_and_silence_leaves_the_question_as_it_was() -> None:
    said = {"global_batch_size": 8, "sequence_length": 128}
    plain = Workload.model_validate(said)
    assert "training" not in plain.model_dump(mode="json")
    lora = Workload.model_validate(said | {"training": "lora"})
    assert lora.trained.adapters
    assert lora.trained.targets == EVERY_TARGET
    assert Workload.model_validate(lora.model_dump(mode="json")) == lora
    assert lora.tokens_per_step == 8 * 128
    assert Workload.model_validate(said | {"training": {"task": "dpo"}}).tokens_per_step == 2 * 8 * 128
