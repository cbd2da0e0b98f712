# ruff: noqa: E501  tables stand as the tool prints them
"""Nsight Compute CSV: one row a metric or one row a launch, units, locales, and broken rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.ncu_csv import FORMAT
from tests.importing import read, read_anyway, sample, written

LONG = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'


def _row(launch: int, kernel: str, metric: str, unit: str, value: str) -> str:
    return f'"{launch}","7","app","secret-host","{kernel}","1","7","(384, 1, 1)","(9, 32, 1)","0","9.0","S","{metric}","{unit}","{value}"\n'


def test_real_log_of_a_gemm_with_application_output_around() -> None:
    found = read(FORMAT, sample("p2p/superbench_cublaslt_ncu.log"))
    assert found.bad_rows == []
    (batch,) = found.batches
    (operator,) = batch.operators
    assert operator.operator == "matmul"
    assert operator.name.startswith("cutlass3x_sm100_tensorop_s64x256x32gemm_f8")
    assert operator.timing is not None
    assert (operator.timing.time_s, operator.timing.statistic) == (406240 / 1e9, "single")
    assert operator.detail == {"grid": "(9, 32, 1)", "block": "(384, 1, 1)"}
    assert operator.shape == {}
    assert batch.environment.clock_hz == 1239496049.13
    assert "locked-clocks" in {flag.code for flag in found.flags}
    assert "371693" not in repr(found.batches)


def test_launches_of_one_kernel_are_reduced(tmp_path: Path) -> None:
    text = "==PROF== Connected to process 1\n" + LONG
    for launch, value in enumerate(("10", "30", "20")):
        text += _row(launch, "ampere_sgemm, nn", "gpu__time_duration.sum", "us", value)
        text += _row(launch, "ampere_sgemm, nn", "dram__bytes.sum", "Mbyte", "1.5")
    found = read(FORMAT, written(tmp_path, "a.csv", text + "done, with, this\n==PROF== Disconnected\n"))
    (operator,) = found.batches[0].operators
    assert operator.timing is not None
    assert (operator.timing.time_s, operator.timing.num_samples, operator.timing.max_s) == (20e-6, 3, 30e-6)
    assert "secret-host" not in repr(found)


@pytest.mark.parametrize(
    ("unit", "value", "seconds"),
    [
        ("ns", "406240", 406240e-9),
        ("nsecond", "406,240", 406240e-9),
        ("us", "5.92", 5.92e-6),
        ("usecond", "5.92", 5.92e-6),
        ("ms", "1.25", 1.25e-3),
        ("msecond", "1.25", 1.25e-3),
        ("s", "1.5", 1.5),
        ("second", "1.5", 1.5),
        ("ns", "117.344", 117344e-9),
        ("us", "65,77", 65.77e-6),
    ],
)
def test_units_and_locales(tmp_path: Path, unit: str, value: str, seconds: float) -> None:
    text = LONG + _row(0, "k", "gpu__time_duration.sum", unit, value)
    (operator,) = read(FORMAT, written(tmp_path, "a.csv", text)).batches[0].operators
    assert operator.timing is not None
    assert operator.timing.time_s == pytest.approx(seconds, rel=1e-12)


def test_another_number_settles_the_locale(tmp_path: Path) -> None:
    base = LONG + _row(0, "k", "gpu__time_duration.sum", "us", "117.344")
    for other, seconds in (("65,77", 117344e-6), ("65.77", 117.344e-6)):
        text = base + _row(0, "k", "sm__throughput", "%", other)
        found = read(FORMAT, written(tmp_path, "a.csv", text))
        timing = found.batches[0].operators[0].timing
        assert timing is not None
        assert timing.time_s == pytest.approx(seconds, rel=1e-12)
    with pytest.raises(DocumentInvalid, match="fraction or thousands"):
        read_anyway(FORMAT, [written(tmp_path, "b.csv", base)])


def test_raw_page_has_units_in_its_second_row(tmp_path: Path) -> None:
    text = (
        "ibrc.cpp:1753: error status: 7 Device enumeration failed.\n"
        '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","dram__bytes.sum","gpu__time_duration.sum"\n'
        '"","","","","","","","","","","","Mbyte","us"\n'
        '"0","1","python","127.0.0.1","flash_fwd_kernel","1","7","(128, 1, 1)","(4, 4, 1)","0","8.0","12.34","223.01"\n'
        '"1","1","python","127.0.0.1","flash_fwd_kernel","1","7","(128, 1, 1)","(8, 4, 1)","0","8.0","12.34","500.01"\n'
    )
    first, second = read(FORMAT, written(tmp_path, "a.csv", text)).batches[0].operators
    assert first.timing is not None
    assert second.timing is not None
    assert (first.operator, first.timing.time_s, second.timing.time_s) == ("attention", 223.01e-6, 500.01e-6)
    assert first.detail["grid"] == "(4, 4, 1)"


@pytest.mark.parametrize(
    "row",
    [
        _row(0, "k", "gpu__time_duration.sum", "ns", "nan"),
        _row(0, "k", "gpu__time_duration.sum", "ns", "-5"),
        _row(0, "k", "gpu__time_duration.sum", "ns", "0"),
        _row(0, "k", "gpu__time_duration.sum", "", "5"),
        _row(0, "k", "gpu__time_duration.sum", "parsec", "5"),
        _row(0, "", "gpu__time_duration.sum", "ns", "5"),
        _row(0, "k", "dram__bytes.sum", "byte", "5"),
        '"0","7","app"\n',
    ],
)
def test_broken_launches_are_reported(tmp_path: Path, row: str) -> None:
    good = _row(1, "good", "gpu__time_duration.sum", "ns", "10")
    found = read(FORMAT, written(tmp_path, "a.csv", LONG + row + good))
    assert [each.name for each in found.batches[0].operators] == ["good"]
    assert [bad.where for bad in found.bad_rows] == ["line 2"]
    with pytest.raises(DocumentInvalid, match="nothing to import"):
        read_anyway(FORMAT, [written(tmp_path, "b.csv", LONG + row)])


def test_hostile_files(tmp_path: Path) -> None:
    wide = LONG + "a," * 5000 + "\n"
    with pytest.raises(DocumentInvalid, match="columns"):
        read_anyway(FORMAT, [written(tmp_path, "wide.csv", wide)])
    whole = sample("p2p/superbench_cublaslt_ncu.log").text()
    for kept in range(0, len(whole), 1301):
        try:
            read_anyway(FORMAT, [written(tmp_path, "cut.csv", whole[:kept])])
        except DocumentInvalid:
            continue


def test_a_header_with_its_columns_in_another_order_needs_them_all(tmp_path: Path) -> None:
    text = '"ID","Process ID","Kernel Name","Metric Unit","Metric Value","Metric Name"\n'
    text += '"0","1","gemm","ns","100","gpu__time_duration.sum"\n"1","1","gemm","ns"\n"2","1","gemm","ns","100"\n'
    found = read_anyway(FORMAT, [written(tmp_path, "x.csv", text)])
    assert found.num_observations == 1
    assert len(found.bad_rows) == 2
