"""TVM tuning records: three generations written out, the fastest candidate kept, broken lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.tvm_tuning_records import FORMAT
from profiles.observations.timing import Timing
from tests.importing import read, read_anyway, written


def autotvm(seconds: list[float], code: int = 0, task: str = "dense_large_batch.cuda") -> str:
    """One record of a 128 x 1024 product with 512 inputs."""
    arguments = [["TENSOR", [128, 512], "float16"], ["TENSOR", [1024, 512], "float16"], None, "float16"]
    target = "cuda -keys=cuda,gpu -arch=sm_86 -model=nvidia/geforce-rtx-3090"
    return json.dumps({
        "input": [target, task, arguments, {}], "config": {"index": 1}, "result": [seconds, code, 1.5, 1617974250.8],
        "version": 0.2, "tvm_version": "0.8.dev0",
    }) + "\n"  # fmt: skip


def test_autotvm_keeps_the_fastest(tmp_path: Path) -> None:
    text = autotvm([0.002]) + autotvm([0.001, 0.0012, 0.0014]) + autotvm([1e9], 4) + autotvm([0.003])
    imported = read(FORMAT, written(tmp_path, "tune.log", text))
    (batch,) = imported.batches
    (found,) = batch.operators
    assert found.timing == Timing(0.0012, "median", 3, min_s=0.001, max_s=0.0014)
    assert (found.operator, found.shape, found.dtype) == ("matmul", {"m": 128, "n": 1024, "k": 512}, "fp16")
    assert (batch.environment.device_reported, found.row) == ("nvidia geforce-rtx-3090", 2)
    assert imported.skipped == {"slower or failed candidate of a workload": 3}


def test_a_workload_that_always_failed_is_a_failure(tmp_path: Path) -> None:
    text = autotvm([1e9], 4, task="conv2d_nchw.cuda") + autotvm([0.001])
    imported = read(FORMAT, written(tmp_path, "tune.log", text))
    failed = next(each for each in imported.batches[0].operators if not each.ok)
    assert (failed.operator, failed.timing, failed.error) == ("convolution", None, "error 4")


def test_ansor_and_meta_schedule(tmp_path: Path) -> None:
    ansor = {
        "i": [['["6b7583cf23c7c37d3212cad9d06e58c1", 1, 64]', "cuda -keys=cuda,gpu", [1], "", 0, []], [[], []]],
        "r": [[0.0005], 0, 1.2, 1617974250], "v": "v0.6",
    }  # fmt: skip
    imported = read(FORMAT, written(tmp_path, "ansor.json", json.dumps(ansor) + "\n"))
    (found,) = imported.batches[0].operators
    assert (found.name, found.timing) == ("ansor 6b7583cf23c7c37d", Timing(0.0005, "single", 1))
    trace = [[["GetBlock", [], ["matmul", "main"], ["b0"]]], []]
    target = {"kind": "cuda", "arch": "sm_90", "max_threads_per_block": 1024}
    lines = [
        [
            0,
            [trace, [2e-05, 3e-05, 4e-05], target, [["TENSOR", "float32", [128, 64]], ["TENSOR", "float32", [64, 32]]]],
        ],
        [1, [trace, [1e10], target, [["TENSOR", "float32", [8, 8]]]]],
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    imported = read(FORMAT, written(tmp_path, "database_tuning_record.json", text))
    first, failed = imported.batches[0].operators
    assert (first.timing, first.dtype) == (Timing(3e-05, "median", 3, min_s=2e-05, max_s=4e-05), "fp32")
    assert first.detail == {"arguments": "fp32[128, 64] fp32[64, 32]".replace("fp32", "float32")}
    assert (failed.ok, failed.name) == (False, "workload 1")
    assert imported.batches[0].environment.note == "target sm_90"


@pytest.mark.parametrize(
    "line", ['{"input": [', "[1, 2]", '{"input": 3, "result": 4}', "[" * 100_000, '{"i": [[]], "r": []}', "hello", "3"]
)
def test_broken_lines(tmp_path: Path, line: str) -> None:
    imported = read(FORMAT, written(tmp_path, "tune.log", autotvm([0.001]) + line + "\n"))
    assert [bad.where for bad in imported.bad_rows] == ["line 2"]
    assert len(imported.batches[0].operators) == 1


def test_times_that_are_none(tmp_path: Path) -> None:
    imported = read(FORMAT, written(tmp_path, "tune.log", autotvm([0.001]) + autotvm([-1.0]) + autotvm([float("nan")])))
    assert [bad.where for bad in imported.bad_rows] == ["line 2", "line 3"]
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "b.log", "hello\n")])


def test_the_first_version_of_autotvm(tmp_path: Path) -> None:
    text = (
        '{"i": ["cuda -model=1080ti", "topi_nn_dense", [["TENSOR", [1, 2048], "float32"], '
        '["TENSOR", [1000, 2048], "float32"], null, "float32"], {}, ["dense"], {"i": 8}], '
        '"r": [[1.2e-05], 0, 2.5, 1551000000.0], "v": 0.1}'
    )
    imported = read(FORMAT, written(tmp_path, "cuda.log", text))
    (found,) = imported.batches[0].operators
    assert imported.batches[0].environment.device_reported == "1080ti"
    assert (found.name, found.dtype, found.row) == ("topi_nn_dense", "fp32", 1)
    assert (found.operator, found.shape) == ("matmul", {"m": 1, "n": 1000, "k": 2048})
    assert found.timing is not None
    assert found.timing.time_s == 1.2e-5
