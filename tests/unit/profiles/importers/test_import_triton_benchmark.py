"""Triton's benchmark tables: units in the header, units given, rates without a time, tuned configurations refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.triton_benchmark import FORMAT
from tests.importing import read, read_anyway, written


def test_tflops_of_a_product(tmp_path: Path) -> None:
    text = "M,N,K,cuBLAS (TFLOPS),Triton (TFLOPS)\n256.0,256.0,256.0,4.0,2.0\n512.0,512.0,512.0,16.0,\n"
    imported = read(FORMAT, written(tmp_path, "matmul-performance-fp16.csv", text), given={"dtype": "fp16"})
    first, second, third = imported.batches[0].operators
    assert [each.detail["provider"] for each in (first, second, third)] == ["cuBLAS", "Triton", "cuBLAS"]
    assert first.timing is not None
    assert first.timing.time_s == pytest.approx(2 * 256**3 / 4e12)
    assert (first.shape, first.dtype) == ({"m": 256, "n": 256, "k": 256}, "fp16")
    assert imported.skipped == {"case that the provider did not run": 1}


def test_milliseconds_given_by_the_user(tmp_path: Path) -> None:
    text = "M,N,Triton,Torch\n4096,1024,0.25,0.5\n"
    file = written(tmp_path, "softmax-performance.csv", text)
    with pytest.raises(DocumentInvalid, match="no unit"):
        read(FORMAT, file)
    first, _ = read(FORMAT, file, given={"unit": "ms"}).batches[0].operators
    assert first.timing is not None
    assert first.timing.time_s == pytest.approx(0.25e-3)
    assert (first.operator, first.shape) == ("softmax", {"num_tokens": 4096, "hidden_size": 1024})


def test_a_rate_of_unknown_work_has_no_time(tmp_path: Path) -> None:
    file = written(tmp_path, "vector-add-performance.csv", "size,Triton (GB/s),Torch (GB/s)\n4096.0,9.5,9.25\n")
    with pytest.raises(DocumentInvalid, match="FLOPs or bytes"):
        read(FORMAT, file)


def test_a_tuned_configuration_is_refused(tmp_path: Path) -> None:
    text = '{"1": {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 128, "GROUP_SIZE_M": 1, "num_warps": 4}}'
    with pytest.raises(DocumentInvalid, match="tile sizes"):
        read(FORMAT, written(tmp_path, "E=8,N=1792,device_name=NVIDIA_H100_80GB_HBM3.json", text))


@pytest.mark.parametrize("row", ["256,256,256,nan", "256,256,256,-1", "256,256,256,0", "256,256,x,1", "256,256"])
def test_broken_rows(tmp_path: Path, row: str) -> None:
    text = "M,N,K,Triton (TFLOPS)\n256,256,256,2.0\n" + row + "\n"
    imported = read(FORMAT, written(tmp_path, "matmul.csv", text))
    assert [bad.where for bad in imported.bad_rows] == ["line 3"]
    assert len(imported.batches[0].operators) == 1


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "M,N,K\n1,2,3\n", "M,Latency\n1,2\n", "size,Triton\nx,y\n"])
def test_other_tables_do_not_match(tmp_path: Path, text: str) -> None:
    assert not FORMAT.matches(written(tmp_path, "a.csv", text).head())


def test_an_empty_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "a.csv", "M,N,K,Triton (TFLOPS)\n")])
