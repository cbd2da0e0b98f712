"""STREAM on devices: GB of 10^9, reads and writes counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.gpu_stream import FORMAT
from tests.attributes import of
from tests.importing import read, read_anyway, sample, written


def test_real_run_on_two_devices() -> None:
    imported = read(FORMAT, sample("p2p/superbench_gpu_stream.log"))
    environment, links = imported.batches[0].environment, imported.batches[0].links
    assert of(environment, "device_reported", "num_devices") == ["NVIDIA Graphics Device", 2]
    assert len(links) == 32
    assert of(links[0], "kind", "source", "size_bytes") == ["device_memory", "device:0", 4294967296]
    # The header: 4000 MHz x 8192 bit x 2 / 8 = 8192e9 B/s; 81.93 % of it is 6711.67e9: GB is 10^9.
    assert of(links[0], "bandwidth_bytes_per_s", "num_samples", "row") == [pytest.approx(6711.67e9), 40, 8]
    assert links[0].detail["percent_of_peak"] == 81.93
    assert of(links[-1], "source", "detail.[kernel]", "detail.[counts]") == [
        "device:1", "triad", "two reads and one write",
    ]  # fmt: skip


def test_newer_rows_without_device_or_peak(tmp_path: Path) -> None:
    text = "STREAM_COPY_float_buffer_4294967296_block_128\t2900.5\t-1\n"
    (link,) = read(FORMAT, written(tmp_path, "s.log", text)).batches[0].links
    assert of(link, "source", "detail.[dtype]", "bandwidth_bytes_per_s") == ["device:0", "float", 2900.5e9]
    assert "percent_of_peak" not in link.detail


@pytest.mark.parametrize("row", ["nan 1.0", "-5.0 1.0", "0 1.0", "12x 1.0", "12.0", "inf 1"])
def test_broken_rows(tmp_path: Path, row: str) -> None:
    tag = "STREAM_COPY_double_gpu_0_buffer_4096_block_128"
    imported = read(FORMAT, written(tmp_path, "s.log", f"{tag} 100.0 50.0\n{tag} {row}\n"))
    assert [bad.where for bad in imported.bad_rows] == ["line 2"]


def test_nothing_usable_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid):
        read(FORMAT, written(tmp_path, "s.log", "STREAM_COPY_double_gpu_0_buffer_4096_block_128 nan nan\n"))
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "t.log", "STREAM Benchmark\n")])
