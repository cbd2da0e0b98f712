"""Token mixers: the union that a layer holds, their operators, and documents written before there were any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from planner.model.flops import attention_context, forward_flops, forward_flops_per_token
from planner.model.hf_config import model_from_hf_config
from planner.model.mixers.delta_rule import DeltaRuleSpec, recurrence_flops
from planner.model.operators import layer_operators, mtp_operators
from planner.model.parameters import active_parameters, layer_parameters, total_parameters
from planner.model.recompute import region
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, ModelSpec
from profiles.validation import FindingsInvalid
from tests.hybrid_models import CONFIGS, hybrid

GOLDEN = sorted((Path(__file__).parents[2] / "golden").rglob("*.json"))


def _models(value: Any) -> list[dict[str, Any]]:
    """Every model document inside a JSON value."""
    if isinstance(value, list):
        return [found for each in value for found in _models(each)]
    if not isinstance(value, dict):
        return []
    if isinstance(value.get("layer_kinds"), list) and isinstance(value.get("layer_runs"), list):
        return [value]
    return [found for each in value.values() for found in _models(each)]


def test_documents_written_before_read_and_write_the_same() -> None:
    # Golden plans hold models as they were written when softmax attention was the only mixer.
    old = [model for path in GOLDEN for model in _models(json.loads(path.read_text(encoding="utf-8")))]
    assert len(old) >= 5
    for document in old:
        again = ModelSpec.model_validate(document).model_dump(mode="json")
        assert {key: again[key] for key in document} == document


def test_a_document_without_kind_is_grouped_query_attention() -> None:
    layer = LayerSpec.model_validate({"attention": {"num_heads": 4, "num_kv_heads": 2, "head_dim": 8, "v_head_dim": 8}})
    assert layer.attention == AttentionSpec(num_heads=4, num_kv_heads=2, head_dim=8, v_head_dim=8)
    assert set(layer.model_dump()) == {
        "attention",
        "mlp",
        "moe",
        "norm",
        "num_norms",
        "norm_placement",
        "parallel_residual",
    }


def test_an_unknown_kind_names_those_that_there_are() -> None:
    with pytest.raises(ValidationError, match="kind must be one of gqa, mla, gated_delta"):
        LayerSpec.model_validate({"attention": {"kind": "hyena"}})


@pytest.mark.parametrize("family", CONFIGS)
def test_a_hybrid_survives_its_own_json(family: str) -> None:
    model = hybrid(family)
    assert ModelSpec.model_validate_json(model.canonical_json()) == model


@pytest.mark.parametrize("family", CONFIGS)
def test_operators_are_named_once_and_keep_what_there_is(family: str) -> None:
    model = hybrid(family)
    for kind in range(len(model.layer_kinds)):
        operators = layer_operators(model, kind)
        names = [operator.name for operator in operators]
        assert len(set(names)) == len(names)
        for operator in operators:
            assert operator.saved_from == "" or operator.saved_from in names, operator
            assert operator.replicated_parameters <= operator.parameters


def test_flops_of_the_delta_rule_are_those_of_its_matmuls() -> None:
    mixer = DeltaRuleSpec(kind="gated_delta", num_value_heads=2, num_key_heads=1, key_head_dim=8, value_head_dim=4)
    chunk, keys, values = 64, 8, 4
    square, state = chunk * chunk, keys * values
    # K K^T, T K, Q K^T over keys; T V and the scores times V' over values; three products with the state.
    matmuls = 3 * square * keys + 2 * square * values + 3 * chunk * state
    inverse = chunk**3
    assert recurrence_flops(mixer) == 2 * (2 * matmuls + inverse) / chunk


def test_a_linear_layer_costs_the_same_at_any_length() -> None:
    model = hybrid("qwen3_next")
    linear, full = layer_operators(model, 0), layer_operators(model, 1)
    short, long = (sum(forward_flops(op, length) for op in linear) for length in (1024, 65536))
    assert short == long
    assert sum(forward_flops(op, 65536) for op in full) > sum(forward_flops(op, 1024) for op in full)


def test_an_output_gate_doubles_the_queries() -> None:
    attention = AttentionSpec(num_heads=4, num_kv_heads=2, head_dim=8, v_head_dim=8)
    with_gate = attention.model_copy(update={"output_gate": True})
    plain, gated = (
        hybrid("qwen3_next").model_copy(update={"layer_kinds": (LayerSpec(attention=each),) * 2})
        for each in (attention, with_gate)
    )
    assert layer_parameters(gated, 0) - layer_parameters(plain, 0) == 256 * 4 * 8


def test_indexed_attention_sees_the_chosen_tokens_and_scores_all() -> None:
    model = hybrid("deepseek_v32")
    operators = {operator.name: operator for operator in layer_operators(model, 1)}
    core, scores = operators["attention_core"], operators["index_scores"]
    assert core.window == 128
    seen = attention_context(4096, 128, causal=True)
    assert forward_flops(core, 4096) == 2 * seen * 8 * (core.qk_dim + core.v_dim)
    assert forward_flops(scores, 4096) == 2 * attention_context(4096, None, causal=True) * 4 * 128


def test_a_layer_that_takes_over_the_choice_has_no_indexer_of_its_own() -> None:
    changes = {"indexer_types": ["full", "shared", "full", "shared"], "model_type": "glm_moe_dsa"}
    model = hybrid("deepseek_v32", **changes)
    names = [{op.name for op in layer_operators(model, kind)} for kind in model.layer_kind_sequence()]
    assert ["index_scores" in each for each in names] == [True, False, True, False]
    windows = {op.window for op in layer_operators(model, model.layer_kind_sequence()[1]) if op.op_class == "attention"}
    assert windows == {128}


def test_layers_of_one_block_have_one_norm_and_one_sum() -> None:
    model = hybrid("nemotron_h")
    for kind in range(len(model.layer_kinds)):
        classes = [operator.op_class for operator in layer_operators(model, kind) if operator.module == "norm"]
        sums = [operator for operator in layer_operators(model, kind) if operator.module == "residual"]
        assert (len(classes), len(sums)) == (1, 1)


def test_latent_experts_run_on_the_latent_width() -> None:
    wide, narrow = hybrid("nemotron_h"), hybrid("nemotron_h", moe_latent_size=64)
    routed = 8 * 2 * 128  # experts, up and down, their width
    layers = 2
    saved = layers * (routed * (256 - 64) - 2 * 256 * 64)
    assert total_parameters(wide) - total_parameters(narrow) == saved
    assert active_parameters(wide) > active_parameters(narrow)


def test_a_prediction_module_of_nemotron_is_attention_and_experts() -> None:
    model = hybrid("nemotron_h", num_nextn_predict_layers=2)
    assert model.mtp is not None
    assert model.mtp.num_layers == 2
    kind = model.layer_kinds[model.mtp.kind]
    assert (kind.attention.kind, kind.num_norms, kind.moe is not None) == ("gqa", 2, True)
    assert mtp_operators(model)
    assert forward_flops_per_token(model, 4096) > forward_flops_per_token(hybrid("nemotron_h"), 4096)


def test_a_mixer_beside_attention_reads_the_same_tensor_once() -> None:
    operators = layer_operators(hybrid("falcon_h1"), 0)
    kept = [op.name for op in operators if op.saved_from == "attention_norm"]
    assert kept == ["qkv"]
    assert "beside_recurrence" in {op.name for op in operators}


def test_no_module_recompute_reaches_a_recurrence() -> None:
    operators = layer_operators(hybrid("qwen3_next"), 0)
    again = {name for module in ("attention_core", "norm", "activation") for name in region(operators, module)}
    assert not again & {"recurrence", "convolution", "gated_norm"}


@pytest.mark.parametrize(
    ("family", "changes", "pointer"),
    [
        ("qwen3_next", {"layer_types": ["linear_attention"] * 3}, "/layer_types"),
        ("qwen3_next", {"layer_types": ["conv"] * 8}, "/layer_types"),
        ("qwen3_next", {"linear_num_key_heads": 3}, "/linear_num_key_heads"),
        ("nemotron_h", {"hybrid_override_pattern": "MXM"}, "/hybrid_override_pattern"),
        ("nemotron_h", {"n_groups": 3}, "/n_groups"),
        ("mamba2", {"head_dim": 32}, "/head_dim"),
        ("deepseek_v32", {"layer_types": ["full_attention"] * 4}, "/layer_types"),
    ],
)
def test_impossible_mixers_name_their_key(family: str, changes: dict[str, Any], pointer: str) -> None:
    with pytest.raises(FindingsInvalid) as raised:
        hybrid(family, **changes)
    assert pointer in {finding.pointer for finding in raised.value.findings}


def test_a_config_with_infinity_is_read() -> None:
    config = {"model_type": "mamba2", **CONFIGS["mamba2"], "time_step_limit": [0.0, float("inf")]}
    assert model_from_hf_config(config, "m", "config.json") == hybrid("mamba2").model_copy(update={"name": "m"})


def test_a_layer_of_nothing_is_no_layer() -> None:
    with pytest.raises(ValidationError, match="needs an mlp or a moe"):
        LayerSpec.model_validate({"attention": {"kind": "none"}})
    mlp = MlpSpec(intermediate_size=8, gated=True)
    assert LayerSpec.model_validate({"attention": {"kind": "none"}, "mlp": mlp.model_dump()}).mlp == mlp
