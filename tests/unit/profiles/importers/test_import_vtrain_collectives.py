"""vTrain's all-reduce tables are read in nanoseconds and for the right number of ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.vtrain_collectives import FORMAT
from tests.importing import read, read_anyway, written

# Four lines of trace/a100/AR_GPU8_1M_1024M_LUT (VIA-Research/vTrain, MIT).
TABLE = """\
size(B),count,type,time(ns),busbw(GB/s),time(ns),busbw(GB/s)
1048576,262144,float,92790,19.78,92150,19.91
2097152,524288,float,93250,39.36,92970,39.47
3145728,786432,float,92580,59.46,93310,59.00
4194304,1048576,float,95800,76.62,94030,78.06
"""
HEADER = "size(B),count,type,time(ns),busbw(GB/s),time(ns),busbw(GB/s)\n"
NAME = "a100/AR_GPU8_1M_1024M_LUT"


def test_times_are_nanoseconds(tmp_path: Path) -> None:
    imported = read(FORMAT, written(tmp_path, NAME, TABLE))
    (batch,) = imported.batches
    assert len(batch.collectives) == 8
    first, second = batch.collectives[:2]
    assert first.timing is not None
    assert second.timing is not None
    assert (first.timing.time_s, second.timing.time_s) == (92790e-9, 92150e-9)
    assert (first.in_place, second.in_place, first.row) == (False, True, 2)
    assert (first.operation, first.size_bytes, first.dtype) == ("all_reduce", 1048576, "fp32")
    assert (first.group_size, first.num_nodes, first.devices_per_node) == (8, 1, 8)
    assert (batch.environment.device_reported, batch.environment.num_devices) == ("A100", 8)
    assert not imported.flags


def test_the_bandwidths_are_believed_before_the_name(tmp_path: Path) -> None:
    imported = read(FORMAT, written(tmp_path, "AR_GPU4_1M_1024M_LUT", TABLE))
    assert [flag.code for flag in imported.flags] == ["rank-mismatch"]
    assert {each.group_size for each in imported.batches[0].collectives} == {8}


def test_two_ranks_and_a_nameless_table(tmp_path: Path) -> None:
    two = (
        "size(B),count,type,time(ns),busbw(GB/s),time(ns),busbw(GB/s)\n1048576,262144,float,10000,104.86,10000,104.86\n"
    )
    imported = read(FORMAT, written(tmp_path, "table.csv", two))
    assert {each.group_size for each in imported.batches[0].collectives} == {2}


def test_ranks_must_be_known(tmp_path: Path) -> None:
    slow = HEADER + "1048576,262144,float,10000000,0.17,10000000,0.17\n"
    with pytest.raises(DocumentInvalid, match="number of ranks"):
        read(FORMAT, written(tmp_path, "table.csv", slow))
    given = read(FORMAT, written(tmp_path, "table.csv", slow), given={"group_size": "6"})
    assert {each.group_size for each in given.batches[0].collectives} == {6}


@pytest.mark.parametrize(
    "bad", ["8,2,float,nan,1,2,3", "8,2,float,-1,1,2,3", "x,2,float,1,1,2,3", "8,2,float,1", "8,2,float,0,1,2,3"]
)
def test_bad_rows(tmp_path: Path, bad: str) -> None:
    imported = read(FORMAT, written(tmp_path, NAME, TABLE + bad + "\n"))
    assert len(imported.batches[0].collectives) == 8
    assert [each.where for each in imported.bad_rows] == ["line 6"]


def test_cut_tables(tmp_path: Path) -> None:
    for cut in range(0, len(TABLE), 13):
        try:
            imported = read_anyway(FORMAT, [written(tmp_path, NAME, TABLE[:cut])])
        except DocumentInvalid:
            continue
        assert imported.num_observations
