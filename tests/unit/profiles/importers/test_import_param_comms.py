"""PARAM comms: whole buffers, ranks from the bandwidths, percentiles over ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.param_comms import FORMAT
from tests.attributes import of
from tests.importing import read, read_anyway, written

HEADER = (
    "\n\tCOMMS-RES                                size (B)  nElementsPerRank   Latency(us):p50         p75         p95"
    "         Min         Max    AlgBW(GB/s) BusBW(GB/s)\n"
)


def row(label: str, numbers: str) -> str:
    return f"\tCOMMS-RES-{label} {numbers}\n"


@pytest.mark.parametrize(
    ("name", "numbers", "expected"),
    [
        # 1,000,000 B in 100 us = 10 GB/s; 8 ranks.
        ("all_reduce", "1000000 250000 100.0 101.0 102.0 99.0 103.0 10.000 17.500", ["all_reduce", 1_000_000, 8]),
        ("all_gather", "1000000 31250 100.0 101.0 102.0 99.0 103.0 10.000 8.750", ["all_gather", 1_000_000, 8]),
        ("all_gather_base", "1000000 250000 100.0 101.0 102.0 99.0 103.0 10.000 8.750", ["all_gather", 8_000_000, 8]),
        ("reduce_scatter", "1000000 31250 100.0 101.0 102.0 99.0 103.0 10.000 8.750", ["reduce_scatter", 1_000_000, 8]),
        ("all_to_allv", "1000000 31250 100.0 101.0 102.0 99.0 103.0 0.000 0.000", ["all_to_all", 1_000_000, 8]),
    ],
)
def test_sizes_and_ranks(tmp_path: Path, name: str, numbers: str, expected: list[object]) -> None:
    imported = read(FORMAT, written(tmp_path, "p.log", HEADER + row(f"{name}-float32", numbers)))
    (found,) = imported.batches[0].collectives
    assert of(found, "operation", "size_bytes", "group_size") == expected
    assert of(found, "timing.time_s", "timing.min_s", "timing.max_s") == [
        pytest.approx(100e-6), pytest.approx(99e-6), pytest.approx(103e-6),
    ]  # fmt: skip
    assert of(found, "timing.statistic", "dtype", "row") == ["median", "fp32", 3]


def test_older_rows_prefixes_and_extra_columns(tmp_path: Path) -> None:
    text = (
        "0: \tCOMMS-RES\tsize (B)\t num-elements\t Latency(us):p50\tp75\t\tp95\t algBW(GB/s)\t busBW(GB/s)\n"
        "0: \tCOMMS-RES\t     1000000\t      250000\t    100.0\t    101.0\t    102.0\t   10.000\t   15.000\n"
        "0: \tCOMMS-RES-all_reduce-bfloat16 2000 1000 50.0 51.0 52.0 49.0 53.0 0.040 0.060 70.0 20.0\n"
    )
    with_name = read(FORMAT, written(tmp_path, "p.log", text), given={"operation": "all_reduce"})
    old, new = with_name.batches[0].collectives
    assert of(old, "size_bytes", "group_size", "timing.max_s") == [1_000_000, 4, None]
    assert of(new, "size_bytes", "dtype", "timing.time_s") == [2000, "bf16", pytest.approx(50e-6)]
    without = read(FORMAT, written(tmp_path, "p.log", text))
    assert len(without.batches[0].collectives) == 1


def test_pairs_and_quantised_rows(tmp_path: Path) -> None:
    text = (
        HEADER
        + row("pt2pt-float32", "4096 5.0 6.0 7.0 10.0 11.0 12.0 0.8 0.9 1.6 1.8")
        + "\tCOMMS-RES-QUANT-all_reduce-float32\t 4096 1024 1.0 2.0 3.0 6.0\n"
    )
    imported = read(FORMAT, written(tmp_path, "p.log", text))
    (found,) = imported.batches[0].collectives
    assert of(found, "operation", "group_size", "size_bytes", "timing.time_s") == ["send_recv", 2, 4096, 5e-6]
    assert imported.skipped == {"quantised": 1}


def test_ranks_that_cannot_be_told_are_flagged(tmp_path: Path) -> None:
    text = HEADER + row("all_reduce-float32", "64 16 30.0 31.0 32.0 29.0 33.0 0.002 0.003")
    imported = read(FORMAT, written(tmp_path, "p.log", text))
    assert imported.batches[0].collectives[0].group_size is None
    assert [flag.code for flag in imported.flags] == ["group-size-unknown"]
    given = read(FORMAT, written(tmp_path, "p.log", text), given={"group_size": "4"})
    assert given.batches[0].collectives[0].group_size == 4


@pytest.mark.parametrize(
    "numbers", ["8 2 nan 1 1 1 1 1 1", "8 2 1.0", "8 2 -1.0 1 1 1 1 1 1", "8 2x 1 1 1 1 1 1 1", ""]
)
def test_broken_rows(tmp_path: Path, numbers: str) -> None:
    text = HEADER + row("all_reduce-float32", "64 16 30.0 31.0 32.0 29.0 33.0 0.002 0.003")
    imported = read(FORMAT, written(tmp_path, "p.log", text + row("all_reduce-float32", numbers)))
    assert [bad.where for bad in imported.bad_rows] == ["line 4"]


def test_headers_without_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="no row"):
        read(FORMAT, written(tmp_path, "p.log", HEADER))
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "q.log", "x\n")])
