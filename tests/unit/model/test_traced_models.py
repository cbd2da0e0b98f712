"""Traced models: sizes of one token from three lengths, the document, what it says and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from planner.model.flops import forward_flops_per_token
from planner.model.hf_config import model_from_hf_config
from planner.model.operators import head_operators, layer_operators
from planner.model.parameters import active_parameters, parameters_by_module, total_parameters
from planner.model.spec import ModelSpec
from planner.model.traced import model as tracing
from planner.model.traced.fitting import fitted, lengths_within, operators_of
from planner.model.traced.grouping import Group, grouped
from planner.model.traced.records import Record, Trace
from planner.search.trace_notes import trace_notes
from profiles.errors import DocumentInvalid
from tests.traced_models import CONFIG, make_traced_model

LENGTHS = (512, 1024, 2048, 1536)


def test_three_points_give_the_polynomial_exactly() -> None:
    assert fitted((3, 5, 9), [7 + 2 * x + 4 * x * x for x in (3, 5, 9)]) == (Fraction(7), Fraction(2), Fraction(4))
    assert fitted((512, 1024, 2048), [1, 2, 4]) == (Fraction(0), Fraction(1, 512), Fraction(0))


@pytest.mark.parametrize(("positions", "lengths"), [(4096, LENGTHS), (128, (32, 64, 128, 96)), (2**20, LENGTHS)])
def test_a_trace_stays_within_the_places_that_the_model_has(positions: int, lengths: tuple[int, ...]) -> None:
    assert lengths_within(positions) == lengths


def _product(length: int, rows: int, depth: int, columns: int, **others: Any) -> Group:
    return Group("matmul", "p", 1, rows=rows, depth=depth, columns=columns, **others)


def test_a_product_with_a_weight_is_rows_of_one_token() -> None:
    groups = [[_product(s, 2 * s + 5, 64, 32, learned=2048, read=64 * s, saved=64 * s)] for s in LENGTHS]
    (entry,) = operators_of(groups, LENGTHS)
    assert (entry["rows"], entry["further_rows"], entry["in_features"], entry["out_features"]) == (2.0, 5, 64, 32)
    assert (entry["parameters"], entry["read_width"], entry["saved_width"]) == (2048, 64, 64.0)


def test_scores_and_their_use_are_one_attention_that_keeps_them() -> None:
    groups = [
        [
            _product(s, 8 * s, 16, s),
            Group("gate", "softmax", 1, saved=0),
            replace(_product(s, 8 * s, s, 16), name="q", saved=8 * s * s),
        ]
        for s in LENGTHS
    ]
    core, softmax = operators_of(groups, LENGTHS)
    assert (core["op_class"], core["num_heads"], core["qk_dim"], core["v_dim"]) == ("attention", 8, 16, 16)
    assert (core["kept_scores"], core["causal"], softmax["name"]) == (8, False, "softmax")


def test_a_loop_over_chunks_is_added_up() -> None:
    groups = [[_product(s, 256, 64, 32) for _ in range(s // 256)] for s in LENGTHS]
    (entry,) = operators_of(groups, LENGTHS)
    assert (entry["rows"], entry["further_rows"]) == (1.0, 0)


def test_what_grows_otherwise_is_refused() -> None:
    with pytest.raises(ValueError, match="does not grow"):
        operators_of([[_product(s, s**3, 64, 32)] for s in LENGTHS], LENGTHS)
    with pytest.raises(ValueError, match="other operations"):
        operators_of([[Group("gate" if s < 600 else "norm", "x", 1)] for s in LENGTHS], LENGTHS)


def test_an_activation_between_products_is_one_group_that_keeps_its_inputs() -> None:
    """silu(gate) * up: what the first makes for the second only is inside."""
    records = [
        Record("lookup", "embedding", "embed", output=1, written=8, parameters=[90]),
        Record("matmul", "mm", "gate", inputs={1: 8}, output=2, written=8, rows=1, depth=8, columns=8),
        Record("pointwise", "silu", "act", inputs={2: 8}, output=3, written=8, saves={2: 8}),
        Record("matmul", "mm", "up", inputs={1: 8}, output=4, written=8, rows=1, depth=8, columns=8),
        Record("pointwise", "mul", "", inputs={3: 8, 4: 8}, output=5, written=8, saves={3: 8, 4: 8}),
        Record("matmul", "mm", "down", inputs={5: 8}, output=6, written=8, saves={5: 8}, rows=1, depth=8, columns=8),
    ]
    groups = grouped(Trace(1, records, {90: 8}), [1] * 6, [each.path or each.operation for each in records])
    assert [each.op_class for each in groups] == ["embedding", "matmul", "matmul", "activation", "matmul"]
    activation = groups[3]
    assert (activation.read, activation.written, activation.saved) == (16, 8, 16)
    assert groups[4].saved == 8


def test_the_document_counts_as_the_table_does() -> None:
    traced, table = make_traced_model(), model_from_hf_config(dict(CONFIG), "m", "config.json")
    assert total_parameters(traced) == active_parameters(traced) == total_parameters(table)
    assert forward_flops_per_token(traced, 512) == forward_flops_per_token(table, 512)
    assert ModelSpec.model_validate(traced.model_dump(mode="json")) == traced
    assert {each.name for each in head_operators(traced)} == {"model.norm.mul", "lm_head", "cross_entropy"}
    assert sum(parameters_by_module(traced).values()) == total_parameters(traced)


def test_weights_that_no_text_meets_are_not_active() -> None:
    entry = [*make_traced_model().model_dump(mode="json")["traced"]["entry"]]
    model = make_traced_model(entry=[*entry, {"name": "unmet", "op_class": "embedding", "parameters": 1000}])
    assert total_parameters(model) - active_parameters(model) == 1000
    assert any("1,000 parameters" in each for each in trace_notes(model))
    assert not any("do no work" in each for each in trace_notes(make_traced_model()))


def test_a_traced_model_has_traced_layers_only() -> None:
    document = make_traced_model().model_dump(mode="json")
    del document["traced"]
    with pytest.raises(ValueError, match="traced layers only"):
        ModelSpec.model_validate(document)


def test_a_kind_of_layer_keeps_what_its_operators_keep() -> None:
    assert sum(each.saved_width for each in layer_operators(make_traced_model(), 0)) == 64 * 3 + 64 * 4 + 128 * 3 + 64


@pytest.mark.parametrize(
    ("kind", "says"), [("reformer", "torch and transformers must"), ("of_next_year", "pip install")]
)
def test_without_torch_the_error_says_how_to_get_it(kind: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "find_spec", lambda name: None)
    with pytest.raises(DocumentInvalid) as caught:
        model_from_hf_config({"model_type": kind}, "m", "config.json")
    said = f"{caught.value.what} {caught.value.hint}"
    assert says in said
    assert tracing.INSTALL in said


def test_code_beside_a_config_is_never_run() -> None:
    pytest.importorskip("transformers", reason="whether it has the type is read from transformers")
    config = {"model_type": "reformer", "auto_map": {"AutoModelForCausalLM": "modeling_x.X"}}
    with pytest.raises(DocumentInvalid, match="auto_map"):
        model_from_hf_config(config, "m", "config.json")
