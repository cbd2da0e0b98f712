from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.model.builtin import builtin_document, builtin_model, builtin_models
from planner.model.load import load_model
from planner.model.parameters import active_parameters, mtp_parameters, total_parameters
from profiles.errors import DocumentInvalid, NotFound
from profiles.validation import FindingsInvalid

YAML = """
num_layers: 32
hidden_size: 4096
num_heads: 32
num_kv_heads: 8
intermediate_size: 14336
vocab_size: 32000
max_sequence_length: 32768
moe: {num_experts: 8, top_k: 2}
"""


def test_builtin_name_in_any_case() -> None:
    assert load_model("Llama-3.1-70B") == builtin_model("llama-3.1-70b")
    assert len(builtin_models()) >= 25


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(NotFound, match=r"llama-3\.1-70b") as caught:
        load_model("llama3.1-70b-")
    assert caught.value.exit_code == 3


def test_config_json_and_its_folder_give_the_same_model(tmp_path: Path) -> None:
    folder = tmp_path / "my-qwen"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(builtin_document("qwen3-8b")["hf_config"]))
    assert load_model(str(folder)) == load_model(str(folder / "config.json"))
    assert load_model(str(folder)).name == "my-qwen"
    assert total_parameters(load_model(str(folder))) == 8_190_735_360


def test_missing_file_and_folder_without_config(tmp_path: Path) -> None:
    for reference in (str(tmp_path / "no.json"), str(tmp_path), "./nowhere/config.json"):
        with pytest.raises(NotFound):
            load_model(reference)


def test_own_yaml_equals_the_same_hugging_face_model(tmp_path: Path) -> None:
    path = tmp_path / "moe.yaml"
    path.write_text(YAML)
    spec = load_model(str(path))
    assert spec.name == "moe"
    assert total_parameters(spec) == total_parameters(builtin_model("mixtral-8x7b"))
    assert active_parameters(spec) == active_parameters(builtin_model("mixtral-8x7b"))


def test_yaml_describes_latent_attention_and_windows(tmp_path: Path) -> None:
    path = tmp_path / "deep.yaml"
    path.write_text(
        "num_layers: 61\nhidden_size: 7168\nnum_heads: 128\nintermediate_size: 18432\nvocab_size: 129280\n"
        "mla: {q_lora_rank: 1536, kv_lora_rank: 512, qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128}\n"
        "moe: {num_experts: 256, top_k: 8, intermediate_size: 2048, shared_intermediate_size: 2048,\n"
        "  score_function: sigmoid, first_dense_layers: 3}\nmtp_layers: 1\n"
    )
    reference = builtin_model("deepseek-v3")
    assert total_parameters(load_model(str(path))) == total_parameters(reference) + mtp_parameters(reference)
    path.write_text(YAML + "sliding_window: 512\nfull_attention_every: 4\n")
    spec = load_model(str(path))
    windows = [spec.layer_kinds[kind].attention.sliding_window for kind in spec.layer_kind_sequence()]
    assert windows == [512, 512, 512, None] * 8


def test_saved_spec_round_trips(tmp_path: Path) -> None:
    for name in ("deepseek-v3", "qwen2.5-vl-7b", "gpt3-175b"):
        path = tmp_path / f"{name}.json"
        path.write_text(builtin_model(name).canonical_json())
        assert load_model(str(path)) == builtin_model(name)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"model_type": "llama", "model_type": "gpt2"}', "twice"),
        ('{"model_type": "llama", "rms_norm_eps": NaN}', "NaN"),
        ('{"model_type": "llama"', "JSON"),
        ("[" * 100 + "]" * 100, "nested"),
        ("[1, 2]", "mapping"),
        ('{"layer_kinds": []}', "missing"),
    ],
)
def test_malformed_json_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(DocumentInvalid, match=words):
        load_model(str(path))


def test_huge_and_binary_files_are_refused(tmp_path: Path) -> None:
    for name in ("a.json", "a.sh"):
        path = tmp_path / name
        path.write_text(" " * 5_000_001)
        with pytest.raises(DocumentInvalid, match="bytes"):
            load_model(str(path))
        path.write_bytes(b"\xff\xfe\x00\x01")
        with pytest.raises(DocumentInvalid):
            load_model(str(path))


def test_description_names_all_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("num_layer: 3\nnum_layers: 0\nhidden_size: '64'\nnum_heads: 4\nvocab_size: 10\n")
    with pytest.raises(FindingsInvalid) as caught:
        load_model(str(path))
    found = {finding.pointer: finding.hint for finding in caught.value.findings}
    assert set(found) == {"/num_layer", "/num_layers", "/hidden_size", "/intermediate_size"}
    assert "num_layers" in found["/num_layer"]


def test_description_refuses_contradictions(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(
        "num_layers: 2\nhidden_size: 64\nnum_heads: 5\nnum_kv_heads: 3\nintermediate_size: 8\nvocab_size: 9\n"
        "full_attention_every: 2\nmoe: {num_experts: 4, top_k: 5, num_groups: 3, top_k_groups: 4}\n"
    )
    with pytest.raises(FindingsInvalid) as caught:
        load_model(str(path))
    assert {finding.pointer for finding in caught.value.findings} == {
        "/num_heads",
        "/num_kv_heads",
        "/full_attention_every",
        "/moe/top_k",
        "/moe/num_groups",
        "/moe/top_k_groups",
    }


def test_saved_spec_with_a_wrong_kind_is_refused(tmp_path: Path) -> None:
    data = json.loads(builtin_model("llama-2-7b").canonical_json())
    data["layer_runs"][0]["kind"] = 4
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(data))
    with pytest.raises(DocumentInvalid, match="kind"):
        load_model(str(path))
