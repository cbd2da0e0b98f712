"""ucc_perftest: the bandwidth reveals the number of ranks and what the size means."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.ucc_perftest import FORMAT
from tests.attributes import of
from tests.importing import read, read_anyway, sample, written


def run(name: str, rows: str, bandwidth: str = "Bandwidth, GB/s", reduction: str = "N/A", iterations: int = 100) -> str:
    return (
        f"Collective:             {name}\nMemory type:            cuda\nDatatype:               float32\n"
        f"Reduction:              {reduction}\nInplace:                1\nWarmup:\n  small                 7\n"
        f"  large                 7\nIterations:\n  small                 {iterations}\n"
        f"  large                 100\n\n       Count        Size                Time, us        {bandwidth}\n"
        f"                                 avg         min         max\n{rows}\n"
    )


def test_real_alltoall_over_64_ranks() -> None:
    imported = read(FORMAT, sample("ucx/cloudai_ucc_perftest_alltoall_cuda.txt"))
    rows = imported.batches[0].collectives
    assert len(rows) == 24
    # 44.70e9 B/s x 47,292.49 us / 33,554,432 B = 63.0 = n - 1: 64 ranks, and the size is the piece for one peer.
    assert of(rows[-1], "operation", "group_size", "size_bytes") == ["all_to_all", 64, 64 * 33_554_432]
    assert of(rows[-1], "timing.time_s", "timing.min_s", "timing.max_s") == [
        pytest.approx(47292.49e-6), pytest.approx(47258.38e-6), pytest.approx(47344.21e-6),
    ]  # fmt: skip
    assert of(rows[0], "size_bytes", "dtype", "in_place", "row") == [256, "fp32", False, 15]
    assert imported.batches[0].environment.num_devices == 64
    assert not imported.flags


@pytest.mark.parametrize(
    ("name", "row", "expected"),
    [
        # size 1,000,000 in 100 us = 10 GB/s of algorithm bandwidth; n = 8.
        ("Allreduce", "250000 1000000 100.00 90.00 110.00 17.50 19.44 15.91", ["all_reduce", 8, 1_000_000]),
        ("Allgather", "250000 1000000 100.00 90.00 110.00 70.00 77.78 63.64", ["all_gather", 8, 8_000_000]),
        ("Alltoall", "250000 1000000 100.00 90.00 110.00 8.75 9.72 7.95", ["all_to_all", 8, 1_000_000]),
        ("Alltoall", "250000 1000000 100.00 90.00 110.00 70.00 77.78 63.64", ["all_to_all", 8, 8_000_000]),
        ("Reduce_scatter", "250000 1000000 100.00 90.00 110.00 8.75 9.72 7.95", ["reduce_scatter", 8, 1_000_000]),
    ],
)
def test_ranks_and_meaning_of_the_size(tmp_path: Path, name: str, row: str, expected: list[object]) -> None:
    (found,) = read(FORMAT, written(tmp_path, "u.txt", run(name, row, reduction="sum"))).batches[0].collectives
    assert of(found, "operation", "group_size", "size_bytes") == expected
    assert of(found, "in_place", "reduction", "timing.num_samples") == [True, "sum", 100]


def test_without_bandwidth_the_user_gives_the_ranks(tmp_path: Path) -> None:
    text = run("Allgather", "1 4 10.00 9.00 11.00", bandwidth="")
    with pytest.raises(DocumentInvalid) as refused:
        read(FORMAT, written(tmp_path, "u.txt", text))
    assert "--set group_size=N" in str(refused.value)
    (row,) = read(FORMAT, written(tmp_path, "u.txt", text), given={"group_size": "4"}).batches[0].collectives
    assert of(row, "group_size", "size_bytes", "detail.[printed_size_bytes]") == [4, 16, 4]


def test_newer_versions_print_the_whole_alltoall_buffer(tmp_path: Path) -> None:
    text = run("Alltoall", "4 16 10.00 9.00 11.00 0.00 0.00 0.00", bandwidth="Bus Bandwidth, GB/s")
    (row,) = read(FORMAT, written(tmp_path, "u.txt", text), given={"group_size": "4"}).batches[0].collectives
    assert row.size_bytes == 16


def test_barrier_several_runs_and_copies(tmp_path: Path) -> None:
    text = (
        run("Barrier", "         N/A         N/A       12.00       11.00       13.00")
        + run("Memcpy", "1 4 1.00 1.00 1.00 0.00 0.00 0.00")
        + run("Bcast", "1 4 2.00 1.00 3.00 0.00 0.00 0.00", iterations=1000)
    )
    imported = read(FORMAT, written(tmp_path, "u.txt", text))
    barrier, broadcast = imported.batches[0].collectives
    assert of(barrier, "operation", "size_bytes", "timing.time_s") == ["barrier", 0, 12e-6]
    assert of(broadcast, "operation", "group_size", "timing.num_samples") == ["broadcast", None, None]
    assert imported.skipped == {"Memcpy is not a measurement that is stored": 1}


def test_a_group_size_that_contradicts_the_bandwidth_is_flagged(tmp_path: Path) -> None:
    text = run("Allreduce", "250000 1000000 100.00 90.00 110.00 17.50 19.44 15.91")
    imported = read(FORMAT, written(tmp_path, "u.txt", text), given={"group_size": "16"})
    assert [flag.code for flag in imported.flags] == ["rank-mismatch"]


@pytest.mark.parametrize(
    "row", ["2 8 nan 1 1 0 0 0", "2 8 1.0", "2 -8 1.0 1.0 1.0", "2 8 0.00 0.00 0.00", "2 8x 1 1 1"]
)
def test_broken_rows(tmp_path: Path, row: str) -> None:
    imported = read(FORMAT, written(tmp_path, "u.txt", run("Bcast", f"1 4 2.00 1.00 3.00\n{row}")))
    assert len(imported.bad_rows) == 1
    assert len(imported.batches[0].collectives) == 1


def test_nothing_usable_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="no row"):
        read(FORMAT, written(tmp_path, "u.txt", run("Bcast", "")))
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "v.txt", "x\n")])
