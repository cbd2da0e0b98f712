"""Metis' profiles: the real file, the guide's variations, broken documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.metis import FORMAT
from tests.importing import read, read_anyway, sample, written


def document(**times: Any) -> dict[str, Any]:
    """A small profile of three layers."""
    return {
        "model": {"model_name": "GPT", "num_layers": 3, "parameters": {"parameters_per_layer_bytes": [10, 20, 30]}},
        "execution_time": {"layer_compute_total_ms": [1.0, 2.0, 0.5], **times},
        "execution_memory": {"total_memory_mb": 6.5, "layer_memory_total_mb": [1, 2, 3.5]},
    }


def test_gpt3_on_a100() -> None:
    imported = read(FORMAT, sample("metis/DeviceType.A100_tp1_bs1.json"))
    (batch,) = imported.batches
    assert (batch.environment.device_reported, imported.bad_rows) == ("A100", [])
    layers = [each for each in batch.operators if "layer" in each.detail]
    assert [each.name for each in layers] == ["embedding", *["layer"] * 8, "head"]
    assert layers[1].timing is not None
    assert layers[1].timing.time_s == pytest.approx(29.507994651794434e-3)
    assert (layers[1].weights_bytes, layers[1].peak_bytes) == (202383360, 4146 * 2**20)
    assert layers[1].shape == {"batch_size": 1, "tensor_parallel": 1}
    optimizer = next(each for each in batch.operators if each.operator == "optimizer")
    assert optimizer.timing is not None
    assert optimizer.timing.time_s == pytest.approx(39.308977127075195e-3)
    assert optimizer.phase == "step"
    (step,) = batch.iterations
    assert (step.strategy, step.micro_batch_size, step.model) == ({"tp": 1}, 1, "GPT3")
    assert imported.facts["layernorm_grads_all_reduce_time_s"] == pytest.approx(0.020313262939453125e-3)


def test_times_may_be_null_and_the_name_lost(tmp_path: Path) -> None:
    text = json.dumps(document(total_time_ms=5.0, optimizer_time_ms=None, layernorm_grads_all_reduce_time_ms=None))
    imported = read(FORMAT, written(tmp_path, "profile.json", text))
    assert [each.peak_bytes for each in imported.batches[0].operators] == [2**20, 2**21, 3.5 * 2**20]
    assert [flag.code for flag in imported.flags] == ["name-lost"]
    assert imported.batches[0].iterations[0].strategy == {}


@pytest.mark.parametrize("value", [-1.0, 0, "x", True, None, [1]])
def test_a_broken_layer_is_reported(tmp_path: Path, value: object) -> None:
    data = document()
    data["execution_time"]["layer_compute_total_ms"][1] = value
    imported = read(FORMAT, written(tmp_path, "DeviceType.H100_tp2_bs4.json", json.dumps(data)))
    assert [bad.where for bad in imported.bad_rows] == ["#/execution_time/layer_compute_total_ms/1"]
    assert [each.row for each in imported.batches[0].operators] == [0, 2]


@pytest.mark.parametrize(
    "text", ['{"execution_time": []}', "[]", '{"execution_time": {"layer_compute_total_ms": []}}', "{"]
)
def test_other_documents_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "x.json", text)])
