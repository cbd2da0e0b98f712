"""Copies between host and devices in three dialects."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.gpu_copy import FORMAT
from profiles.observations.records import LinkObservation
from tests.attributes import of
from tests.importing import read, read_anyway, sample, written


def links_of(folder: Path, text: str) -> list[LinkObservation]:
    return read(FORMAT, written(folder, "copy.log", text)).batches[0].links


def test_real_superbench_copies() -> None:
    imported = read(FORMAT, sample("p2p/superbench_gpu_copy_bw_performance.log"))
    links = imported.batches[0].links
    assert of(imported, "tool", "bad_rows") == ["superbench-gpu-copy", []]
    assert len(links) == 57
    assert of(links[0], "kind", "source", "target") == ["host_to_device", "host:0", "device:0"]
    assert links[0].bandwidth_bytes_per_s == pytest.approx(26.2409e9)
    assert of(links[6], "kind", "source", "target") == ["device_to_device", "device:0", "device:1"]
    assert of(links[6], "detail.[access]", "detail.[copied_by]", "row") == ["write", "sm", 7]
    assert of(links[20], "source", "direction") == ["host:1", "one_way"]
    both = links[29]
    assert of(both, "direction", "bandwidth_bytes_per_s") == ["both_ways", pytest.approx(49.4624e9)]
    assert of(links[-1], "kind", "source", "target") == ["device_to_device", "device:all", "device:all"]


def test_real_cuda_bandwidth_test() -> None:
    imported = read(FORMAT, sample("p2p/superbench_cuda_memory_d2h_bw.log"))
    links = imported.batches[0].links
    assert len(links) == 81
    assert imported.batches[0].environment.device_reported == "Tesla V100-PCIE-32GB"
    # 8,000,000 B in 0.00061 s = 13.1e9 B/s: GB is 10^9.
    row = next(link for link in links if link.size_bytes == 8_000_000)
    assert of(row, "kind", "bandwidth_bytes_per_s") == ["device_to_host", pytest.approx(13.1e9)]
    assert row.detail["host_memory"] == "pinned"
    inside = read(FORMAT, sample("p2p/superbench_cuda_memory_d2d_bw.log")).batches[0].links
    assert of(inside[-1], "kind", "detail.[counts]") == ["device_memory", "read and write"]


def test_real_rocm_bandwidth() -> None:
    imported = read(FORMAT, sample("p2p/superbench_rocm_memory_h2d_bw.log"))
    links = imported.batches[0].links
    # 524,288 kB of 1024 bytes = 536,870,912 B in the 21.6897 ms of the second table = 24.7523e9 B/s.
    assert of(links[-1], "size_bytes", "bandwidth_bytes_per_s") == [536_870_912, pytest.approx(24.7523e9)]
    assert of(links[-1], "statistic", "detail.[min_bytes_per_s]") == ["median", pytest.approx(24.3154e9)]
    assert len(links) == 20
    assert imported.skipped == {"bandwidth printed as 0.0000": 3, "the same copy as a time": 23}


def test_the_megabyte_of_older_cuda_is_binary(tmp_path: Path) -> None:
    # 33,554,432 B in 0.00264 s = 12.7e9 B/s = 12,115 x 2^20.
    text = (
        "bandwidthTest-H2D-Pinned, Bandwidth = 12115.0 MB/s, Time = 0.00264 s, Size = 33554432 bytes, NumDevsUsed = 1\n"
    )
    (link,) = links_of(tmp_path, text)
    assert link.bandwidth_bytes_per_s == pytest.approx(33_554_432 / 0.00264, rel=2e-3)


def test_older_superbench_names_the_worker(tmp_path: Path) -> None:
    text = "gpu0_to_gpu1_by_gpu1_using_dma_under_numa0 250.0\ngpu0_to_cpu_by_gpu0_using_sm_under_numa1 5.6\n"
    read_by_target, to_host = links_of(tmp_path, text)
    assert of(read_by_target, "detail.[access]", "detail.[copied_by]") == ["read", "copy engine"]
    assert of(to_host, "kind", "target") == ["device_to_host", "host:1"]


def test_dtk_bandwidth(tmp_path: Path) -> None:
    text = (
        "Device: deviceId 0, PciBusID 159 Name=BW Mem=64.0GB #CUs=80 Freq=1500Mhz\n"
        "=====    HIP Bandwidth Test Type: D2H with host pinned    =====\n"
        "Data Size      Avg Time(us)   Avg BW(GB/s)   Min Time(us)   Peak BW(GB/s)  Max Time(us)   Min BW(GB/s)\n"
        "1 MB           46.044         22.773         45.440         23.076         47.040         22.291\n"
        "2 MB           46.044         22.773         45.440         23.076         47.040         22.291\n"
    )
    imported = read(FORMAT, written(tmp_path, "dtk.log", text))
    (link,) = imported.batches[0].links
    # 1,048,576 B in 46.044 us = 22.773e9 B/s; twice the size in the same time contradicts the printed bandwidth.
    assert of(link, "kind", "size_bytes", "bandwidth_bytes_per_s") == [
        "device_to_host", 1 << 20, pytest.approx(22.773e9, rel=1e-4),
    ]  # fmt: skip
    assert of(imported, "tool") == ["dtk-bandwidth-test"]
    assert imported.batches[0].environment.device_reported == "BW"
    assert [bad.where for bad in imported.bad_rows] == ["line 5"]


@pytest.mark.parametrize(
    "row",
    [
        "gpu0_to_gpu1_write_by_sm nan",
        "gpu0_to_gpu1_write_by_sm -1.0",
        "gpu0_to_gpu1_write_by_sm",
        "bandwidthTest-D2H, Bandwidth = 1.0 GiB/s, Time = 1 s, Size = 1000 bytes, NumDevsUsed = 1",
        "bandwidthTest-D2H, Bandwidth = 1.0 GB/s, Ti",
        "H2D_Bandwidth_pinned 1kB GB/sec 0.1 0.2",
        "H2D_Bandwidth_pinned 1kB MB/sec 0.1 0.1 0.1 0.1 0.1",
    ],
)
def test_broken_rows(tmp_path: Path, row: str) -> None:
    imported = read(FORMAT, written(tmp_path, "c.log", f"gpu0_to_gpu0_by_sm 682.6\n{row}\n"))
    assert [bad.where for bad in imported.bad_rows] == ["line 2"]
    assert len(imported.batches[0].links) == 1


def test_nothing_usable_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="not a number"):
        read(FORMAT, written(tmp_path, "c.log", "gpu0_to_gpu0_by_sm none\n"))
    with pytest.raises(DocumentInvalid, match="no row"):
        read_anyway(FORMAT, [written(tmp_path, "d.log", "nothing\n")])
