"""The table of hccl_test is read with the slowest rank, the right size and its check.

No public log with real times is known: the texts here follow the program's own printing code and its documents.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.hccl_test import FORMAT
from tests.importing import read, read_anyway, written

COMMAND = "$ mpirun -f hostfile -n 16 ./bin/all_reduce_test -p 8 -b 8K -e 64M -f 2 -d bfp16 -o sum -c 1\n"
ECHO = "the minbytes is 8192, maxbytes is 67108864, iters is 20, warmup_iters is 5\n"
HEADER = "data_size(Bytes): |   aveg_time(us): | alg_bandwidth(GB/s): | check_result:\n"
ROWS = (
    "8192              |     764.55    |       0.01071        | success\n"
    "16384             |     700.00    |       0.02341        | NULL\n"
    "67108864          |     2630.20   |       23.76          | failed\n"
)


def test_a_run_of_sixteen_ranks(tmp_path: Path) -> None:
    imported = read(FORMAT, written(tmp_path, "log.txt", COMMAND + "Ascend910B3\n" + ECHO + HEADER + ROWS))
    (batch,) = imported.batches
    first, second, third = batch.collectives
    assert first.timing is not None
    assert (first.operation, first.size_bytes, first.dtype, first.reduction) == ("all_reduce", 8192, "bf16", "sum")
    assert (first.timing.time_s, first.timing.statistic, first.timing.num_samples) == (764.55 / 1e6, "mean", 20)
    assert (first.group_size, first.num_nodes, first.devices_per_node) == (16, 2, 8)
    assert [(each.ok, each.error) for each in batch.collectives] == [
        (True, ""),
        (True, ""),
        (False, "the check of the result failed"),
    ]
    assert third.timing is not None, "a failed check leaves the time"
    assert (batch.environment.device, batch.environment.communication_library) == ("ascend-910b3", "hccl")
    assert second.row == 6


def test_the_slowest_of_several_ranks_counts(tmp_path: Path) -> None:
    rows = "1073741824 | 5000.00 | 214.74836 | success\n1073741824 | 6000.00 | 178.95697 | success\n"
    imported = read(FORMAT, written(tmp_path, "hccl_all_gather.log", HEADER + rows), given={"group_size": "16"})
    (only,) = imported.batches[0].collectives
    assert only.timing is not None
    assert (only.operation, only.timing.time_s, only.group_size) == ("all_gather", 6000 / 1e6, 16)
    assert only.detail == {"over_ranks": "max"}
    assert sum(imported.skipped.values()) == 1


def test_documented_spelling_and_another_order_of_columns(tmp_path: Path) -> None:
    content = (
        "check_result: | data_size(Bytes): | avg_time(us): | alg_bandwidth(GB/s):\n"
        "success      | 1024             | 10.5          | 0.0975\n"
    )
    imported = read(FORMAT, written(tmp_path, "x.log", content), given={"operation": "reduce_scatter"})
    (only,) = imported.batches[0].collectives
    assert (only.size_bytes, only.operation, only.group_size) == (1024, "reduce_scatter", None)
    assert [flag.code for flag in imported.flags] == ["group-size-unknown"]


def test_two_tables_of_two_programs(tmp_path: Path) -> None:
    other = COMMAND.replace("all_reduce", "alltoallv")
    imported = read(
        FORMAT, written(tmp_path, "log", COMMAND + HEADER + ROWS.splitlines()[0] + "\n" + other + HEADER + ROWS)
    )
    assert [each.operation for each in imported.batches[0].collectives] == ["all_reduce", *["all_to_all"] * 3]
    assert imported.batches[0].collectives[-1].detail == {"variant": "alltoallv"}


def test_an_unnamed_collective_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="which collective") as refused:
        read(FORMAT, written(tmp_path, "log.txt", HEADER + ROWS))
    assert "--set operation=" in str(refused.value.hint)


@pytest.mark.parametrize(
    "bad",
    [
        "8192 | nan | 0.01 | success",
        "8192 | -3.0 | 0.01 | success",
        "8192 | 764.55 | 0.01",
        "x192 | 764.55 | 0.01 | success",
        "8192 | 764.55 | 0.01 | perhaps",
        "67108864 | 23.76 | 23.76 | success",
    ],
)
def test_bad_rows(tmp_path: Path, bad: str) -> None:
    imported = read(FORMAT, written(tmp_path, "log", COMMAND + HEADER + ROWS + bad + "\n"))
    assert len(imported.batches[0].collectives) == 3
    assert [each.where for each in imported.bad_rows] == ["line 6"]


def test_cut_files(tmp_path: Path) -> None:
    content = COMMAND + ECHO + HEADER + ROWS
    for cut in range(0, len(content), 11):
        try:
            imported = read_anyway(FORMAT, [written(tmp_path, "log", content[:cut])])
        except DocumentInvalid:
            continue
        assert imported.num_observations
