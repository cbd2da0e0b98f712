"""Measured serving points: reading, mapping, judging; and the command that shows the errors."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.cli.main import build_app
from planner.errors import DocumentInvalid
from planner.serving.evidence.behaviours import BEHAVIOURS, TENSORRT_LLM_0, generation
from planner.serving.evidence.judged import derived_throughput, is_fitted_on, measured_value
from planner.serving.evidence.mapped import MeasuredPoint, mapped
from planner.serving.evidence.report import assess, markdown_section, stated_intervals
from planner.serving.evidence.truth import COLUMNS, is_serving_truth, read_serving_truth
from planner.serving.evidence.unmapped import RowUnmapped

PLAIN = {
    "id": "a-row",
    "source": "a page@1",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "device": "H100-SXM-80GB",
    "num_devices": "2",
    "tp": "2",
    "pp": "1",
    "isl": "1024",
    "osl": "256",
    "precision": "FP8",
    "engine": "vLLM",
    "engine_version": "v0.19.0",
    "scenario": "aggregated, fixed concurrency",
    "batch_or_concurrency": "16",
    "ttft_ms": "90",
    "tpot_ms": "6",
}
MOE = {"model": "deepseek-ai/DeepSeek-R1", "device": "B200-SXM-180GB", "precision": "fp4 (gemm nvfp4, moe nvfp4)"}


def text_of(*rows: dict[str, str]) -> str:
    written = io.StringIO()
    writer = csv.DictWriter(written, COLUMNS, restval="")
    writer.writeheader()
    writer.writerows({**PLAIN, **row} for row in rows)
    return written.getvalue()


def point(**cells: str) -> MeasuredPoint:
    return mapped(read_serving_truth(text_of(cells), "here")[0])


def test_a_row_says_model_layout_formats_and_load() -> None:
    found = point()
    layout = found.deployment.groups[0].layout
    assert (found.model.name, found.device, found.engine, found.release) == (
        "llama-3.1-8b",
        "h100-sxm5-80gb",
        "vllm",
        "0.19.0",
    )
    assert (layout.tp, layout.attention_dp, layout.ep, found.load) == (2, 1, 1, 16)
    assert (found.deployment.formats.weights, found.deployment.formats.kv_cache) == ("fp8", "fp8")
    assert (found.ttft_s, found.tpot_s) == (0.09, 0.006)


def test_rows_of_inference_max_have_uniform_lengths_and_multiplied_axes() -> None:
    notes = "db-dump/2026-04-27; config_id=202; moe_tp=4; FLAG GPU count from tp*attention_dp >8, check the mapping"
    found = point(**MOE, tp="16", ep="4", attention_dp="1", notes=notes)
    layout = found.deployment.groups[0].layout
    assert (layout.tp, layout.ep, layout.etp) == (4, 4, 1)
    assert (found.traffic.input_tokens.low, found.traffic.input_tokens.high) == (819, 1024)
    assert found.deployment.groups[0].settings.max_num_sequences == 16
    ranks = point(**MOE, tp="1", ep="8", attention_dp="64", notes="db-dump/2026-04-27; moe_tp=8; ")
    assert ranks.deployment.groups[0].layout.attention_dp == 8


def test_pools_of_prefill_and_decode() -> None:
    notes = "db-dump/2026; disagg prefill workers=4 bs=1 moe_tp=1; decode workers=1 bs=16 moe_tp=1; "
    kind = "disaggregated P/D, fixed concurrency"
    axes = {"tp": "P1/D1", "pp": "P1/D1", "ep": "P4/D32", "attention_dp": "P4/D32"}
    found = point(**MOE | axes | {"device": "GB200-192GB", "scenario": kind, "notes": notes})
    prefill, decode = found.deployment.groups
    assert (prefill.num_instances, prefill.layout.attention_dp, decode.layout.ep) == (4, 4, 32)
    with pytest.raises(RowUnmapped, match="numbers of prefill and decode"):
        point(**MOE | axes | {"scenario": kind, "notes": "disagg prefill workers= bs= moe_tp=1; "})


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"engine": "llama.cpp family"}, "not one of the engines"),
        ({"model": "A model of nobody"}, "not known"),
        ({"device": "MI300X"}, "no catalogue cluster"),
        ({"isl": ""}, "lengths"),
        ({"tp": ""}, "tp is not stated"),
        ({"tp": "36"}, "more devices than a node"),
        ({"notes": "flags: --speculative-algorithm EAGLE"}, "speculative"),
        ({"scenario": "single stream"}, "not a kind of run"),
    ],
)
def test_rows_that_cannot_be_predicted_say_why(cells: dict[str, str], reason: str) -> None:
    with pytest.raises(RowUnmapped, match=reason):
        point(**cells)


def test_files_are_known_by_their_columns() -> None:
    assert is_serving_truth(text_of({}))
    assert not is_serving_truth("id,source,model,mfu_pct\n")
    with pytest.raises(DocumentInvalid, match="columns are missing"):
        read_serving_truth("id,isl,osl,ttft_ms,tpot_ms\n", "here")
    with pytest.raises(DocumentInvalid, match="share ids"):
        read_serving_truth(text_of({}, {}), "here")


def test_sweeps_stay_together() -> None:
    parts = {
        is_fitted_on(point(id=str(load), batch_or_concurrency=str(load), tp=str(tp)))
        for load in (1, 8)
        for tp in (1, 2)
    }
    assert len(parts) == 1
    assert len({is_fitted_on(point(engine_version=f"0.{number}")) for number in range(12)}) == 2


def test_throughput_by_littles_law() -> None:
    found = point()
    assert derived_throughput(found) == pytest.approx(16 * 256 / (0.09 + 255 * 0.006))
    assert measured_value(point(tokens_per_s_total="1234"), "throughput") == 1234


def test_every_kind_of_run_is_predicted_near_what_such_runs_take() -> None:
    rows = [
        {"id": "aggregated"},
        {"id": "static", "scenario": "static batch throughput", "tokens_per_s_total": "2000"},
        {"id": "first", "scenario": "first-token latency (prefill)", "batch_or_concurrency": "1", "tpot_ms": ""},
        {"id": "rate", "scenario": "online serving, 500 requests", "batch_or_concurrency": "", "request_rate": "4"},
        {
            "id": "most",
            "scenario": "offline max throughput",
            "batch_or_concurrency": "inf",
            "tokens_per_s_total": "9e3",
        },
    ]
    report = assess(read_serving_truth(text_of(*rows), "here"))
    assert not report.unmapped
    found = {judged.point.row.id: judged.predicted for judged in report.judged}
    assert 0.003 < (found["aggregated"].tpot_s or 0.0) < 0.012
    assert 0.01 < (found["first"].ttft_s or 0.0) < 0.08
    assert found["rate"].output_tokens_per_s == pytest.approx(4 * 256)
    most, less = (found[name].output_tokens_per_s or 0.0 for name in ("most", "aggregated"))
    assert most > less > 0
    assert "## Serving" in markdown_section(report)


def test_generations_and_stated_intervals() -> None:
    assert generation("tensorrt-llm", "0.17") == TENSORRT_LLM_0
    assert generation("tensorrt-llm", "0.8.1.post2") == generation("tensorrt-llm", "1.0") == "tensorrt-llm"
    assert set(BEHAVIOURS) >= {"vllm", "sglang", "tensorrt-llm"}
    for by_engine in stated_intervals().values():
        assert all(low < 1 < high for low, high in by_engine.values())


def test_the_command_knows_serving_points(tmp_path: Path) -> None:
    file = tmp_path / "points.csv"
    file.write_text(text_of({}, {"id": "other", "device": "MI300X"}), encoding="utf-8")
    ran = CliRunner().invoke(build_app("accuracy"), ["accuracy", str(file), "--output", "json"], prog_name="meshwright")
    assert ran.exit_code == 0, ran.output
    answer = json.loads(ran.stdout[ran.stdout.index("{") :])
    assert answer["Rows that were not predicted"][0]["reason"].startswith("no catalogue cluster")
    training = tmp_path / "runs.csv"
    training.write_text("id,source,model\n", encoding="utf-8")
    mixed = CliRunner().invoke(build_app("accuracy"), ["accuracy", str(file), str(training)], prog_name="meshwright")
    assert mixed.exit_code != 0
