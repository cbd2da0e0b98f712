"""Blank columns of a row come from the published architecture of its name; what the row states wins or refuses."""

from __future__ import annotations

import re

import pytest

from planner.evidence.runs.flavours import MEGATRON_CI, flavour_of
from planner.evidence.runs.published_models import (
    canonical_name,
    model_of_entry,
    published_entries,
    published_model,
    shortened,
)
from planner.evidence.runs.row_model import model_of_row
from planner.evidence.runs.row_strategy import arithmetic_of_row
from planner.evidence.runs.truth import TruthRow
from planner.evidence.runs.unmapped import RowUnmapped
from planner.model.builtin import builtin_model
from planner.model.parameters import total_parameters
from planner.model.spec import ModelSpec
from tests.accuracy_rows import rows_of

BLANK = dict.fromkeys(("params_b", "layers", "hidden", "ffn_hidden", "heads", "kv_heads", "vocab"), "")
SIZE_IN_NAME = re.compile(r"(?<![\dx.])(\d+(?:\.\d+)?)([mbt])(?![a-z\d])")
UNIT = {"m": 1e6, "b": 1e9, "t": 1e12}
PUBLISHED_COUNTS = {
    "bloom": 176.2e9,  # arXiv 2211.05100
    "bloom-1b1": 1.065e9,
    "bloom-1b7": 1.722e9,
    "bloom-7b1": 7.069e9,
    "deepseek-v2-lite": 15.7e9,
    "glm-4.5-air": 106e9,
    "gpt2-large": 0.774e9,
    "gpt2-medium": 0.355e9,
    "gpt2-xl": 1.558e9,
    "llama-1-30b": 32.5e9,  # arXiv 2302.13971, table 2
    "llama-30b": 32.5e9,
    "llama4-maverick": 400e9,
    "llama4-maverick-17b-128e": 400e9,
    "llama4-scout": 109e9,  # with the vision tower
    "llama4-scout-17b-16e": 109e9,
    "mixtral-8x22b": 141e9,
    "mixtral-8x22b-v0.1": 141e9,
    "mixtral-8x7b": 46.7e9,
    "mixtral-8x7b-v0.1": 46.7e9,
    "opt-350m": 0.331e9,
    "phi-4": 14.7e9,
    "qwen2-57b-a14b": 57.4e9,
}
"""Counts that the models' publishers give, where the name has another figure or none."""
UNPUBLISHED_COUNTS = {"mixtral-8x3b"}
"""NVIDIA's smaller Mixtral: 8 x 3 counts attention eight times, and no document counts it once."""
NAMES = [(index, name) for index, entry in enumerate(published_entries()) for name in entry["names"]]


def row_of(**change: str) -> TruthRow:
    return rows_of(change)[0]


def model_of(**change: str) -> ModelSpec:
    row = row_of(**change)
    return model_of_row(row, flavour_of(row.source, row.zero_or_fsdp))


@pytest.mark.parametrize(("index", "name"), [pair for pair in NAMES if pair[1] not in UNPUBLISHED_COUNTS])
def test_an_entry_has_as_many_parameters_as_its_name_says(index: int, name: str) -> None:
    """Within 4 % of a published count; of a name's figure within 5 %, or it is the figure cut to whole billions."""
    counted = total_parameters(model_of_entry(index))
    if name in PUBLISHED_COUNTS:
        assert counted == pytest.approx(PUBLISHED_COUNTS[name], rel=0.04)
        return
    match = SIZE_IN_NAME.search(name)
    assert match is not None, "add its published count"
    said = float(match[1]) * UNIT[match[2]]
    cut = "." not in match[1] and match[2] == "b" and said <= counted < said + 1e9
    assert cut or counted == pytest.approx(said, rel=0.05)


def test_every_entry_names_its_source_and_no_name_is_taken_twice() -> None:
    assert all(("builtin" in entry) != bool(entry.get("source")) for entry in published_entries())
    canonical = [canonical_name(name) for _, name in NAMES]
    assert len(set(canonical)) == len(canonical)


@pytest.mark.parametrize(
    "name", ["llama2-7b", "Llama-2-7B-chat-hf", "meta-llama/Llama-2-7b-hf", "llama2_7b_lora", "LLAMA 2 7B (SFT, 8k)"]
)
def test_spellings_of_one_model_agree(name: str) -> None:
    assert canonical_name(name) == "llama27b"


@pytest.mark.parametrize("name", ["llama-70b", "maxtext-1160b", "gpt2-13B", "llama2", "qwen2.5-7b-vl", "my-llama2-7b"])
def test_names_that_say_nothing_exact_are_left_alone(name: str) -> None:
    with pytest.raises(RowUnmapped, match="not described"):
        model_of(**BLANK | {"model": name})


