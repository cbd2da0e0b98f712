"""perftest: MB/sec is 2^20, Gb/sec is bits, and both ends print into one log."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.perftest import FORMAT
from profiles.importing.imported import Imported
from tests.attributes import of
from tests.importing import read, sample, written

HEAD = (
    "                    {title} Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n"
    " Number of qps   : {qps}\t\tTransport type : IB\n Connection type : RC\t\tUsing SRQ      : OFF\n"
    " Mtu             : 4096[B]\n Link type       : {link}\n-----\n"
    " local address: LID 0000 QPN 0x01 PSN 0x02\n GID: 00:00:255:255:10:00:00:12\n"
    " remote address: LID 0000 QPN 0x03 PSN 0x04\n GID: 00:00:255:255:10:00:00:10\n-----\n"
)
BW = " #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]\n"


def run(folder: Path, rows: str, header: str, title: str = "RDMA_Write BW", qps: int = 1, link: str = "IB") -> Imported:
    text = HEAD.format(title=title, qps=qps, link=link) + header + rows
    return read(FORMAT, written(folder, "ib.log", text))


def test_real_loopback_of_one_size() -> None:
    imported = read(FORMAT, sample("ib/superbench_ib_loopback_8M_size.log"))
    (link,) = imported.batches[0].links
    # 24056.72 x 1,048,576 = 25,225,299,230.72; and 0.003007e6 messages x 8,388,608 B = 25.2e9: MB is 2^20.
    assert of(link, "size_bytes", "bandwidth_bytes_per_s", "row") == [8388608, pytest.approx(25_225_299_230.72), 18]
    assert of(link, "kind", "direction", "num_samples", "statistic") == ["loopback", "one_way", 20000, "mean"]
    assert link.detail["peak_bytes_per_s"] == pytest.approx(24056.74 * 1048576)
    assert of(imported.batches[0].environment, "transport", "num_nodes") == ["IB", 1]
    assert imported.skipped == {"the other side's copy of a row": 1}
    assert not imported.flags


def test_real_loopback_of_all_sizes_with_two_interleaved_outputs() -> None:
    imported = read(FORMAT, sample("ib/superbench_ib_loopback_all_sizes.log"))
    links = imported.batches[0].links
    assert len(links) == 23
    assert [link.size_bytes for link in links] == [2 << index for index in range(23)]
    assert links[12].bandwidth_bytes_per_s == pytest.approx(12782.56 * 1048576)
    assert not imported.bad_rows


@pytest.mark.parametrize(
    ("unit", "value", "expected"),
    [
        # 0.5 Mpps x 65,536 B = 32.768e9 B/s = 31,250 x 2^20 = 262.144e9 bits.
        ("MB/sec", "31250.00", 32_768_000_000.0),
        ("MiB/sec", "31250.00", 32_768_000_000.0),
        ("Gb/sec", "262.144", 32_768_000_000.0),
    ],
)
def test_units_of_the_header(tmp_path: Path, unit: str, value: str, expected: float) -> None:
    imported = run(tmp_path, f" 65536  5000  0.00  {value}  0.500000\n", BW.format(unit=unit), link="Ethernet")
    (link,) = imported.batches[0].links
    assert of(link, "bandwidth_bytes_per_s", "kind", "detail.[connection]") == [
        pytest.approx(expected),
        "network",
        "RC",
    ]
    assert "peak_bytes_per_s" not in link.detail
    assert imported.batches[0].environment.transport == "RoCE"
    assert not imported.flags


def test_bidirectional_and_several_queue_pairs(tmp_path: Path) -> None:
    imported = run(
        tmp_path, " 65536 20000 760.00 750.00 1.430511\n", BW.format(unit="Gb/sec"), "RDMA_Write Bidirectional BW", 4
    )
    (link,) = imported.batches[0].links
    assert of(link, "direction", "bandwidth_bytes_per_s", "detail.[queue_pairs]") == ["both_ways", 750e9 / 8, 4]


def test_a_unit_that_contradicts_the_message_rate_is_flagged(tmp_path: Path) -> None:
    imported = run(tmp_path, " 65536 5000 0.00 262.144 0.500000\n", BW.format(unit="MB/sec"))
    assert [flag.code for flag in imported.flags] == ["rate-mismatch"]


@pytest.mark.parametrize(
    ("title", "header", "row", "expected"),
    [
        (
            "Send Latency",
            " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
            "99% percentile[usec]   99.9% percentile[usec] \n",
            "2       1000          1.42           1.93         1.47           1.48           0.02     1.57   1.93",
            (1.47e-6, "median", "p99", 1.57e-6),
        ),
        (
            "RDMA_Write Latency",
            " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]\n",
            "2  1000  1.42  1.93  1.47",
            (1.47e-6, "median", "t_max", 1.93e-6),
        ),
        (
            "RDMA_Read Latency",
            " #bytes        #iterations       t_avg[usec]    tps average\n",
            "8  100  2.50  400000.00",
            (2.5e-6, "mean", "latency_is", "round trip"),
        ),
    ],
)
def test_latencies(
    tmp_path: Path, title: str, header: str, row: str, expected: tuple[float, str, str, float | str]
) -> None:
    (link,) = run(tmp_path, row + "\n", header, title).batches[0].links
    assert of(link, "latency_s", "statistic", "bandwidth_bytes_per_s") == [expected[0], expected[1], None]
    assert link.detail[expected[2]] == pytest.approx(expected[3])


def test_device_memory_and_prefixes(tmp_path: Path) -> None:
    text = (
        "0: Using ROCm Device with ID: 0, Name: AMD Instinct MI300X, PCI Bus ID: 0x5, GCN Arch: gfx942\n"
        "0: allocated 16777216 bytes of GPU buffer at 0x7f04\n0:                     RDMA_Write BW Test\n"
        "0:" + BW.format(unit="Gb/sec") + "0: 8388608  5000  390.00  389.00  0.005797\n"
    )
    imported = read(FORMAT, written(tmp_path, "x.log", text))
    assert imported.batches[0].environment.device == "mi300x"
    assert imported.batches[0].links[0].detail["buffers"] == "device"


def test_messages_between_header_and_rows_are_passed_over(tmp_path: Path) -> None:
    rows = (
        "Conflicting CPU frequency values detected: 1500.0 != 1663.6\n3 warnings hidden\n 2 5000 0.11 0.11 6.897101\n"
    )
    imported = run(tmp_path, rows, BW.format(unit="Gb/sec"))
    assert len(imported.batches[0].links) == 1
    assert not imported.bad_rows


@pytest.mark.parametrize("row", ["4 5000 nan nan 1.0", "4 5000 1.0", "4 5000 -1.0 -1.0 1.0", "0 5000 1.0 1.0 1.0", "4"])
def test_broken_rows(tmp_path: Path, row: str) -> None:
    imported = run(tmp_path, f" 2 5000 0.11 0.11 6.897101\n {row}\n", BW.format(unit="Gb/sec"))
    assert len(imported.bad_rows) == 1
    assert len(imported.batches[0].links) == 1


@pytest.mark.parametrize(
    "header",
    [
        " #bytes     #iterations    BW peak[GB/sec]    BW average[GB/sec]   MsgRate[Mpps]\n",
        " #bytes #iterations    t_min[cycles]    t_max[cycles]  t_typical[cycles]\n",
        " #bytes #iterations    t_min[usec]    surprise\n",
    ],
)
def test_unknown_units_and_columns_are_refused(tmp_path: Path, header: str) -> None:
    with pytest.raises(DocumentInvalid) as refused:
        run(tmp_path, " 2 5000 0.11 0.11 6.9\n", header)
    assert "ib.log:13" in str(refused.value)


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="no row of results"):
        run(tmp_path, "", BW.format(unit="Gb/sec"))
