"""DeepSpeed / EleutherAI benchmarks: exact sizes from the description, units of the duration."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.ds_bench import FORMAT
from tests.attributes import of
from tests.importing import read, read_anyway, written

RULE = "-" * 100


def table(name: str, rows: str, devices: int = 16, duration: str = "Duration", unit: str = "Gbps") -> str:
    return (
        f"\n---- Performance of {name} on {devices} devices ---------------------------------------------------------\n"
        f"Size (Bytes)         Description               {duration:20s} Throughput ({unit})    BusBW ({unit})\n"
        f"{RULE}\n{rows}\n"
    )


@pytest.mark.parametrize(
    ("name", "operation", "size", "ranks"),
    [
        ("all_reduce", "all_reduce", 2_000_000, 16),
        ("allreduce", "all_reduce", 2_000_000, 16),
        ("all_gather", "all_gather", 32_000_000, 16),
        ("all_to_all", "all_to_all", 2_000_000, 16),
        ("reduce_scatter", "reduce_scatter", 2_000_000, 16),
        ("broadcast", "broadcast", 2_000_000, 16),
        ("pt2pt", "send_recv", 2_000_000, 2),
        ("all reduce", "all_reduce", 2_000_000, 16),
    ],
)
def test_operations_and_sizes(tmp_path: Path, name: str, operation: str, size: int, ranks: int) -> None:
    # 1,000,000 x 2 bytes is printed as 1.91 MB; the description is exact.
    row = (
        "1.91 MB              1000000x2                 1.250 ms             12.800               12.000              "
    )
    imported = read(FORMAT, written(tmp_path, "d.log", table(name, row)))
    (found,) = imported.batches[0].collectives
    assert of(found, "operation", "size_bytes", "group_size", "row") == [operation, size, ranks, 5]
    assert of(found, "timing.time_s", "timing.statistic", "launch") == [pytest.approx(1.25e-3), "mean", "back_to_back"]
    assert not imported.flags


def test_microseconds_raw_output_and_rounded_sizes(tmp_path: Path) -> None:
    text = (
        table("all_reduce", "2.0 KB  1024x2  78.125 us  0.419  0.393")
        + table("all_reduce", "2048  1024x2  78.125  0.419  0.393", duration="Duration (us)", unit="GBps")
        + table("all_reduce", "1.91 MB  weights  1.250 ms  12.8  12.0")
    )
    imported = read(FORMAT, written(tmp_path, "d.log", text))
    first, raw, rounded = imported.batches[0].collectives
    assert of(first, "size_bytes", "timing.time_s") == [2048, pytest.approx(78.125e-6)]
    assert of(raw, "size_bytes", "timing.time_s") == [2048, pytest.approx(78.125e-6)]
    # 1.91 x 1,048,576 = 2,002,780.2 bytes.
    assert of(rounded, "size_bytes", "detail.[size_rounded]") == [2_002_780, True]
    assert [flag.code for flag in imported.flags] == ["rounded-size"]


def test_out_of_memory_and_launcher_prefix(tmp_path: Path) -> None:
    text = table(
        "all_reduce", "2.0 KB  1024x2  78.125 us  0.419  0.393\nWARNING: Ran out of GPU memory. Exiting comm op."
    )
    imported = read(FORMAT, written(tmp_path, "d.log", "\n".join("0: " + line for line in text.splitlines())))
    assert len(imported.batches[0].collectives) == 1
    assert [flag.code for flag in imported.flags] == ["out-of-memory"]


@pytest.mark.parametrize(
    "row",
    ["4.0 KB 2048x2 nan us 1.0 1.0", "4.0 KB 2048x2 1.0", "4.0 KB 2048x2 5.0 1.0 1.0", "4.0 KB 2048x2 -5.0 us 1 1"],
)
def test_broken_rows(tmp_path: Path, row: str) -> None:
    imported = read(FORMAT, written(tmp_path, "d.log", table("all_reduce", f"2.0 KB 1024x2 78.1 us 0.4 0.3\n{row}")))
    assert [bad.where for bad in imported.bad_rows] == ["line 6"]
    assert len(imported.batches[0].collectives) == 1


def test_an_empty_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="no row"):
        read(FORMAT, written(tmp_path, "d.log", table("all_reduce", "")))
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "e.log", "Performance of all_reduce\n")])
