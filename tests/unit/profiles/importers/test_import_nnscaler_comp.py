"""nnScaler's operator profiles: the real file, older forms, broken entries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.nnscaler_comp import FORMAT
from profiles.observations.timing import Timing
from tests.importing import read, read_anyway, sample, written

KEY = "(2, 8, 16)-(32, 16)-(2, 8, 32) : torch.bfloat16-torch.bfloat16-torch.bfloat16 : True-True-True"


def test_matmul() -> None:
    imported = read(FORMAT, sample("nnscaler/comp_torch.matmul.json"))
    (batch,) = imported.batches
    assert imported.bad_rows == []
    forward, backward = batch.operators[:2]
    assert (forward.timing, backward.timing) == (
        Timing(0.024786032736301422 * 1e-3, "mean"),
        Timing(0.15842635184526443 * 1e-3, "mean"),
    )
    assert forward.shape == {"batch_size": 16, "m": 128, "n": 128, "k": 64}
    assert (forward.operator, forward.dtype, forward.name) == ("matmul", "fp32", "torch.matmul")
    assert (forward.weights_bytes, forward.activation_bytes, backward.phase) == (0, 1048576, "backward")


def test_linear_with_parameters_and_no_backward(tmp_path: Path) -> None:
    entry = {
        "in_mem_info": [512], "param_mem_info": [1024], "buffer_mem_info": [], "fw_span": 2.0, "bw_span": 0.0,
        "infer_memory": 5, "train_mem_info": [512, 1024],
    }  # fmt: skip
    imported = read(FORMAT, written(tmp_path, "torch.nn.functional.linear.json", json.dumps({KEY: entry})))
    (found,) = imported.batches[0].operators
    assert (found.shape, found.dtype) == ({"m": 16, "n": 32, "k": 16}, "bf16")
    assert (found.weights_bytes, found.activation_bytes) == (1024, 1536)
    assert sum(imported.skipped.values()) == 1


def test_nested_lists_of_older_versions(tmp_path: Path) -> None:
    entry = [[512], [1024], 2.0, 4.5, 5, [512]]
    text = json.dumps({"torch.nn.functional.softmax": {KEY.replace(" : True-True-True", ""): entry}})
    imported = read(FORMAT, written(tmp_path, "db.json", text))
    forward, backward = imported.batches[0].operators
    assert (forward.operator, forward.name, forward.weights_bytes) == ("softmax", "torch.nn.functional.softmax", 1024)
    assert backward.timing == Timing(4.5 * 1e-3, "mean")
    assert forward.activation_bytes == 512


@pytest.mark.parametrize(
    "entry", [{"fw_span": -1.0}, {"fw_span": "x"}, {}, [], [1], {"fw_span": 1.0, "param_mem_info": [1.5]}, 3]
)
def test_broken_entries_are_reported(tmp_path: Path, entry: object) -> None:
    good = {"in_mem_info": [], "fw_span": 1.0, "bw_span": 1.0}
    text = json.dumps({KEY: entry, KEY.replace("(2, 8", "(4, 8"): good})
    imported = read(FORMAT, written(tmp_path, "torch.matmul.json", text))
    assert len(imported.bad_rows) == 1
    assert len(imported.batches[0].operators) == 2


@pytest.mark.parametrize("text", ["[]", "{", "{}", '{"a": 1}'])
def test_other_documents_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "x.json", text)])
