"""``nvidia-smi topo -m`` and ``-p2p``: real matrices, dialects of drivers, broken ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.nvidia_smi_topo import FORMAT
from profiles.importers.nvidia_smi_topo_p2p import FORMAT as P2P
from tests.importing import read, read_anyway, sample, written

TABS = (
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tNV18\tNV18\tNODE\t0-35\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tNV18\tNV18\tNODE\t0-35\t0\t\tN/A\n"
    "GPU2\tNV18\tNV18\t X \tNV18\tSYS\t\t1\t\tN/A\n"
    "GPU3\tNV18\tNV18\tNV18\t X \tSYS\t\t1\t\tN/A\n"
    "NIC0\tNODE\tNODE\tSYS\tSYS\t X \t\t\t\t\n"
)
P2P_TEXT = """$ nvidia-smi topo -p2p r
        GPU0    GPU1
 GPU0   X       CNS
 GPU1   CNS     X

Legend:
  X    = Self
  OK   = Status Ok
"""


def test_h200_node_of_google_with_tabs_underline_legend_and_shell_trace() -> None:
    imported = read(FORMAT, sample("topo/mlperf_v5.0_google_h200_topo_m_tabs_ansi.txt"))
    node = imported.topology.node if imported.topology else None
    assert node is not None
    assert imported.bad_rows == []
    assert node.num_devices == 8
    assert node.switched is True
    assert {(pair.link, pair.num_links) for pair in node.pairs} == {("nvlink", 18)}
    assert len(node.pairs) == 28
    assert node.numa_node_of_device == (0, 0, 0, 0, 1, 1, 1, 1)
    assert node.num_numa_nodes == 2
    assert len(node.nics) == 8
    assert [(nic.nearest_devices, nic.link) for nic in node.nics[::3]] == [
        ((0, 1), "pcie_switch"), ((2, 3), "pcie_switch"), ((6, 7), "pcie_switch"),
    ]  # fmt: skip
    assert {nic.kind for nic in node.nics} == {"roce"}
    assert imported.topology is not None
    assert "roce" in imported.topology.canonical_json()
    assert "rocep145s0" not in imported.topology.canonical_json()


def test_pcie_node_keeps_the_distances() -> None:
    imported = read(FORMAT, sample("topo/stelline_esc8000a_topo_m.txt"))
    assert imported.topology is not None
    assert imported.topology.node is not None
    node = imported.topology.node
    assert [pair.reported for pair in node.pairs] == ["NODE", "SYS", "SYS", "SYS", "SYS", "NODE"]
    assert [pair.link for pair in node.pairs][:2] == ["numa", "system"]
    assert node.switched is None
    assert [nic.nearest_devices for nic in node.nics] == [(0, 1), (0, 1), (2, 3), (2, 3)]


def test_tray_of_four_blackwells_is_switched_and_an_empty_cpu_list_moves_no_column(tmp_path: Path) -> None:
    imported = read(FORMAT, written(tmp_path, "topo.txt", TABS))
    assert imported.topology is not None
    assert imported.topology.node is not None
    assert imported.topology.node.switched is True
    assert imported.topology.node.numa_node_of_device == (0, 0, 1, 1)
    assert imported.topology.node.nics[0].nearest_devices == (0, 1)


def test_direct_mesh_of_four_is_no_switch(tmp_path: Path) -> None:
    text = TABS.replace("NV18", "NV4")
    imported = read(FORMAT, written(tmp_path, "topo.txt", text))
    assert imported.topology is not None
    assert imported.topology.node is not None
    assert imported.topology.node.switched is False
    assert {pair.num_links for pair in imported.topology.node.pairs} == {4}


def test_dgx_2_shows_all_six_links_to_each_of_sixteen(tmp_path: Path) -> None:
    labels = [f"GPU{index}" for index in range(16)]
    rows = [f"{label} " + " ".join("X" if label == other else "NV6" for other in labels) for label in labels]
    imported = read(FORMAT, written(tmp_path, "t.txt", "  " + " ".join(labels) + "\n" + "\n".join(rows)))
    assert imported.topology is not None
    assert imported.topology.node is not None
    assert imported.topology.node.switched is True


def test_old_nic_names_glued_cells_and_two_labelled_nodes(tmp_path: Path) -> None:
    text = ""
    for rank in (0, 1):
        text += f"{rank}:         GPU0    GPU1    mlx5_0  mlx5_1  CPU Affinity\n"
        text += f"{rank}: GPU0     X      NV12    PIXNODE    0-23\n"
        text += f"{rank}: GPU1    NV12     X      PXB     SYS     24-47\n"
        text += f"{rank}: mlx5_0  PIX     PXB      X      NODE\n"
        text += f"{rank}: mlx5_1  NODE    SYS     NODE     X\n"
    imported = read(FORMAT, written(tmp_path, "topo.txt", text))
    assert imported.topology is not None
    assert imported.topology.node is not None
    node = imported.topology.node
    assert imported.facts["num_matrices"] == 2
    assert imported.bad_rows == []
    assert node.num_devices == 2
    assert node.switched is None
    assert node.numa_node_of_device == ()
    assert [(nic.nearest_devices, nic.link) for nic in node.nics] == [((0,), "pcie_switch"), ((0,), "numa")]


def test_single_gpu_and_reported_device(tmp_path: Path) -> None:
    text = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n        GPU0    CPU Affinity    NUMA Affinity\n"
    imported = read(FORMAT, written(tmp_path, "t.txt", text + "GPU0     X      0-31    1\n"))
    assert imported.topology is not None
    assert imported.topology.node is not None
    assert imported.topology.node.num_devices == 1
    assert imported.topology.node.numa_node_of_device == (1,)
    assert imported.topology.node.device_reported == "NVIDIA H100 80GB HBM3"


def test_cut_and_contradicting_matrices_are_bad_rows(tmp_path: Path) -> None:
    cut = read(FORMAT, written(tmp_path, "cut.txt", "\n".join(TABS.split("\n")[:3])))
    assert any("2 of 4 device rows" in row.what for row in cut.bad_rows)
    short = TABS.replace("GPU3\tNV18\tNV18\tNV18\t X \tSYS", "GPU3\tNV18\t???")
    assert any("GPU3" in row.what for row in read(FORMAT, written(tmp_path, "s.txt", short)).bad_rows)
    twisted = TABS.replace("GPU1\tNV18\t X", "GPU1\tSYS\t X")
    assert any(
        "NV18 in one row and SYS" in row.what for row in read(FORMAT, written(tmp_path, "x.txt", twisted)).bad_rows
    )


@pytest.mark.parametrize("text", ["GPU0 and GPU1 are joined by NV18", "        GPU0    GPU1\n", "GPU0"])
def test_prose_and_bare_headers_are_refused(tmp_path: Path, text: str) -> None:
    file = written(tmp_path, "t.txt", text)
    assert not FORMAT.matches(file.head())
    with pytest.raises(DocumentInvalid, match="no whole row"):
        read_anyway(FORMAT, [file])


def test_p2p_says_what_goes_through_the_host(tmp_path: Path) -> None:
    imported = read(P2P, written(tmp_path, "p2p.txt", P2P_TEXT))
    assert imported.topology is not None
    assert imported.topology.node is not None
    assert [(pair.link, pair.reported) for pair in imported.topology.node.pairs] == [("system", "NS")]
    assert imported.facts["p2p_read_cns"] == 2
    assert imported.flags[0].code == "host-staged"
    assert not FORMAT.matches(written(tmp_path, "p2p.txt", P2P_TEXT).head())


def test_p2p_beside_topo_m_keeps_the_links(tmp_path: Path) -> None:
    good = P2P_TEXT.replace("CNS  ", "OK   ").replace("    CNS", "    OK")
    both = "        GPU0    GPU1\nGPU0     X      NV4\nGPU1    NV4      X\n\n" + good
    imported = read(P2P, written(tmp_path, "both.txt", both))
    assert imported.topology is not None
    assert imported.topology.node is not None
    assert imported.topology.node.pairs[0].num_links == 4
    assert imported.flags == []
    assert imported.facts["p2p_read_ok"] == 2


def test_p2p_cut_in_the_middle_is_a_bad_row(tmp_path: Path) -> None:
    imported = read(P2P, written(tmp_path, "cut.txt", P2P_TEXT.split(" GPU1   CNS", maxsplit=1)[0]))
    assert any("1 of 2 rows" in row.what for row in imported.bad_rows)
