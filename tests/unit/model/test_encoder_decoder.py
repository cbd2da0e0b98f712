"""Encoder-decoders and encoders of the BERT kind: operators, FLOPs of two sequences, documents, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from planner.model.builtin import builtin_model
from planner.model.flops import forward_flops, forward_flops_per_token, source_tokens
from planner.model.hf_config import model_from_hf_config
from planner.model.operator import Operator
from planner.model.operators import embedding_operators, head_operators, layer_operators
from planner.model.parameters import layer_parameters, total_parameters
from planner.model.spec import ModelSpec
from planner.model.traced import model as tracing
from planner.question.problem import Problem, Workload
from profiles.errors import DocumentInvalid
from profiles.validation import FindingsInvalid
from tests.encoder_decoders import T5, t5
from tests.plan_factory import make_cluster, make_model

WIDTH, HEADS, HEAD, INNER = 96, 6, 16, 112


def _named(operators: tuple[Operator, ...]) -> dict[str, Operator]:
    return {operator.name: operator for operator in operators}


def _decoder_kind(model: ModelSpec) -> int:
    assert model.encoder is not None
    return model.encoder.num_kinds


def test_layers_are_the_encoders_then_the_decoders() -> None:
    model = t5()
    assert model.num_layers == 9
    assert model.encoder is not None
    assert (model.encoder.num_layers, model.encoder.num_kinds) == (5, 2)
    first, others = model.layer_kinds[0], model.layer_kinds[1]
    # One table a stack, held by its first layer.
    assert layer_parameters(model, 0) - layer_parameters(model, 1) == 32 * HEADS
    assert [kind.cross is None for kind in model.layer_kinds] == [True, True, False, False]
    assert first.attention != others.attention


def test_cross_attention_projects_keys_and_values_of_the_source() -> None:
    model = t5()
    found = _named(layer_operators(model, _decoder_kind(model)))
    assert forward_flops(found["cross_queries"], 64) == 2 * WIDTH * HEADS * HEAD
    # Half as many source tokens as tokens: half of the work for each of the layer's tokens.
    assert forward_flops(found["cross_key_values"], 64, source_length=32) == 0.5 * 2 * WIDTH * 2 * HEADS * HEAD
    assert forward_flops(found["cross_core"], 64, source_length=32) == 2 * 32 * HEADS * 2 * HEAD
    assert found["cross_key_values"].saved_width == 2 * HEADS * HEAD
    assert found["cross_core"].saved_width == HEADS * HEAD
    assert list(found)[-1] == "mlp_residual"


def test_flops_of_two_sequences_add_up() -> None:
    model, target, source = t5(), 48, 120
    mlp, square = 4.0 * WIDTH * INNER, 8.0 * WIDTH * HEADS * HEAD
    encoder = 5 * (mlp + square + 4.0 * source * HEADS * HEAD)
    own = mlp + 1.5 * square + 4.0 * target * HEADS * HEAD + 4.0 * source * HEADS * HEAD
    cross = 0.5 * square * source / target
    expected = source / target * encoder + 4 * (own + cross) + 2.0 * WIDTH * 1024
    assert forward_flops_per_token(model, target, causal=False, source_length=source) == pytest.approx(expected)


def test_whisper_always_reads_as_many_tokens() -> None:
    model = model_from_hf_config({"model_type": "whisper"}, "x", "config.json")
    assert source_tokens(model, 448) == source_tokens(model, 448, 1500) == 1500
    assert source_tokens(t5(), 448) == 448
    assert source_tokens(t5(), 448, 100) == 100


def test_the_encoders_output_is_kept_once_for_all_decoder_layers() -> None:
    model = t5()
    ends = _named(embedding_operators(model))
    assert ends["encoder_states"].saved_width == WIDTH
    kept = [each for each in layer_operators(model, 3) if each.of_source and each.saved_from == "encoder_states"]
    assert kept == []
    assert all(each.of_source for name, each in ends.items() if name != "token_embedding")


def test_a_bert_has_segments_and_a_transform_before_its_head() -> None:
    model = model_from_hf_config({"model_type": "bert"}, "x", "config.json")
    assert total_parameters(model) == 109_514_298  # transformers 5.23.0, BertLMHeadModel
    assert "segment_embedding" in _named(embedding_operators(model))
    head = _named(head_operators(model))
    assert head["head_transform"].parameters == 768 * 769
    assert head["lm_head"].parameters == 30522
    assert not any(kind.attention.causal for kind in model.layer_kinds)
    causal = model_from_hf_config({"model_type": "bert", "is_decoder": True}, "x", "config.json")
    assert all(kind.attention.causal for kind in causal.layer_kinds)


def test_documents_survive_and_those_of_decoders_say_nothing_new() -> None:
    for model in (t5(), model_from_hf_config({"model_type": "electra"}, "x", "config.json")):
        assert ModelSpec.model_validate(model.model_dump(mode="json")) == model
    plain = builtin_model("llama-2-7b").model_dump(mode="json")
    assert not {"encoder", "ends"} & set(plain)
    assert not {"cross", "adapter"} & set(plain["layer_kinds"][0])
    assert not {"position_bias", "key_bias"} & set(plain["layer_kinds"][0]["attention"])


@pytest.mark.parametrize("change", ["no encoder", "no cross-attention", "order"])
def test_what_cannot_be_is_refused(change: str) -> None:
    document = t5().model_dump(mode="json")
    if change == "no encoder":
        document["encoder"] = None
    elif change == "no cross-attention":
        document["layer_kinds"][3]["cross"] = None
    else:
        document["layer_runs"] = document["layer_runs"][::-1]
    with pytest.raises(ValidationError, match="encoder"):
        ModelSpec.model_validate(document)


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
        (T5 | {"feed_forward_proj": "twice-gelu"}, "/feed_forward_proj"),
        (T5 | {"num_experts": 8}, "/num_experts"),
        (T5 | {"d_model": "wide"}, "/d_model"),
        ({"model_type": "mvp", "use_prompt": True}, "/use_prompt"),
        ({"model_type": "bart", "encoder_attention_heads": 7}, "/encoder_attention_heads"),
        ({"model_type": "bert", "add_cross_attention": True}, "/add_cross_attention"),
        ({"model_type": "t5gemma", "encoder": {"layer_types": ["chunked_attention"]}}, "/encoder/layer_types"),
    ],
)
def test_configs_are_read_strictly(config: dict[str, Any], pointer: str) -> None:
    with pytest.raises(FindingsInvalid) as caught:
        model_from_hf_config(config, "x", "config.json")
    assert pointer in {each.pointer for each in caught.value.findings}


def test_other_encoder_decoders_are_refused_with_their_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "find_spec", lambda name: None)  # with torch it is traced
    for kind, words in (("evolla", "cross-attention"), ("reformer", "hashed"), ("blt", "blocks of bytes")):
        with pytest.raises(DocumentInvalid, match=words):
            model_from_hf_config({"model_type": kind}, "x", "config.json")


def _problem(model: ModelSpec, **workload: Any) -> Problem:
    asked = Workload.model_validate({"global_batch_size": 8, "sequence_length": 128, **workload})
    return Problem(model=model, cluster=make_cluster(8), workload=asked)


@pytest.mark.parametrize(
    ("model", "said", "words"),
    [
        (make_model(), {"source_length": 64}, "no encoder"),
        (t5(), {"sequences": {"kind": "padded", "mean": 64}}, "one sequence"),
        (t5(), {"training": {"kind": "lora"}}, "all weights"),
        (model_from_hf_config({"model_type": "whisper"}, "x", "f"), {"source_length": 64}, "always reads 1500"),
    ],
)
def test_questions_that_are_not_modelled_are_refused(model: ModelSpec, said: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        _problem(model, **said)


def test_the_source_is_a_part_of_the_question() -> None:
    assert _problem(t5(), source_length=64).problem_id != _problem(t5()).problem_id
    assert "source_length" not in _problem(t5()).workload.model_dump(mode="json")
