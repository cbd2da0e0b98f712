"""The table and the JSON report of nccom-test are read with their statistics, ranks and failures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.nccom_test import FORMAT
from tests.importing import read, read_anyway, sample, written

COMMAND = "$ nccom-test -r 32 --minbytes 1kb --maxbytes 1mb --stepfactor 8 --datatype fp32 --check allg\n"
TABLE = """\
    size(B)    count(elems)    type    time:avg(us)    algbw(GB/s)    busbw(GB/s)
       1024             256    fp32            6.16           0.17           0.16
     524288          131072    fp32           23.16          22.64          21.93
Avg bus bandwidth:      7.7715GB/s
"""


def test_a_real_table_of_trn1() -> None:
    imported = read(FORMAT, sample("nccl-tests/aws_trn1_nccom_allreduce.txt"))
    (batch,) = imported.batches
    assert len(batch.collectives) == 17
    first, last = batch.collectives[0], batch.collectives[-1]
    assert first.timing is not None
    assert last.timing is not None
    assert (first.operation, first.size_bytes, first.dtype, first.row) == ("all_reduce", 8, "fp32", 2)
    assert (first.timing.time_s, first.timing.statistic) == (63.52 / 1e6, "mean")
    assert (last.size_bytes, last.timing.time_s) == (524288, 343.84 / 1e6)
    assert batch.environment.communication_library == "nccom"
    assert batch.environment.device == "", "the text itself does not say which instance it was"


def test_command_line_and_bandwidths_agree(tmp_path: Path) -> None:
    imported = read(FORMAT, written(tmp_path, "log.txt", "on trn2.48xlarge\n" + COMMAND + TABLE))
    (batch,) = imported.batches
    assert {(each.operation, each.group_size, each.num_nodes) for each in batch.collectives} == {("all_gather", 32, 1)}
    assert batch.environment.device == "trainium2"
    assert not imported.flags


def test_declared_ranks_that_contradict_the_bandwidths(tmp_path: Path) -> None:
    imported = read(FORMAT, written(tmp_path, "log.txt", COMMAND.replace("-r 32", "-r 16") + TABLE))
    assert [flag.code for flag in imported.flags] == ["rank-mismatch"]


def test_percentiles_and_algorithms(tmp_path: Path) -> None:
    content = (
        "nccom-test -r 8 --stats avg p50 p90 p99 --show-algorithm --iters 1000 allg\n"
        "size(B)    count(elems)    type    time:avg(us)  time:p50(us)  time:p90(us)  time:p99(us)"
        "   algorithm  algbw(GB/s)    busbw(GB/s)\n"
        " 524288          131072    bf16           14.83  15  16  17    mesh     35.34          30.92\n"
    )
    (only,) = read(FORMAT, written(tmp_path, "log", content)).batches[0].collectives
    assert only.timing is not None
    assert (only.timing.time_s, only.timing.p90_s) == (14.83 / 1e6, 16 / 1e6)
    assert only.detail == {"p50_s": 15 / 1e6, "p99_s": 17 / 1e6}
    assert (only.algorithm, only.dtype, only.group_size) == ("mesh", "bf16", 8)


def test_input_and_output_sizes_are_no_other_size(tmp_path: Path) -> None:
    content = (
        COMMAND + "size(B) count(elems) total_input_size(B) total_output_size(B) type time:avg(us)"
        " algbw(GB/s) busbw(GB/s)\n"
        "524288 131072 16384 524288 fp32 23.16 22.64 21.93\n"
    )
    (only,) = read(FORMAT, written(tmp_path, "log", content)).batches[0].collectives
    assert only.size_bytes == 524288


def test_old_column_name_and_a_failure(tmp_path: Path) -> None:
    content = (
        "nccom-test -r 2 allr\n"
        "         size(B)    count(elems)    type    time(us)    algbw(GB/s)    busbw(GB/s)\n"
        "        33554432        33554432    uint8         768          40.69          40.69\n"
        "        67108864    Failure running neuron-bench - log file /home/bob/nccom_test_log_7pqpdfjf.log\n"
        "1 errors found - test failed\n"
    )
    good, failed = read(FORMAT, written(tmp_path, "log", content)).batches[0].collectives
    assert good.timing is not None
    assert (good.operation, good.timing.time_s, good.group_size) == ("all_reduce", 768 / 1e6, 2)
    assert (failed.ok, failed.timing, failed.size_bytes) == (False, None, 67108864)
    assert "Failure running neuron-bench" in failed.error
    assert "bob" not in failed.error


def test_json_report(tmp_path: Path) -> None:
    result = {
        "size(B)": 524288,
        "count(elems)": 131072,
        "type": "fp32",
        "algbw(GB/s)": 22.688776793562784,
        "busbw(GB/s)": 21.979752518763947,
        "time:avg(us)": 23.11,
    }
    document = {"results": [result, result | {"time:avg(us)": -1}, 5]}
    file = written(tmp_path, "report.json", json.dumps(document))
    imported = read(FORMAT, file, given={"operation": "all_gather"})
    (only,) = imported.batches[0].collectives
    assert only.timing is not None
    assert (only.group_size, only.timing.time_s, only.row) == (32, 23.11 / 1e6, 0)
    assert [bad.where for bad in imported.bad_rows] == ["/results/1", "/results/2"]
    with pytest.raises(DocumentInvalid, match="which collective"):
        read(FORMAT, written(tmp_path, "report.json", json.dumps({"results": [result]})))


@pytest.mark.parametrize(
    "bad",
    [
        "1024 256 fp32 nan 0.17 0.16",
        "1024 256 fp32 -6 0.17 0.16",
        "1024 256 fp32 6.16 0.17",
        "524288 131072 fp32 230 22.64 21.9",
    ],
)
def test_bad_rows(tmp_path: Path, bad: str) -> None:
    imported = read(FORMAT, written(tmp_path, "log", COMMAND + TABLE + bad + "\n"))
    assert len(imported.batches[0].collectives) == 2
    assert [each.where for each in imported.bad_rows] == ["line 6"]


def test_cut_files(tmp_path: Path) -> None:
    for content in (COMMAND + TABLE, '{"results": [{"size(B)": 1, "algbw(GB/s)": 2}]}'):
        for cut in range(0, len(content), 7):
            try:
                imported = read_anyway(FORMAT, [written(tmp_path, "log", content[:cut])])
            except DocumentInvalid:
                continue
            assert imported.num_observations
