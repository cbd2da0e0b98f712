"""vTrain's ground truth: both headers with a mark in front, and broken rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.importers.vtrain_truth import FORMAT
from tests.importing import read, written

REST = "# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,\
data parallelism,pipeline parallelism,iteration time (ms)\n"


def test_one_node(tmp_path: Path) -> None:
    text = "\ufeff" + REST + "2,16,8,1024,16,24,1024,1,1,2,372.160408\n8,32,4,1024,16,24,1024,2,2,2,219.732754\n"
    imported = read(FORMAT, written(tmp_path, "s.csv", text), given={"device": "a100-sxm4-80gb"})
    assert [batch.environment.num_devices for batch in imported.batches] == [2, 8]
    (first,) = imported.batches[0].iterations
    assert first.timing is not None
    assert first.timing.time_s == pytest.approx(0.372160408)
    assert first.strategy == {"tp": 1, "dp": 1, "pp": 2}
    assert (first.global_batch_size, first.micro_batch_size, first.sequence_length) == (16, 8, 1024)
    assert first.detail == {"hidden_size": 1024, "num_attention_heads": 16, "num_layers": 24}
    assert first.row == 2


def test_many_nodes(tmp_path: Path) -> None:
    text = "Parameters (billion)," + REST + "3.6,64,512,8,3072,32,30,2048,1,64,1,3566.5\n"
    (found,) = read(FORMAT, written(tmp_path, "m.csv", text)).batches[0].iterations
    assert found.timing is not None
    assert found.timing.time_s == pytest.approx(3.5665)
    assert (found.num_devices, found.detail["parameters_billion"]) == (64, 3.6)


@pytest.mark.parametrize(
    "row",
    [
        "2,16,8,1024,16,24,1024,1,1,1,372.1",
        "2,16,8,1024,16,24,1024,1,1,2,nan",
        "2,16,8,1024,16,24,1024,1,1,2,-1",
        "2,16",
    ],
)
def test_broken_rows(tmp_path: Path, row: str) -> None:
    good = "2,16,8,1024,16,24,1024,1,1,2,372.160408\n"
    imported = read(FORMAT, written(tmp_path, "s.csv", REST + row + "\n" + good))
    assert [bad.where for bad in imported.bad_rows] == ["line 2"]
    assert [each.row for each in imported.batches[0].iterations] == [3]
