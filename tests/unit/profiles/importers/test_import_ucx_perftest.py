"""ucx_perftest: MB is 2^20, the last row counts, and the size often has to be worked out."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.ucx_perftest import FORMAT
from tests.attributes import of
from tests.importing import read, read_anyway, sample, written

OLD = """+--------------+-----------------------------+---------------------+-----------------------+
|              |       latency (usec)        |   bandwidth (MB/s)  |  message rate (msg/s) |
+--------------+---------+---------+---------+----------+----------+-----------+-----------+
| # iterations | typical | average | overall |  average |  overall |   average |   overall |
+--------------+---------+---------+---------+----------+----------+-----------+-----------+
"""
NEW = """+--------------+--------------+------------------------------+---------------------+-----------------------+
|              |              |       {what} (usec)        |   bandwidth (MB/s)  |  message rate (msg/s) |
+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+
|    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |
+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+
"""


def test_real_progress_rows_between_nodes() -> None:
    imported = read(FORMAT, sample("ucx/fxzjshm_ucx_perftest_b.txt"))
    (link,) = imported.batches[0].links
    # 26,975.44 MB/s x 2^20 = 28,285,798,973 B/s; x 37,960.463 us = 2^30 bytes within 4 parts in a million.
    assert of(link, "bandwidth_bytes_per_s", "size_bytes", "row") == [pytest.approx(28_285_798_973.44), 1 << 30, 63]
    assert of(link, "kind", "latency_s", "num_samples") == ["network", None, 190]
    assert of(imported, "tool_version", "skipped") == ["1.17.0", {"progress row": 6}]
    assert [flag.code for flag in imported.flags] == ["size-derived"]
    assert imported.batches[0].environment.num_nodes == 2


def test_bandwidth_with_header_fields(tmp_path: Path) -> None:
    text = OLD + (
        "| API:          protocol layer                                                             |\n"
        "| Test:         tag match bandwidth                                                        |\n"
        "| Send memory:  cuda                                                                       |\n"
        "| Message size: 100000000                                                                  |\n"
        "                10     0.000  9104.800  9104.800   10474.41   10474.41         110         110\n"
    )
    (link,) = read(FORMAT, written(tmp_path, "u.txt", text), given={"num_nodes": "1"}).batches[0].links
    # 100,000,000 B / 9,104.8 us = 10,983.2e6 B/s = 10,474.4 x 2^20.
    assert link.bandwidth_bytes_per_s == pytest.approx(100_000_000 / 9104.8e-6, rel=1e-4)
    assert of(link, "size_bytes", "kind", "latency_s") == [100_000_000, "device_to_device", None]


def test_latency_is_the_median_where_printed(tmp_path: Path) -> None:
    text = NEW.format(what="latency") + (
        "$ ucx_perftest node1 -t tag_lat -s 8 -n 1000000\n"
        "[thread 0]            500,000      1.200     1.300     1.310        5.83       5.82      763000      763000\n"
        "Final:               1,000,000      1.210     1.300     1.320        5.87       5.78      768000      757575\n"
    )
    (link,) = read(FORMAT, written(tmp_path, "u.txt", text), given={"num_nodes": "2"}).batches[0].links
    assert of(link, "latency_s", "bandwidth_bytes_per_s", "statistic") == [pytest.approx(1.21e-6), None, "median"]
    assert of(link, "size_bytes", "num_samples", "method") == [8, 1_000_000, "ucx_perftest tag_lat"]


def test_overhead_means_bandwidth_and_small_sizes_are_worked_out(tmp_path: Path) -> None:
    text = NEW.format(what="overhead") + (
        "Final:               1000000     0.039     0.125     0.125       60.84      60.84     7974856     7974856\n"
    )
    (link,) = read(FORMAT, written(tmp_path, "u.txt", text)).batches[0].links
    # 60.84 x 2^20 B/s x 0.125 us = 7.97: 8 bytes.
    assert of(link, "size_bytes", "bandwidth_bytes_per_s") == [8, pytest.approx(60.84 * 1048576)]
    assert "time_per_message_s" not in link.detail


def test_batch_and_csv(tmp_path: Path) -> None:
    text = OLD + (
        "+tag_bw/65536-+---------+---------+\n 10 0.0 6.0 6.0 10416.67 10416.67 166667 166667\n"
        "+tag_lat/8----+---------+---------+\n 10 1.0 1.0 1.0 7.63 7.63 1000000 1000000\n"
    )
    first, second = read(FORMAT, written(tmp_path, "b.txt", text)).batches[0].links
    assert of(first, "size_bytes", "detail.[batch]", "latency_s") == [65536, "tag_bw/65536", None]
    assert of(second, "size_bytes", "latency_s", "bandwidth_bytes_per_s") == [8, pytest.approx(1e-6), None]
    csv = "iterations,typical_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"
    csv += "10,0,6,6,10416.67,10416.67,1,1\n"
    (link,) = read(FORMAT, written(tmp_path, "c.csv", csv)).batches[0].links
    assert of(link, "size_bytes", "bandwidth_bytes_per_s") == [65536, pytest.approx(10416.67 * 1048576)]


@pytest.mark.parametrize(
    "row", ["[thread 0] 55 1.0 2.0", "[thread 0] 5 nan nan nan nan nan 1 1", "Final: 5 -1 -1 -1 -1 -1 1 1"]
)
def test_broken_rows_are_not_stored(tmp_path: Path, row: str) -> None:
    good = "+a_bw/8--+\n 10 0.0 6.0 6.0 10416.67 10416.67 166667 166667\n+b_bw/8--+\n"
    imported = read(FORMAT, written(tmp_path, "u.txt", OLD + good + row + "\n"))
    assert len(imported.bad_rows) == 1
    assert len(imported.batches[0].links) == 1


def test_a_box_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="no row of results"):
        read(FORMAT, written(tmp_path, "u.txt", OLD))
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "v.txt", "x\n")])


def test_the_box_of_a_document_may_be_indented(tmp_path: Path) -> None:
    text = (
        NEW.format(what="overhead")
        + "| Test:         tag match latency           |\n| Message size: 8         |\n"
        + "Final:                 20000      2.118     2.200     2.200        3.47       3.47      454361      454361\n"
    )
    indented = "".join(f"    {line}\n" for line in text.splitlines())
    (row,) = read(FORMAT, written(tmp_path, "u.md", indented)).batches[0].links
    assert of(row, "size_bytes", "latency_s", "statistic") == [8, pytest.approx(2.118e-6), "median"]
