"""Small parts of layers, residual streams, compressed attention, shared keys and values: closed forms of each."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from planner.backends.rules.forward_factors import forward_factor
from planner.backends.rules.token_mixers import beyond_attention, runs_along_sequence
from planner.model.flops import forward_flops
from planner.model.hf_config import model_from_hf_config
from planner.model.hf_config.tables.gated import GATED
from planner.model.hf_config.tables.recurrent import RECURRENT
from planner.model.hf_config.tables.shared import SHARED
from planner.model.hf_config.tables.sparse import SPARSE
from planner.model.layer_parts import PartSpec, part_operator
from planner.model.operator import Operator
from planner.model.operators import embedding_operators, head_operators, layer_operators
from planner.model.parameters import active_parameters, layer_parameters, total_parameters
from planner.model.spec import AttentionSpec, ModelSpec
from profiles.validation import FindingsInvalid

_NEEDED: dict[str, dict[str, Any]] = {
    "qwen4_exp_text": {
        "indexer_n_heads": 4,
        "indexer_head_dim": 128,
        "indexer_budget": 2048,
        "indexer_compress_ratio": 16,
    }
}
"""Keys for which the class has no default."""
OPENED = sorted({*GATED, *SPARSE, *SHARED, *RECURRENT, "lfm3", "dbrx"})


def _read(family: str, **keys: Any) -> ModelSpec:
    return model_from_hf_config({"model_type": family, **_NEEDED.get(family, {}), **keys}, family, "config.json")


def _operator(model: ModelSpec, name: str, kind: int = 0) -> Operator:
    return next(each for each in layer_operators(model, kind) if each.name == name)


@pytest.mark.parametrize("family", OPENED)
def test_no_back_end_that_builds_from_shapes_takes_a_family_with_more_than_its_shapes(family: str) -> None:
    model = _read(family)
    assert beyond_attention(model) or forward_factor(model), family


@pytest.mark.parametrize("family", OPENED)
def test_names_of_operators_are_unique_and_a_document_reads_back(family: str) -> None:
    model = _read(family)
    for kind in range(len(model.layer_kinds)):
        names = [each.name for each in layer_operators(model, kind)]
        assert len(names) == len(set(names)), family
    assert ModelSpec.model_validate_json(model.model_dump_json()) == model


def test_parts_count_what_their_kind_says() -> None:
    projection = PartSpec(name="a", kind="projection", in_features=6, out_features=4, bias=True, cut="output")
    assert (projection.parameters, forward_flops(part_operator(projection, "attention"), 8)) == (28, 48)
    convolution = PartSpec(name="b", kind="convolution", in_features=6, kernel=3, channels=2, bias=True)
    assert (convolution.parameters, forward_flops(part_operator(convolution, "attention"), 8)) == (42, 72)
    assert PartSpec(name="c", kind="norm", in_features=6).parameters == 6
    assert PartSpec(name="d", kind="gate", in_features=6).parameters == 0
    assert PartSpec(name="e", kind="scale", in_features=6, learned=2).parameters == 2
    with pytest.raises(ValidationError, match="only a projection"):
        PartSpec(name="f", kind="norm", in_features=6, out_features=4)


def test_tensor_parallelism_splits_a_cut_projection_and_copies_a_norm() -> None:
    cut = part_operator(PartSpec(name="a", kind="projection", in_features=6, out_features=4, cut="output"), "attention")
    norm = part_operator(PartSpec(name="b", kind="norm", in_features=6, cut="heads"), "attention")
    assert (cut.shard, cut.replicated_parameters) == ("column", 0)
    assert (norm.shard, norm.replicated_parameters) == ("heads", 6)


def test_streams_widen_what_passes_between_layers_and_stages() -> None:
    model = _read("deepseek_v4")
    plain = model.model_copy(update={"residual": None, "exit_parts": ()})
    assert (model.stream_size, plain.stream_size) == (4 * model.hidden_size, model.hidden_size)
    # 24 weights a block from 4 h features, with a constant each and 3 scales: two blocks a layer.
    blocks = 2 * (24 * 4 * model.hidden_size + 24 + 3)
    assert layer_parameters(model, 0) - layer_parameters(plain, 0) == blocks
    kept = sum(each.saved_width for each in layer_operators(model, 0) if each.module == "residual")
    assert kept == 2 * (4 * model.hidden_size + 2 * 24 + model.hidden_size)
    mixed = sum(forward_flops(each, 64) for each in layer_operators(model, 0) if each.module == "residual")
    assert mixed == 2 * (2 * 4 * model.hidden_size * 24 + 2 * 4 * 4 * model.hidden_size)


def test_compressed_attention_sees_a_window_and_an_entry_for_every_few_tokens() -> None:
    model = _read("deepseek_v4")
    heavy, sparse = (model.layer_kind_sequence()[layer] for layer in (0, 3))
    per_entry = 2.0 * 64 * (512 + 512)
    length = 4096
    entries = forward_flops(_operator(model, "attention_entries", heavy), length)
    assert entries == pytest.approx((length + 1) / 2 / 128 * per_entry)
    # 512 entries of 4 tokens are a window of 2,048 tokens.
    seen = (2048 * 2049 / 2 + (length - 2048) * 2048) / length
    assert forward_flops(_operator(model, "attention_entries", sparse), length) == pytest.approx(seen / 4 * per_entry)
    scores = forward_flops(_operator(model, "index_scores", sparse), length)
    assert scores == pytest.approx(2.0 * (length + 1) / 2 / 4 * 64 * 128)
    assert runs_along_sequence(model) == "compressed attention"


def test_a_layer_that_shares_keys_and_values_makes_and_keeps_none() -> None:
    model = _read("gemma3n_text")
    own, shared = (model.layer_kinds[model.layer_kind_sequence()[layer]] for layer in (3, 33))
    assert isinstance(own.attention, AttentionSpec)
    assert isinstance(shared.attention, AttentionSpec)
    assert (own.attention.reuses_key_values, shared.attention.reuses_key_values) == (False, True)
    first, last = (model.layer_kind_sequence()[layer] for layer in (3, 33))
    made = _operator(model, "qkv", first).out_features - _operator(model, "qkv", last).out_features
    kept = _operator(model, "attention_core", first).saved_width - _operator(model, "attention_core", last).saved_width
    assert made == kept == 2 * 2 * 256


def test_layers_that_run_again_have_work_and_no_parameters() -> None:
    model = _read("hrm_text", num_hidden_layers=4, H_cycles=2, L_cycles=3)
    assert model.num_layers == 4 * 2 * 4
    again = next(number for number, kind in enumerate(model.layer_kinds) if kind.reuses_weights)
    assert layer_parameters(model, again) == 0
    assert sum(run.count for run in model.layer_runs if run.kind != again) == 2 * 4
    assert forward_flops(_operator(model, "qkv", again), 64) == forward_flops(_operator(model, "qkv", 1 - again), 64)


def test_zero_experts_take_their_share_of_the_choices() -> None:
    model = _read("longcat_flash")
    kind = next(number for number, layer in enumerate(model.layer_kinds) if layer.moe is not None)
    assert _operator(model, "router", kind).out_features == 768
    assert _operator(model, "experts_up", kind).tokens_per_token == pytest.approx(12 * 512 / 768)
    # 8 of 512 experts a token; published: 18.6 to 31.3 B active parameters, 27 B on average.
    assert 24e9 < active_parameters(model) < 30e9


def test_active_parameters_leave_out_experts_of_attention() -> None:
    model = _read("jetmoe")
    assert active_parameters(model) < 0.4 * total_parameters(model)


def test_tables_before_the_first_layer_are_split_as_the_vocabulary() -> None:
    model = _read("gemma4_text")
    table = next(each for each in embedding_operators(model) if each.name == "input_table")
    assert (table.shard, table.replicated_parameters) == ("vocabulary", 0)
    assert table.parameters == 262144 * 256 * 30


def test_the_collapse_behind_the_last_layer_does_not_count_as_the_head() -> None:
    model = _read("deepseek_v4")
    head = next(each for each in head_operators(model) if each.name == "stream_head")
    assert (head.module, head.parameters) == ("norm", 4 * 4 * 4096 + 4 + 1)


@pytest.mark.parametrize(
    ("family", "keys", "pointer"),
    [
        ("deepseek_v4", {"layer_types": ["full_attention"] * 43}, "layer_types"),
        ("deepseek_v4", {"compress_ratios": [7] * 43}, "compress_ratios"),
        ("deepseek_v4", {"hc_mult": 1}, "hc_mult"),
        ("qwen4_exp_text", {"ple_layer_ids": [1]}, "ple_layer_ids"),
        ("doge", {"is_moe": True}, "is_moe"),
        ("laguna", {"num_attention_heads_per_layer": [7] * 40}, "num_attention_heads_per_layer"),
        ("gemma4_text", {"per_layer_config": {"99": {"head_dim": 64}}}, "99"),
        ("zamba2", {"layers_block_type": ["attention"] * 54}, "layers_block_type"),
        ("afmoe", {"layer_types": ["hybrid"] * 32}, "layer_types"),
        ("xlstm", {"use_bias": True}, "use_bias"),
    ],
)
def test_structure_that_is_not_understood_is_refused_by_its_key(
    family: str, keys: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(FindingsInvalid) as caught:
        _read(family, **keys)
    assert any(pointer in finding.pointer for finding in caught.value.findings)
