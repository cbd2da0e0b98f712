"""Aceso's operator profiles: the real file, zero times, broken rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.importers.aceso import FORMAT
from profiles.observations.timing import Timing
from tests.importing import read, sample, written

HEADER = (
    "op_name,forward-compute,backward-compute,input_size,output_size,weights,activations,fwd_reserved,bwd_reserved\n"
)


def test_gpt_1_3b() -> None:
    imported = read(FORMAT, sample("aceso/gpt_1_3B_mbs1_tp1_algo0.csv"), given={"dtype": "fp16"})
    (batch,) = imported.batches
    # 16 operators, forward and backward.
    assert (len(batch.operators), imported.bad_rows, imported.skipped) == (32, [], {})
    qkv, back = (each for each in batch.operators if each.name == "enc-attention-qkv")
    assert (qkv.timing, back.timing) == (
        Timing(708.879 * 1e-6, "mean"),
        Timing(1296.924 * 1e-6, "mean"),
    )
    assert (qkv.phase, back.phase, qkv.operator, qkv.row) == ("forward", "backward", "matmul", 4)
    assert (qkv.weights_bytes, qkv.activation_bytes) == (24 * 2**20, 24 * 2**20)
    assert qkv.shape == {"batch_size": 1, "tensor_parallel": 1}
    assert qkv.detail == {
        "model": "gpt_1_3B", "algorithm": 0, "input_size_bytes": 16 * 2**20, "output_size_bytes": 32 * 2**20,
        "reserved_bytes": 20 * 2**20,
    }  # fmt: skip
    classes = {each.name: each.operator for each in batch.operators}
    assert classes["enc-attention-softmax"] == "softmax"
    assert classes["enc-1st-layernorm"] == "norm"
    assert classes["gpt-post-process"] == "module"


def test_a_phase_without_time_is_left_out(tmp_path: Path) -> None:
    imported = read(FORMAT, written(tmp_path, "x.csv", HEADER + "relu,1.5,0.000,1,1,0,1,0,0\n"))
    assert [each.phase for each in imported.batches[0].operators] == ["forward"]
    assert list(imported.skipped.values()) == [1]
    assert [flag.code for flag in imported.flags] == ["name-lost"]


@pytest.mark.parametrize(
    "row", ["a,nan,1,1,1,0,1,0,0", "a,1,-1,1,1,0,1,0,0", "a,1,1,1,1,-2,1,0,0", ",1,1,1,1,0,1,0,0", "a,1"]
)
def test_broken_rows(tmp_path: Path, row: str) -> None:
    imported = read(FORMAT, written(tmp_path, "g_mbs2_tp4_algo1.csv", HEADER + row + "\nb,1,1,1,1,0,1,0,0\n"))
    assert [bad.where for bad in imported.bad_rows] == ["line 2"]
    assert {(each.row, each.shape["tensor_parallel"]) for each in imported.batches[0].operators} == {(3, 4)}
