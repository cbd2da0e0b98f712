"""Vidur's network profiles: the real file, sizes by hand, broken rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.vidur_network import FORMAT
from profiles.observations.timing import Timing
from tests.importing import read, read_anyway, sample, written

HEADER = ",time_stats.{0}.min,time_stats.{0}.max,time_stats.{0}.mean,time_stats.{0}.median,time_stats.{0}.std,\
rank,num_workers,size,collective,devices_per_node,max_devices_per_node\n"


def test_send_recv_on_h100() -> None:
    imported = read(FORMAT, sample("vidur/network_h100_dgx_send_recv.csv"))
    (batch,) = imported.batches
    assert (len(batch.collectives), imported.bad_rows) == (1988, [])
    first = batch.collectives[0]
    assert (first.operation, first.size_bytes, first.group_size) == ("send_recv", 2048, 2)
    assert (first.num_nodes, first.devices_per_node, first.row) == (2, 1, 2)
    assert first.timing == Timing(
        0.017 * 1e-3, "median", min_s=0.01 * 1e-3, max_s=0.02 * 1e-3,
        std_s=0.0041899350299921785 * 1e-3,
    )  # fmt: skip
    assert {each.num_nodes for each in batch.collectives} == {1, 2}
    assert batch.environment.devices_per_node == 8


def test_all_gather_is_stored_with_its_output(tmp_path: Path) -> None:
    text = HEADER.format("all_gather") + "0,1,3,2,2,0.5,0,8,1024,all_gather,4,8\n"
    (found,) = read(FORMAT, written(tmp_path, "a.csv", text)).batches[0].collectives
    assert (found.size_bytes, found.num_nodes, found.devices_per_node) == (8192, 2, 4)
    text = HEADER.format("all_reduce") + "0,1,3,2,2,0.5,0,8,1024,all_reduce,4,8\n"
    (found,) = read(FORMAT, written(tmp_path, "b.csv", text)).batches[0].collectives
    assert (found.operation, found.size_bytes) == ("all_reduce", 1024)


@pytest.mark.parametrize(
    "row",
    [
        "1,1,3,2,nan,0.5,0,8,1024,all_reduce,4,8",
        "1,1,3,2,-2,0.5,0,8,1024,all_reduce,4,8",
        "1,1,3,2,2,0.5,0,0,1024,all_reduce,4,8",
        "1,1,3,2,2,0.5,0,8,1024,all_dance,4,8",
        "1,1,3,2,2,0.5,0,8,1024,all_gather,4,8",
        "1,1,3",
    ],
)
def test_broken_rows(tmp_path: Path, row: str) -> None:
    good = "0,1,3,2,2,0.5,0,8,1024,all_reduce,4,8\n"
    file = written(tmp_path, "a.csv", HEADER.format("all_reduce") + row + "\n" + good)
    imported = read(FORMAT, file)
    assert [bad.where for bad in imported.bad_rows] == ["line 2"]
    assert [each.row for each in imported.batches[0].collectives] == [3]


def test_no_row_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "a.csv", HEADER.format("all_reduce"))])


def test_no_bytes_and_times_below_the_resolution_are_left_out(tmp_path: Path) -> None:
    rows = (
        "0,0,3,0,0,0.5,0,8,1024,all_reduce,4,8\n1,1,3,2,2,0.5,0,8,0,all_reduce,4,8\n2,1,3,2,2,0,0,8,4,all_reduce,4,8\n"
    )
    imported = read(FORMAT, written(tmp_path, "a.csv", HEADER.format("all_reduce") + rows))
    assert (imported.skipped, imported.bad_rows) == ({"collective of no bytes, or without a time": 2}, [])
    assert [each.row for each in imported.batches[0].collectives] == [4]


def test_the_first_files_count_tokens(tmp_path: Path) -> None:
    statistics = ",".join(f"time_stats.all_reduce.{name}" for name in ("min", "max", "mean", "median", "std"))
    rows = "0,0.002,0.002,0.002,0.002,0.0,0,2,4096,0\n224,0.427,0.427,0.427,0.427,0.0,0,2,4096,9728\n"
    imported = read(FORMAT, written(tmp_path, "a.csv", f",{statistics},rank,num_workers,n_embd,num_tokens\n{rows}"))
    (found,) = imported.batches[0].collectives
    # 9728 tokens of 4096 elements of two bytes.
    assert (found.operation, found.size_bytes, found.group_size) == ("all_reduce", 79_691_776, 2)
    assert (found.num_nodes, found.devices_per_node) == (None, None)
    assert "element-size" in {flag.code for flag in imported.flags}


def test_statistics_of_other_things_are_not_matched(tmp_path: Path) -> None:
    file = written(tmp_path, "a.csv", "time_stats.schedule.median,num_workers,n_embd,num_tokens\n1,2,3,4\n")
    assert not FORMAT.matches(file.head())
