r"""p2pBandwidthLatencyTest: who is the source, what is a sum, and the diagonal."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.p2p_bandwidth_latency_test import FORMAT
from tests.attributes import of
from tests.importing import read, read_anyway, sample, written

FULL = r"""[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
Device: 0, NVIDIA H100 80GB HBM3, pciBusID: 1b, pciDeviceID: 0, pciDomainID:0
Device: 1, NVIDIA H100 80GB HBM3, pciBusID: 43, pciDeviceID: 0, pciDomainID:0
P2P Connectivity Matrix
     D\D     0     1
     0	     1     1
     1	     1     1
Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\D     0      1
     0 2500.00  38.24
     1  38.92 2510.00
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\D     0      1
     0 2509.66 380.20
     1 381.66 2536.43
Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)
   D\D     0      1
     0 2525.06 743.19
     1 742.78 2539.36
P2P=Enabled Latency (P2P Writes) Matrix (us)
   GPU     0      1
     0   2.09  12.76
     1  12.87   2.08

   CPU     0      1
     0   2.13   5.67
     1   5.64   2.20

NOTE: The CUDA Samples are not meant for performance measurements.
"""


def test_real_matrices_of_a100_and_h100() -> None:
    for name, value in (("a100", 274.55e9), ("h100", 364.13e9)):
        imported = read(FORMAT, sample(f"p2p/stas_p2pBandwidthLatencyTest_{name}.txt"))
        links = imported.batches[0].links
        assert len(links) == 64
        assert of(links[1], "source", "target", "bandwidth_bytes_per_s") == [
            "device:0",
            "device:1",
            pytest.approx(value),
        ]
        assert of(links[1], "kind", "direction", "row") == ["device_to_device", "one_way", 3]
        assert of(links[0], "kind", "detail.[counts]") == ["device_memory", "read and write"]
        assert of(imported.batches[0].environment, "num_nodes", "device") == [1, ""]


def test_full_output(tmp_path: Path) -> None:
    imported = read(FORMAT, written(tmp_path, "p2p.txt", FULL))
    environment, links = imported.batches[0].environment, imported.batches[0].links
    assert of(environment, "device", "num_devices") == ["h100-sxm5-80gb", 2]
    assert len(links) == 20
    assert of(links[1], "bandwidth_bytes_per_s", "detail.[peer_access]") == [pytest.approx(38.24e9), False]
    assert of(links[5], "source", "target", "detail.[peer_access]") == ["device:0", "device:1", True]
    assert of(links[9], "direction", "bandwidth_bytes_per_s") == ["both_ways", pytest.approx(743.19e9)]
    assert of(links[8], "kind", "direction", "detail.[copies_at_once]") == ["device_memory", "one_way", 2]
    assert of(links[13], "latency_s", "detail.[clock]") == [pytest.approx(12.76e-6), "device"]
    assert of(links[17], "latency_s", "detail.[clock]") == [pytest.approx(5.67e-6), "host"]
    assert not imported.flags
    assert not imported.bad_rows


def test_without_writes_the_column_is_the_source(tmp_path: Path) -> None:
    text = FULL.replace(" (P2P Writes)", "")
    links = read(FORMAT, written(tmp_path, "old.txt", text)).batches[0].links
    assert of(links[5], "source", "target", "bandwidth_bytes_per_s") == ["device:1", "device:0", pytest.approx(380.2e9)]


def test_pairs_without_peer_access_are_told(tmp_path: Path) -> None:
    text = FULL.replace("     0\t     1     1", "     0\t     1     0").replace(
        "     1\t     1     1", "     1\t     0     1"
    )
    imported = read(FORMAT, written(tmp_path, "p2p.txt", text))
    assert imported.batches[0].links[5].detail["peer_access"] is False
    assert [flag.code for flag in imported.flags] == ["no-peer-access"]


def test_some_devices_only_and_indentation(tmp_path: Path) -> None:
    text = (
        "    Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n       D\\D     2      5\n"
        "         2 900.0  97.0\n         5 96.9 901.0\n"
    )
    links = read(FORMAT, written(tmp_path, "part.txt", text), given={"device": "v100-sxm2-32gb"}).batches[0].links
    assert of(links[1], "source", "target") == ["device:5", "device:2"]


@pytest.mark.parametrize("row", ["1 381.66", "1 381.66 nan", "1 381.66 -2.0", "1 381.66 0.00", "1 38x 2.0"])
def test_broken_rows(tmp_path: Path, row: str) -> None:
    text = f"Unidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n D\\D 0 1\n 0 1.0 2.0\n {row}\n"
    imported = read(FORMAT, written(tmp_path, "x.txt", text))
    assert imported.bad_rows[0].where == "line 4"


def test_other_units_and_empty_matrices_are_refused(tmp_path: Path) -> None:
    text = "Unidirectional P2P=Enabled Bandwidth Matrix (GiB/s)\n D\\D 0 1\n 0 1.0 2.0\n 1 1.0 1.0\n"
    with pytest.raises(DocumentInvalid, match="unit"):
        read(FORMAT, written(tmp_path, "x.txt", text))
    with pytest.raises(DocumentInvalid, match="no matrix"):
        read(FORMAT, written(tmp_path, "y.txt", text.replace("GiB", "GB").split(" 0 1.0")[0]))
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "z.txt", "P2P\n")])
