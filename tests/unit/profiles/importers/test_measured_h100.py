"""The measured profile that is shipped reads whole, says what it says, and holds nothing faster than the device."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.device_run.bundle import bundled, steady
from profiles.catalogue import load_device
from profiles.importers.meshwright_measure import FORMAT
from profiles.importing.imported import Imported
from profiles.importing.source_file import SourceFile
from profiles.observations.records import OperatorObservation
from tests.importing import read

FOLDER = Path(__file__).parents[4] / "benchmarks" / "measured" / "h100-sxm5-80gb"
COUNTS = {"experts": 1462, "operators": 1071, "fp8": 452}


def shipped(name: str) -> Imported:
    return read(FORMAT, SourceFile(FOLDER / f"{name}.json.gz"))


def operators(name: str) -> list[OperatorObservation]:
    return [each for batch in shipped(name).batches for each in batch.operators]


@pytest.mark.parametrize(("name", "count"), COUNTS.items())
def test_every_observation_is_read(name: str, count: int) -> None:
    imported = shipped(name)
    assert len(operators(name)) == count
    assert not imported.bad_rows
    assert {batch.environment.device for batch in imported.batches} == {"h100-sxm5-80gb"}
    assert {batch.environment.driver_version for batch in imported.batches} == {"580.159.04"}


@pytest.mark.parametrize(
    ("file", "operator", "phase", "dtype", "shape", "microseconds"),
    [
        ("experts", "grouped_matmul", "forward", "bf16", {"num_groups": 16, "m": 256, "n": 3072, "k": 4096}, 171.003),
        (
            "experts",
            "router",
            "forward",
            "fp32",
            {"num_tokens": 4096, "num_experts": 128, "experts_per_token": 8},
            46.395,
        ),
        ("operators", "matmul", "forward", "bf16", {"m": 4096, "n": 4096, "k": 4096}, 196.859),
        ("fp8", "matmul", "forward", "fp8", {"m": 512, "n": 8192, "k": 28672}, 155.931),
    ],
)
def test_figures_read_off_the_run(
    file: str, operator: str, phase: str, dtype: str, shape: dict[str, int], microseconds: float
) -> None:
    found = [
        each.timing.time_s * 1e6
        for each in operators(file)
        if (each.operator, each.phase, each.dtype, each.shape) == (operator, phase, dtype, shape) and each.timing
    ]
    assert any(time == pytest.approx(microseconds, abs=0.001) for time in found), found


@pytest.mark.parametrize("name", COUNTS)
def test_no_product_beats_the_peak(name: str) -> None:
    peaks = load_device("h100-sxm5-80gb").peak_flops_per_s
    rates = [
        2.0 * each.shape.get("num_groups", 1) * each.shape["m"] * each.shape["n"] * each.shape["k"]
        / each.timing.time_s / peaks[each.dtype]
        for each in operators(name)
        if each.operator in ("matmul", "grouped_matmul") and each.timing
    ]  # fmt: skip
    assert rates
    assert 0.6 < max(rates) < 0.85


def test_what_is_unsteady_is_left_out_and_counted() -> None:
    calm = {"operator": "matmul", "timing": {"time_s": 1.0, "p10_s": 0.7}}
    wild = {"operator": "matmul", "timing": {"time_s": 1.0, "p10_s": 0.69}}
    assert steady(calm)
    assert steady({"operator": "matmul", "timing": None})
    assert not steady(wild)
    kept = bundled({"skipped": {"norm: no time": 2}, "batches": [{"operators": [calm, wild, wild]}]})
    assert kept["batches"] == [{"operators": [calm]}]
    assert kept["skipped"] == {"norm: no time": 2, "matmul: the tenth percentile lies under 0.7 of the median": 2}
