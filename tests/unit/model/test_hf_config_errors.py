from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from planner.model.hf_config import model_from_hf_config, supported_model_types
from planner.model.hf_config.unmodelled import UNMODELLED
from planner.model.load import load_model
from planner.model.parameters import total_parameters
from planner.model.traced import model as tracing
from profiles.errors import DocumentInvalid
from profiles.validation import FindingsInvalid


@pytest.fixture(autouse=True)
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a light install says; with torch a family without a table is traced (``test_traced_against_tables``)."""
    monkeypatch.setattr(tracing, "find_spec", lambda name: None)


def pointers(config: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(FindingsInvalid) as caught:
        model_from_hf_config(config, "bad", "config.json")
    assert caught.value.exit_code == 2
    return {finding.pointer: f"{finding.what}; {finding.hint}" for finding in caught.value.findings}


def test_unknown_architecture_names_itself_and_what_is_supported() -> None:
    with pytest.raises(DocumentInvalid) as caught:
        model_from_hf_config({"model_type": "lama", "architectures": ["LamaForCausalLM"]}, "x", "config.json")
    text = str(caught.value)
    assert "'lama'" in text
    assert "LamaForCausalLM" in text
    assert "did you mean 'llama'" in text
    assert "deepseek_v3" in text
    assert caught.value.where == "config.json#/model_type"


@pytest.mark.parametrize("kind", ["gemma4_assistant", "qwen3_omni_moe", "musicgen", "llama5", "gemma3n", "glm5v"])
def test_another_architecture_is_not_likened_to_a_supported_one(kind: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        model_from_hf_config({"model_type": kind}, "x", "config.json")
    assert "did you mean" not in str(caught.value)
    assert caught.value.hint is not None
    assert "Supported: " + ", ".join(supported_model_types()) in caught.value.hint


@pytest.mark.parametrize("config", [{}, {"model_type": 7}, {"model_type": None, "architectures": ["X"]}])
def test_missing_model_type(config: dict[str, Any]) -> None:
    with pytest.raises(DocumentInvalid, match="no model_type"):
        model_from_hf_config(config, "x", "config.json")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("num_hidden_layers", 0, "at least 1"),
        ("num_hidden_layers", -3, "at least 1"),
        ("num_hidden_layers", 10**9, "at most"),
        ("num_hidden_layers", "32", "an integer"),
        ("num_hidden_layers", 32.0, "an integer"),
        ("num_hidden_layers", True, "an integer"),
        ("num_hidden_layers", None, "null"),
        ("hidden_size", 10**40, "astronomical"),
        ("vocab_size", [1], "an integer"),
        ("rms_norm_eps", math.nan, "finite"),
        ("rms_norm_eps", -1e-5, "above 0"),
        ("tie_word_embeddings", "yes", "true or false"),
        ("hidden_act", 3, "a string"),
        ("num_key_value_heads", 5, "must divide"),
        ("rope_theta", 0, "above 0"),
    ],
)
def test_impossible_value_is_refused_with_its_pointer(key: str, value: Any, words: str) -> None:
    found = pointers({"model_type": "llama", key: value})
    assert words in found[f"/{key}"]


def test_all_findings_come_at_once() -> None:
    found = pointers(
        {"model_type": "llama", "num_hidden_layers": 0, "vocab_size": "x", "num_attention_heads": 7, "hidden_sizes": 64}
    )
    assert set(found) == {"/num_hidden_layers", "/vocab_size", "/num_attention_heads", "/hidden_sizes"}
    assert "did you mean 'hidden_size'" in found["/hidden_sizes"]


def test_heads_need_not_divide_the_width_where_the_class_has_a_head_width() -> None:
    spec = model_from_hf_config({"model_type": "qwen3", "num_attention_heads": 36, "num_key_value_heads": 4}, "x", "f")
    assert spec.layer_kinds[0].attention.head_dim == 128


def test_layer_types_must_fit() -> None:
    assert "one entry a layer" in pointers({"model_type": "gemma2", "layer_types": ["full_attention"]})["/layer_types"]
    types = ["linear_attention"] * 26
    assert "linear_attention" in pointers({"model_type": "gemma2", "layer_types": types})["/layer_types"]


def test_expert_numbers_must_fit() -> None:
    found = pointers({"model_type": "deepseek_v3", "num_experts_per_tok": 300, "n_group": 7, "topk_group": 9})
    assert set(found) == {"/num_experts_per_tok", "/n_group", "/topk_group"}
    assert "/num_experts_per_tok" in pointers({"model_type": "deepseek_v2"})


def test_nested_findings_carry_the_nested_pointer() -> None:
    found = pointers(
        {
            "model_type": "llava",
            "text_config": {"model_type": "llama", "hidden_size": -1},
            "vision_config": {"model_type": "pixtral", "patch_size": 0},
        }
    )
    assert {"/text_config/hidden_size", "/vision_config/model_type", "/vision_config/patch_size"} <= set(found)
    assert "/text_config/model_type" in pointers({"model_type": "llava", "text_config": {"model_type": "reformer"}})
    assert "/text_config" in pointers({"model_type": "llava", "text_config": [1]})


def test_vision_tower_must_feed_the_language_model() -> None:
    found = pointers({"model_type": "qwen2_5_vl", "hidden_size": 4096, "vision_config": {"out_hidden_size": 2048}})
    assert "/vision_config/out_hidden_size" in found


def test_cross_attention_and_multiquery_are_refused() -> None:
    assert "/add_cross_attention" in pointers({"model_type": "gpt2", "add_cross_attention": True})
    config = {"model_type": "mpt", "attn_config": {"attn_type": "multiquery_attention"}}
    assert "/attn_config/attn_type" in pointers(config)


def test_sliding_windows_alternate() -> None:
    spec = model_from_hf_config({"model_type": "gemma3_text", "num_hidden_layers": 12}, "x", "f")
    windows = [spec.layer_kinds[kind].attention.sliding_window for kind in spec.layer_kind_sequence()]
    assert windows == ([4096] * 5 + [None]) * 2


def test_rope_base_is_read_in_both_spellings() -> None:
    old = model_from_hf_config({"model_type": "llama", "rope_theta": 5e5}, "x", "f")
    new = model_from_hf_config({"model_type": "llama", "rope_parameters": {"rope_theta": 5e5}}, "x", "f")
    assert old.rotary_base == new.rotary_base == 5e5
    assert total_parameters(old) == total_parameters(new)


@pytest.mark.parametrize("written", ["Infinity", '{"__float__": "Infinity"}', "NaN", "-Infinity"])
def test_a_number_that_is_not_finite_is_read_and_judged_where_it_stands(tmp_path: Path, written: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(f'{{"model_type": "llama", "time_step_limit": [0.0, {written}]}}', encoding="utf-8")
    assert load_model(str(path)).family == "llama"
    path.write_text(f'{{"model_type": "llama", "rms_norm_eps": {written}}}', encoding="utf-8")
    with pytest.raises(FindingsInvalid) as caught:
        load_model(str(path))
    assert [finding.pointer for finding in caught.value.findings] == ["/rms_norm_eps"]
    path.write_text(f'{{"model_type": "reformer", "time_step_limit": [0.0, {written}]}}', encoding="utf-8")
    with pytest.raises(DocumentInvalid, match="hashed"):
        load_model(str(path))


def test_a_saved_model_may_not_hold_infinity(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text('{"layer_kinds": [], "model_type": "x", "rotary_base": Infinity}', encoding="utf-8")
    with pytest.raises(DocumentInvalid, match="not a finite number"):
        load_model(str(path))


@pytest.mark.parametrize(
    ("key", "value", "mechanism"),
    [
        ("hc_mult", 4, "hyper-connections"),
        ("index_topk", 2048, "indexed sparse attention"),
        ("num_kv_shared_layers", 3, "key-values shared"),
        ("mamba_d_state", 16, "state-space"),
        ("layer_types", ["full_attention", "linear_attention"], "gated DeltaNet"),
        ("mlp_layer_types", ["dense", "sparse"], "sparse"),
        ("moe_intermediate_size", 64, "changes the structure"),
    ],
)
def test_a_key_that_asks_for_structure_and_is_not_read_is_named(key: str, value: Any, mechanism: str) -> None:
    assert mechanism in pointers({"model_type": "llama", key: value})[f"/{key}"]
    off: Any = None if isinstance(value, int) else []
    assert model_from_hf_config({"model_type": "llama", key: off}, "x", "f").family == "llama"


def test_layer_kinds_of_a_table_family_must_be_known_and_one_a_layer() -> None:
    few = pointers({"model_type": "olmo3", "layer_types": ["full_attention"]})
    assert "one entry a layer (32)" in few["/layer_types"]
    kinds = pointers({"model_type": "olmo3", "layer_types": ["indexed_attention"] * 32})
    assert "(DSA)) are not modelled" in kinds["/layer_types"]


def test_a_known_family_that_is_not_read_is_refused_with_its_mechanism() -> None:
    for kind, mechanism in (("pi0", "action expert"), ("reformer", "hashed"), ("musicgen", "audio tower")):
        with pytest.raises(DocumentInvalid, match=mechanism) as caught:
            model_from_hf_config({"model_type": kind}, "x", "config.json")
        assert "did you mean" not in str(caught.value)
    nested = pointers({"model_type": "mistral3", "text_config": {"model_type": "reformer"}})
    assert "hashed" in nested["/text_config/model_type"]


def test_no_family_is_both_read_and_refused() -> None:
    assert set(UNMODELLED) & set(supported_model_types()) == set()


def test_aliases_of_the_class_are_read() -> None:
    config = {"model_type": "dots1", "num_local_experts": 16, "num_experts_per_tok": 2, "n_shared_experts": 0}
    assert [kind.moe.num_experts for kind in model_from_hf_config(config, "x", "f").layer_kinds if kind.moe] == [16]
    missing = pointers({"model_type": "dots1"})
    assert "is required" in missing["/n_routed_experts"]
