"""A row runs under the traits that its own words say, and is judged only where it says enough."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.backends.registry import backends, physics_by_name, software
from planner.evidence.accuracy.statistics import oom_figures
from planner.evidence.runs.flavours import FLAVOURS
from planner.evidence.runs.prediction import map_rows, predict_rows
from planner.evidence.runs.row_flavour import flavour_of_row
from tests.accuracy_rows import PLAIN, rows_of

CI = {"source": "github:NVIDIA/Megatron-LM:tests/functional_tests/test_cases/a.json"}


@pytest.mark.parametrize(
    ("change", "attention", "copies"),
    [
        ({"notes": "flags: transformer-impl=local;swiglu=True"}, "unfused", 0.0),
        ({"notes": "flags: attention-backend=unfused"}, "unfused", 0.0),
        ({"notes": "flags: attention-backend=flash", "device": "H100-SXM-80GB"}, "best", 0.0),
        ({"notes": "flags: attention-backend=flash", "device": "A100-SXM-80GB"}, "best", 1.0),
    ],
)
def test_megatron_tests_name_their_attention(change: dict[str, str], attention: str, copies: float) -> None:
    (row,) = rows_of({**CI, **change})
    traits = flavour_of_row(row).traits
    assert (traits.attention, traits.attention_output_copies, traits.dropout) == (attention, copies, True)


def test_deepspeed_accumulates_bf16_gradients_in_fp32() -> None:
    source = {"source": "github:bigscience-workshop/bigscience:train/a.md"}
    half, brain = rows_of({**source, "precision": "fp16"}, {**source, "precision": "bf16"})
    assert flavour_of_row(half).gradient_dtype == "bf16"
    assert flavour_of_row(brain).gradient_dtype == "fp32"


def test_a_run_that_fits_only_with_recompute_is_not_judged_unless_it_says_whether_it_recomputed() -> None:
    """8B on one node of eight,
    sixteen samples of 8,192 tokens at once: over 80 GB kept, under 80 GB replayed."""
    tight = {"num_devices": "8", "tp": "8", "pp": "1", "dp": "1", "gbs": "16", "mbs": "16"}
    hopeless = {**tight, "num_devices": "1", "tp": "1", "mbs": "1"}
    rows = rows_of(
        {**tight, "recompute": ""},
        {**tight, "recompute": "none"},
        {**tight, "recompute": "full"},
        {**hopeless, "recompute": ""},
    )
    predictions, _ = predict_rows(rows)
    assert [each.fits for each in predictions] == [None, False, True, False]
    figures = oom_figures(predictions)
    assert (figures["not_judged"], figures["fp"], figures["tn"]) == (1, 2, 1)


@pytest.mark.parametrize(("words", "shard"), [("fsdp2", 8), ("fsdp2-4", 4), ("fsdp4", 4), ("fsdp-4", 4), ("fsdp", 8)])
def test_the_2_of_fsdp2_is_no_shard_group(words: str, shard: int) -> None:
    row = {"zero_or_fsdp": words, "num_devices": "8", "tp": "1", "pp": "1"}
    (mapped,), _ = map_rows(rows_of(row))
    assert (mapped.strategy.dp_shard, mapped.strategy.zero_stage) == (shard, 3)


def test_an_h100_of_96_gb_has_them() -> None:
    (usual, larger), _ = predict_rows(rows_of({}, {"device": "H100-96GB-HBM2e-500W"}))
    assert larger.memory_limit_bytes / usual.memory_limit_bytes == pytest.approx(1.2, rel=0.01)


@pytest.mark.parametrize("name", sorted(physics_by_name()))
def test_a_row_may_name_its_framework(name: str) -> None:
    (row,) = rows_of({"source": "https://example.org/ours"})
    found = flavour_of_row(replace(row, framework=name))
    assert found.traits == physics_by_name()[name]
    assert found.traits != physics_by_name()["tuned"] or found == flavour_of_row(row)
    assert flavour_of_row(replace(row, framework="something else")) == flavour_of_row(row)


@pytest.mark.parametrize("name", [*sorted(backends()), "megatron==2.5", "torchtitan==0.2.2"])
def test_a_row_may_name_its_back_end(name: str) -> None:
    (row,) = rows_of({"source": "https://example.org/ours"})
    assert flavour_of_row(replace(row, framework=name)).traits == software(name).release.physics


def test_a_flavour_names_a_back_end_that_is_known() -> None:
    named = {flavour.backend for _, flavour in FLAVOURS} - {"", "internevo"}
    assert len(named) > 8
    for name in named:
        software(name)


def test_weights_that_come_back_from_other_nodes_cost_more_than_from_the_own_one() -> None:
    """InternEvo waits for every weight after its update; measured 4.59 s with zero1 over 128 ranks, 4.17 over 8."""
    run = {
        **PLAIN, "source": "github:InternLM/InternEvo", "model": "internlm-7b", "params_b": "7.32", "hidden": "4096",
        "layers": "32", "ffn_hidden": "11008", "heads": "32", "kv_heads": "32", "vocab": "103168", "tp": "1", "pp": "1",
        "device": "A100-SXM-80GB", "num_devices": "128", "seq_len": "2048", "gbs": "1024", "mbs": "2", "dp": "128",
        "recompute": "none", "precision": "bf16", "nodes": "16", "inter_node_link": "4x100G RoCE",
    }  # fmt: skip
    words = ("zero1 (shard group all dp)", "zero1 (shard group 8)")
    (whole, node), unmapped = predict_rows(rows_of(*({**run, "id": each, "zero_or_fsdp": each} for each in words)))
    assert not unmapped
    assert 1.02 < whole.step_time_s / node.step_time_s < 1.1
