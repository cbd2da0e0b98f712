"""NeuSight's operators: eight devices in one real file, other operators written out, device files refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.neusight import FORMAT
from tests.importing import read, sample, written


def test_linear_on_eight_devices() -> None:
    imported = read(FORMAT, sample("neusight/test_linear.csv"))
    sizes = {batch.environment.device_reported: len(batch.operators) for batch in imported.batches}
    assert sizes == {
        "NVIDIA L4": 1040, "Tesla V100-PCIE-32GB": 1040, "NVIDIA A100-PCIE-40GB": 1040, "Tesla P100-PCIE-16GB": 1040,
        "Tesla T4": 1040, "Tesla P4": 974, "NVIDIA H100 80GB HBM3": 1040, "NVIDIA A100 80GB PCIe": 1040,
    }  # fmt: skip
    assert imported.bad_rows == []
    first = imported.batches[0].operators[0]
    assert first.timing is not None
    assert first.timing.time_s == pytest.approx(1.1338346401850383e-3)
    assert (first.operator, first.shape, first.dtype) == ("matmul", {"m": 1024, "n": 2560, "k": 2560}, "fp32")
    environment = imported.batches[0].environment
    assert (environment.framework_version, environment.runtime_version) == ("2.1.0", "12.1")


@pytest.mark.parametrize(
    ("row", "operator", "phase", "shape"),
    [
        ("bmm,2.0,NVIDIA L4,12,1024,64,512,", "matmul", "forward", {"batch_size": 12, "m": 1024, "n": 64, "k": 512}),
        (
            "softmax,2.0,NVIDIA L4,64,,,,128",
            "softmax",
            "forward",
            {"num_tokens": 64, "hidden_size": 128, "num_elements": 8192},
        ),
        (
            "VECgelu_bw,2.0,NVIDIA L4,64,,,,128",
            "other",
            "backward",
            {"num_tokens": 64, "hidden_size": 128, "num_elements": 8192},
        ),
        (
            "layernorm,2.0,NVIDIA L4,64,,,,128",
            "norm",
            "forward",
            {"num_tokens": 64, "hidden_size": 128, "num_elements": 8192},
        ),
    ],
)
def test_other_operators(tmp_path: Path, row: str, operator: str, phase: str, shape: dict[str, int]) -> None:
    text = "OPName,Latency,Device,B,M,N,K,H\n" + row + "\n"
    (found,) = read(FORMAT, written(tmp_path, "a.csv", text), given={"dtype": "float32"}).batches[0].operators
    assert (found.operator, found.phase, found.shape, found.dtype) == (operator, phase, shape, "fp32")


@pytest.mark.parametrize(
    "row", ["linear,nan,L4,1,2,3,4,", "linear,-1,L4,1,2,3,4,", "linear,1,L4,1,,3,4,", ",1,L4,1,2,3,4,", "x"]
)
def test_broken_rows(tmp_path: Path, row: str) -> None:
    text = "OPName,Latency,Device,B,M,N,K,H\n" + row + "\nlinear,1,L4,1,2,3,4,\n"
    imported = read(FORMAT, written(tmp_path, "a.csv", text))
    assert [bad.where for bad in imported.bad_rows] == ["line 2"]
    assert imported.batches[0].operators[0].row == 3


def test_a_device_file_is_no_measurement() -> None:
    with pytest.raises(DocumentInvalid, match="no measurement"):
        read(FORMAT, sample("neusight/NVIDIA_H100_80GB_HBM3.json"))