def test_a_row_without_columns_takes_the_published_sizes() -> None:
    model = model_of(**BLANK | {"model": "nemotron-22b", "seq_len": "4096"})
    layer = model.layer_kinds[0]
    assert (model.num_layers, model.hidden_size, model.vocab_size) == (40, 6144, 256000)
    assert layer.mlp is not None
    assert not layer.mlp.gated
    assert layer.attention.qk_rope_head_dim == 64


def test_maxtext_scales_its_default_model() -> None:
    """Scale 16 doubles width and depth, and doubles heads and feed-forward twice, so heads are wider than the model."""
    model = model_of(**BLANK | {"model": "maxtext-16b", "params_b": "16", "seq_len": "2048"})
    attention = model.layer_kinds[0].attention
    assert (model.num_layers, model.hidden_size, attention.num_heads, attention.head_dim) == (32, 4096, 64, 128)
    assert total_parameters(model) == 2 * 32000 * 4096 + 32 * (4 * 4096 * 8192 + 3 * 4096 * 28672 + 2 * 4096) + 4096


def test_what_the_row_states_wins_where_the_architecture_allows_it() -> None:
    model = model_of(**BLANK | {"model": "llama3-70b", "layers": "4", "vocab": "128512", "seq_len": "262144"})
    whole = builtin_model("llama-3.1-70b")
    assert model.layer_kinds == whole.layer_kinds
    assert (model.num_layers, model.vocab_size, model.max_sequence_length) == (4, 128512, 262144)


def test_grouped_heads_are_filled_in_where_only_they_are_blank() -> None:
    model = model_of(kv_heads="", params_b="")
    assert model.layer_kinds[0].attention.num_kv_heads == 8


def test_columns_that_say_everything_are_used_as_they_are() -> None:
    row = row_of()
    assert published_model(row) is None
    assert total_parameters(model_of()) == total_parameters(builtin_model("llama-3.1-8b"))


@pytest.mark.parametrize(
    "change",
    [
        {"hidden": "5120"},
        {"heads": "64"},
        {"kv_heads": "32"},
        {"ffn_hidden": "11008"},
        {"layers": "33"},
        {"experts": "8", "topk": "2"},
    ],
)
def test_a_row_that_contradicts_the_published_model_takes_nothing_from_it(change: dict[str, str]) -> None:
    with pytest.raises(RowUnmapped, match="not described"):
        model_of(**BLANK | {"model": "llama3-8b"} | change)


def test_a_stated_size_that_the_published_model_has_not_is_refused() -> None:
    with pytest.raises(RowUnmapped, match="another size"):
        model_of(**BLANK | {"model": "llama3-8b", "params_b": "13"})


def test_experts_come_with_the_name_though_the_columns_have_no_place_for_their_width() -> None:
    columns = {"layers": "28", "hidden": "3584", "ffn_hidden": "18944", "heads": "28", "kv_heads": "4"}
    experts = {"experts": "64", "topk": "8", "vocab": "151936", "params_b": "57.4"}
    moe = model_of(**columns | experts | {"model": "qwen2-57b-a14b"}).layer_kinds[0].moe
    assert moe is not None
    assert (moe.expert_intermediate_size, moe.shared_intermediate_size) == (2560, 20480)


def test_maverick_routes_every_second_layer() -> None:
    model = model_of(**BLANK | {"model": "llama4-maverick", "experts": "128", "topk": "1", "params_b": "400.7"})
    routed = [model.layer_kinds[kind].moe is not None for kind in model.layer_kind_sequence()]
    assert routed == [False, True] * 24


def test_megatrons_tests_have_names_of_tests_not_of_models() -> None:
    row = row_of(**BLANK | {"model": "llama3-8b", "hidden": "512", "layers": "4"})
    assert model_of_row(row, MEGATRON_CI).hidden_size == 512
    whole = row_of(**BLANK | {"model": "llama3-8b"})
    with pytest.raises(RowUnmapped, match="not described"):
        model_of_row(whole, MEGATRON_CI)


def test_a_model_has_no_more_layers_than_it_was_published_with() -> None:
    with pytest.raises(RowUnmapped, match="more layers"):
        shortened(builtin_model("llama-3.1-8b"), 33)


def test_integers_of_eight_bit_are_not_modelled() -> None:
    with pytest.raises(RowUnmapped, match="int8"):
        arithmetic_of_row(row_of(**BLANK | {"model": "maxtext-16b", "precision": "int8"}))
