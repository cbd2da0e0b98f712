"""SimAI efficiency tables need a line rate before they say anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.simai_ratio import FORMAT
from tests.attributes import of
from tests.importing import read, read_anyway, sample, written

NIC = {"line_rate_bytes_per_s": "400 Gbit/s"}


@pytest.mark.parametrize("name", ["simai/nic_ratio.csv", "simai/ata_ratio.csv"])
def test_without_a_line_rate_the_table_is_refused_with_the_flag(name: str) -> None:
    with pytest.raises(DocumentInvalid) as refused:
        read(FORMAT, sample(name))
    assert "--set line_rate_bytes_per_s" in str(refused.value)


def test_real_nic_table() -> None:
    imported = read(FORMAT, sample("simai/nic_ratio.csv"), given=NIC)
    links = imported.batches[0].links
    # 11 sizes x 7 NIC columns; 400 Gbit/s = 50e9 B/s; 0.32 of it for 16 MiB on 2 nodes.
    assert len(links) == 77
    assert of(links[0], "size_bytes", "bandwidth_bytes_per_s", "row") == [16777216, pytest.approx(16e9), 2]
    assert of(links[0], "detail.[num_nodes]", "detail.[num_devices]", "detail.[efficiency]") == [2, 16, 0.32]
    assert of(links[-1], "detail.[num_nodes]", "bandwidth_bytes_per_s") == [128, pytest.approx(0.919175 * 50e9)]
    assert links[0].detail["operation"] == "all_gather, reduce_scatter"


def test_real_alltoall_table_with_both_rates() -> None:
    given = NIC | {"nvlink_rate_bytes_per_s": "450 GB/s"}
    imported = read(FORMAT, sample("simai/ata_ratio.csv"), given=given)
    links = imported.batches[0].links
    assert len(links) == 55
    assert of(links[0], "kind", "bandwidth_bytes_per_s") == ["device_to_device", pytest.approx(0.44 * 450e9)]
    assert of(links[1], "kind", "detail.[operation]") == ["network", "all_to_all"]
    assert imported.skipped["empty cell"] == 33


def test_chinese_headers(tmp_path: Path) -> None:
    text = "Size,单机(NVLinkx),2 机(NIC ),4 机 32 卡(NIC),Multi 16\n16777216,0.45,0.55,0.34,0.86\n"
    imported = read(FORMAT, written(tmp_path, "nvlink_ratio.csv", text), given=NIC)
    first, second = imported.batches[0].links
    assert of(first, "detail.[num_nodes]", "bandwidth_bytes_per_s") == [2, pytest.approx(27.5e9)]
    assert of(second, "detail.[num_nodes]", "detail.[num_devices]") == [4, 32]
    assert imported.skipped == {"no line rate given for the column": 1, "column without a number of nodes": 1}


@pytest.mark.parametrize("cell", ["nan", "-0.5", "7", "x"])
def test_broken_cells(tmp_path: Path, cell: str) -> None:
    text = f"Size,1 Node(NVLinkx),2Node-16GPU(NIC )\n1024,0.4,0.5\n2048,0.4,{cell}\n"
    imported = read(FORMAT, written(tmp_path, "nic_ratio.csv", text), given=NIC)
    assert [bad.where for bad in imported.bad_rows] == ["line 3"]


def test_wrong_rates_and_other_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="line_rate"):
        read(FORMAT, sample("simai/nic_ratio.csv"), given={"line_rate_bytes_per_s": "-5"})
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "x.csv", "a,b\n1,2\n")], given=NIC)
    assert not FORMAT.matches(written(tmp_path, "y.csv", "Size,Time\n1,2\n").head())
