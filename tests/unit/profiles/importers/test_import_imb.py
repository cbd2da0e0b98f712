"""Intel MPI Benchmarks: one-way times, parts of one rank, and a megabyte that changed its size."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.imb import FORMAT
from profiles.importing.imported import Imported
from tests.attributes import of
from tests.importing import read, read_anyway, sample, written

SUITE = "#    Intel(R) MPI Benchmarks 2021.7, MPI-1 part\n# MPI_Datatype for reductions    :   MPI_FLOAT\n"


def table(name: str, header: str, rows: str, processes: str = "# #processes = 4 \n") -> str:
    return f"{SUITE}#-----\n# Benchmarking {name} \n{processes}#-----\n {header}\n{rows}\n"


def imported_from(folder: Path, text: str, given: dict[str, str] | None = None) -> Imported:
    return read(FORMAT, written(folder, "imb.txt", text), given=given)


def test_real_pingpong() -> None:
    imported = read(FORMAT, sample("osu/azurehpc_imb_mpi1_pingpong.txt"))
    rows = imported.batches[0].collectives
    assert of(imported, "tool_version", "skipped", "bad_rows") == ["2018", {"size 0": 1}, []]
    assert len(rows) == 23
    assert of(rows[0], "operation", "size_bytes", "group_size", "row") == ["send_recv", 1, 2, 40]
    assert of(rows[-1], "size_bytes", "timing.time_s", "timing.num_samples") == [4194304, pytest.approx(1156.95e-6), 10]
    # The file itself shows that the MB of 2018 is 10^6: it prints 3625.31 Mbytes/sec for this row.
    assert rows[-1].timing is not None
    assert rows[-1].size_bytes / rows[-1].timing.time_s == pytest.approx(3625.31e6, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "operation", "size"),
    [
        ("Allreduce", "all_reduce", 1024),
        ("Reduce_scatter", "reduce_scatter", 1024),
        ("Reduce_scatter_block", "reduce_scatter", 4096),
        ("Allgather", "all_gather", 4096),
        ("Allgatherv", "all_gather", 4096),
        ("Alltoall", "all_to_all", 4096),
        ("Bcast", "broadcast", 1024),
        ("Gather", "gather", 4096),
    ],
)
def test_collectives_become_the_full_tensor(tmp_path: Path, name: str, operation: str, size: int) -> None:
    text = table(name, "#bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]", "1024  1000  3.00  5.00  4.00")
    row = imported_from(tmp_path, text).batches[0].collectives[0]
    assert of(row, "operation", "size_bytes", "group_size") == [operation, size, 4]
    assert of(row, "timing.time_s", "timing.min_s", "timing.max_s") == [4e-6, 3e-6, 5e-6]
    assert row.dtype == ("fp32" if operation in ("all_reduce", "reduce_scatter") else "")


@pytest.mark.parametrize(
    ("megabytes", "expected"),
    [
        # 2,500 messages a second of 4,194,304 bytes = 10,485.76e6 B/s: 10485.76 MB of 10^6, 10000 of 2^20.
        ("10485.76", 10_485_760_000.0),
        ("10000.00", 10_485_760_000.0),
    ],
)
def test_biband_unit_follows_from_the_message_rate(tmp_path: Path, megabytes: str, expected: float) -> None:
    text = table("Biband", "#bytes #repetitions   Mbytes/sec      Msg/sec", f"4194304  10  {megabytes}  2500")
    link = imported_from(tmp_path, text).batches[0].links[0]
    assert of(link, "direction", "bandwidth_bytes_per_s", "detail.[pairs]") == ["both_ways", pytest.approx(expected), 2]


def test_non_blocking_takes_the_pure_time(tmp_path: Path) -> None:
    text = table("Iallgather", "#bytes #repetitions t_ovrl[usec] t_pure[usec]  t_CPU[usec]   overlap[%]",
                 "256  1000  20.00  12.00  11.00  33.00")  # fmt: skip
    row = imported_from(tmp_path, text).batches[0].collectives[0]
    assert of(row, "operation", "size_bytes", "timing.time_s") == ["all_gather", 1024, 12e-6]
    assert row.detail["overlap_percent"] == 33.0


def test_groups_running_at_once(tmp_path: Path) -> None:
    text = table(
        "Multi-PingPong", "Group #bytes #repetitions t[usec] Mbytes/sec", "\n 0 8 1000 2.00 4.00\n 1 8 1000 2.10 3.81",
        "# ( 2 groups of 2 processes each running simultaneous ) \n# Group    0:     0    1\n# Group    1:    2    3\n",
    )  # fmt: skip
    rows = imported_from(tmp_path, text).batches[0].collectives
    assert [of(row, "group_size", "concurrent_groups", "detail.[group]") for row in rows] == [[2, 2, 0], [2, 2, 1]]


def test_barrier_failures_and_unknown_benchmarks(tmp_path: Path) -> None:
    text = (
        table("Barrier", "#repetitions  t_min[usec]  t_max[usec]  t_avg[usec]", "1000  1.00  2.00  1.50")
        + table("Alltoall", "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]",
                '4194304 out-of-mem.; needed X=   2.001 GB; use flag "-mem X"')
        + table("Exchange", "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec] Mbytes/sec",
                "8 10 1.00 1.00 1.00 8.00")
    )  # fmt: skip
    imported = imported_from(tmp_path, text)
    barrier, failed = imported.batches[0].collectives
    assert of(barrier, "operation", "size_bytes", "timing.time_s") == ["barrier", 0, 1.5e-6]
    assert of(failed, "ok", "error", "timing", "size_bytes") == [False, "out of memory", None, 16_777_216]
    assert imported.skipped == {"Exchange is not a measurement that is stored": 1}


def test_launch_line_places_the_ranks(tmp_path: Path) -> None:
    text = "mpirun -np 4 -ppn 2 IMB-MPI1 allreduce\n" + table(
        "Allreduce", "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]", "4 10 1.00 1.00 1.00"
    )
    imported = imported_from(tmp_path, text)
    assert of(imported.batches[0].collectives[0], "num_nodes", "devices_per_node") == [2, 2]
    assert imported.batches[0].environment.num_nodes == 2


@pytest.mark.parametrize("row", ["8 1000 nan 4.0", "8 1000", "8 1000 2.0 4.0 5.0", "8x 1000 2.0 4.0", "8 0 2.0 4.0"])
def test_broken_rows(tmp_path: Path, row: str) -> None:
    text = table("PingPong", "#bytes #repetitions t[usec] Mbytes/sec", f"4 1000 2.0 2.0\n{row}")
    imported = imported_from(tmp_path, text)
    assert len(imported.bad_rows) == 1
    assert len(imported.batches[0].collectives) == 1


def test_empty_tables_and_missing_processes_are_refused(tmp_path: Path) -> None:
    header = "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]"
    with pytest.raises(DocumentInvalid, match="no row of results"):
        imported_from(tmp_path, table("Allgather", header, ""))
    with pytest.raises(DocumentInvalid, match="number of processes"):
        imported_from(tmp_path, table("Allgather", header, "4 10 1.0 1.0 1.0", processes=""))
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "x.txt", "nothing here\n")])
