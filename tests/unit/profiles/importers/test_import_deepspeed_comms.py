"""DeepSpeed communication logger: milliseconds, rounded sizes in powers of 1024, groups that are not printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.deepspeed_comms import FORMAT
from tests.attributes import of
from tests.importing import read, read_anyway, sample, written

HEADER = (
    "Comm. Op            Message Size        Count               Total Latency(ms)   Avg Latency(ms)     "
    "tput_avg (Gbps)     busbw_avg (Gbps)\n"
)
VERBOSE = (
    "[2022-06-26 01:39:55,722] [INFO] [logging.py:69:log_dist] [Rank 0] rank=0 | comm op: reduce_scatter_tensor | "
    "time (ms): 9.46 | msg size: 678.86 MB | algbw (Gbps): 1204.52  | busbw (Gbps): 1129.23\n"
    "[2022-06-26 01:39:56,470] [INFO] [logging.py:69:log_dist] [Rank 0] rank=0 | comm op: all_gather_into_tensor | "
    "[Caller Func: _fetch] | time (ms): 0.11 | msg size: 6.0 MB | algbw (Gbps): 954.41  | busbw (Gbps): 894.76\n"
)


def test_real_summary_with_callers() -> None:
    imported = read(FORMAT, sample("deepspeed/comms_log_summary_debug.txt"))
    small, large, scattered = imported.batches[0].collectives
    assert of(small, "operation", "size_bytes", "timing.num_samples") == ["broadcast", 2048, 146]
    assert of(small, "timing.time_s", "detail.[caller]", "row") == [pytest.approx(60e-6), "_broadcast_model", 3]
    # 98.25 x 1,048,576 = 103,022,592 bytes in 8,540.60 ms.
    assert of(large, "size_bytes", "timing.time_s") == [103_022_592, pytest.approx(8.5406)]
    # 678.86 x 1,048,576 = 711,836,303.4: the printed size is rounded, and so is this.
    assert of(scattered, "operation", "size_bytes", "launch") == ["reduce_scatter", 711_836_303, "in_situ"]
    assert of(scattered, "timing.time_s", "timing.num_samples", "group_size") == [pytest.approx(13.94e-3), 80, None]
    # 1136.01 / 1211.75 = 15/16: the job has 16 ranks, which says nothing about the group of an operation.
    assert imported.facts == {"world_size": 16}
    assert imported.batches[0].environment.num_devices == 16
    assert [flag.code for flag in imported.flags] == ["rounded-size", "rounded-time", "waiting-included"]


def test_all_gather_prints_the_input_of_one_rank(tmp_path: Path) -> None:
    text = (
        HEADER
        + "all_reduce\n                    2.0 KB   10   50.00   5.00   0.52   0.48\n"
        + "all_gather_into_tensor\n                    6.0 MB   10   11.00   1.10   0.52   0.48\n"
    )
    without = read(FORMAT, written(tmp_path, "a.txt", text))
    assert [row.operation for row in without.batches[0].collectives] == ["all_reduce"]
    assert without.skipped == {"the group size is not known": 1}
    assert without.flags[-1].code == "group-size-unknown"
    rows = read(FORMAT, written(tmp_path, "a.txt", text), given={"group_size": "8"}).batches[0].collectives
    assert of(rows[1], "operation", "size_bytes", "group_size") == ["all_gather", 8 * 6 * 1024 * 1024, 8]


def test_verbose_lines_are_single_calls(tmp_path: Path) -> None:
    imported = read(FORMAT, written(tmp_path, "run.log", VERBOSE), given={"group_size": "16"})
    first, second = imported.batches[0].collectives
    assert of(first, "timing.time_s", "timing.statistic", "timing.num_samples") == [pytest.approx(9.46e-3), "single", 1]
    assert of(second, "size_bytes", "detail.[caller]") == [16 * 6 * 1024 * 1024, "_fetch"]
    assert imported.facts["world_size"] == 16


def test_single_calls_beside_a_summary_are_not_counted_twice(tmp_path: Path) -> None:
    text = VERBOSE + HEADER + "all_reduce\n                    2.0 KB   10   50.00   5.00   0.52   0.48\n"
    imported = read(FORMAT, written(tmp_path, "run.log", text))
    assert len(imported.batches[0].collectives) == 1
    assert imported.skipped == {"single call that the summary holds too": 2}


def test_straggler_table_excludes_the_waiting(tmp_path: Path) -> None:
    text = (
        HEADER
        + "all_reduce\n                    2.0 GB   10   500.00   50.00   5.20   4.80\n"
        + "_______________________________\nBreakdown with straggler effect\n-------------------------------\n"
        + "Comm. Op            Message Size        Count               Total comm lat(ms)  Total straggler(ms) "
        + "Avg comm lat(ms)    Avg straggler(ms)   \n"
        + "all_reduce\n                    2.0 GB   10   400.00   100.00   40.00   10.00\n"
    )
    with_waiting, without = read(FORMAT, written(tmp_path, "a.txt", text)).batches[0].collectives
    assert of(with_waiting, "timing.time_s", "size_bytes") == [0.05, 2 << 30]
    assert of(without, "timing.time_s", "detail.[waiting_excluded]") == [0.04, True]


def test_an_average_of_zero_is_taken_from_the_total(tmp_path: Path) -> None:
    text = HEADER + "all_reduce\n                    512 B   100   0.40   0.00   0.52   0.48\n"
    (row,) = read(FORMAT, written(tmp_path, "a.txt", text)).batches[0].collectives
    assert of(row, "timing.time_s", "size_bytes", "detail.[time_is]") == [pytest.approx(4e-6), 512, "total / count"]
    assert "size_rounded" not in row.detail


def test_other_operations_and_empty_messages_are_left_out(tmp_path: Path) -> None:
    row = "   1   1.00   1.00   1.00   0.90\n"
    text = (
        HEADER
        + f"broadcast_object_list\n                    2.0 KB{row}monitored_barrier\n                    2.0 KB{row}"
        + f"all_reduce\n                    0B{row}                    2.0 KB{row}"
    )
    imported = read(FORMAT, written(tmp_path, "a.txt", text))
    assert len(imported.batches[0].collectives) == 1
    assert sum(imported.skipped.values()) == 3


@pytest.mark.parametrize(
    "cells", ["1 2.0 nan 1.0 1.0", "1 2.0 -2.0 1.0 1.0", "0 2.0 2.0 1.0 1.0", "1 2.0", "x 1 1 1 1"]
)
def test_broken_rows(tmp_path: Path, cells: str) -> None:
    text = (
        HEADER + f"all_reduce\n                    2.0 KB   1 1.0 1.0 1.0 0.9\n                    4.0 KB   {cells}\n"
    )
    imported = read(FORMAT, written(tmp_path, "a.txt", text))
    assert [bad.where for bad in imported.bad_rows] == ["line 4"]
    assert len(imported.batches[0].collectives) == 1


def test_nothing_usable_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="no operation"):
        read(FORMAT, written(tmp_path, "a.txt", HEADER))
    only_gather = HEADER + "all_gather\n                    2.0 KB   1 1.0 1.0 1.0 0.9\n"
    with pytest.raises(DocumentInvalid) as refused:
        read(FORMAT, written(tmp_path, "b.txt", only_gather))
    assert "--set group_size=N" in str(refused.value)
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "c.txt", "comm op: all_reduce\n")])
