"""rocm-smi, npu-smi and mx-smi: how other vendors print their links."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.mx_smi_topo import FORMAT as MX
from profiles.importers.npu_smi_topo import FORMAT as NPU
from profiles.importers.nvidia_smi_topo import FORMAT as NVIDIA
from profiles.importers.rocm_smi_topo import FORMAT as ROCM
from profiles.topology import NodeTopology
from tests.importing import read, read_anyway, sample, written


def rocm_text(
    link: list[list[str]], hops: list[list[str]], *, numa: str = "GPU[{0}]\t\t: (Topology) Numa Node: {1}"
) -> str:
    """A report as rocm-smi prints it."""
    labels = [f"GPU{index}" for index in range(len(link))]
    header = "       " + "".join(f"{label:<13}" for label in labels)
    parts = ["============================ ROCm System Management Interface ============================"]
    for title, rows in (
        ("Weight between two GPUs", hops),
        ("Hops between two GPUs", hops),
        ("Link Type between two GPUs", link),
    ):
        parts += [f"======= {title} =======", header]
        parts += [
            f"{label}   " + "".join(f"{cell:<13}" for cell in row) for label, row in zip(labels, rows, strict=True)
        ]
    parts.append("======================================= Numa Nodes =======================================")
    parts += [numa.format(index, index // 4) for index in range(len(link))]
    return "\n".join(parts) + "\n"


def square(size: int, cell: str, other: str | None = None, half: int = 0) -> list[list[str]]:
    """A matrix of ``cell`` (``other`` between halves), 0 on the diagonal."""
    return [
        [
            "0" if row == column else other if other and (row < half) != (column < half) else cell
            for column in range(size)
        ]
        for row in range(size)
    ]


def node_of(imported_topology: object) -> NodeTopology:
    node = getattr(imported_topology, "node", None)
    assert isinstance(node, NodeTopology)
    return node


def test_mi300x_full_mesh(tmp_path: Path) -> None:
    text = rocm_text(square(8, "XGMI"), square(8, "1")) + "Card Series: \t\tAMD Instinct MI300X OAM\n"
    imported = read(ROCM, written(tmp_path, "rocm.txt", text))
    node = node_of(imported.topology)
    assert node.num_devices == 8
    assert node.switched is False
    assert imported.bad_rows == []
    assert {pair.link for pair in node.pairs} == {"xgmi"}
    assert len(node.pairs) == 28
    assert node.numa_node_of_device == (0, 0, 0, 0, 1, 1, 1, 1)
    assert node.device_reported == "AMD Instinct MI300X OAM"
    assert not NVIDIA.matches(written(tmp_path, "rocm.txt", text).head())


def test_two_hives_and_several_hops_inside_a_program(tmp_path: Path) -> None:
    text = "out = '''\n" + rocm_text(square(8, "XGMI", "PCIE", 4), square(8, "1", "3", 4)) + "'''\nprint(out)\n"
    node = node_of(read(ROCM, written(tmp_path, "program.py", text)).topology)
    assert [pair.link for pair in node.pairs if pair.first == 0] == ["xgmi"] * 3 + ["system"] * 4
    far = rocm_text(
        square(4, "XGMI", "XGMI", 2), square(4, "1", "2", 2), numa="GPU {0}          : (Topology) Numa Node: {1}"
    )
    imported = read(ROCM, written(tmp_path, "far.txt", far))
    assert [pair.link for pair in node_of(imported.topology).pairs] == [
        "xgmi",
        "system",
        "system",
        "system",
        "system",
        "xgmi",
    ]
    assert imported.facts["xgmi_pairs_several_hops"] == 4


def test_rocm_cut_or_without_links_is_told(tmp_path: Path) -> None:
    text = rocm_text(square(4, "XGMI"), square(4, "1"))
    cut = read(ROCM, written(tmp_path, "cut.txt", text[: text.rindex("GPU3   XGMI")]))
    assert any("3 of 4 rows" in row.what for row in cut.bad_rows)
    weights = text[: text.index("======= Hops")]
    with pytest.raises(DocumentInvalid, match="link types"):
        read_anyway(ROCM, [written(tmp_path, "weights.txt", weights)])


def test_910b_full_mesh_of_eight() -> None:
    node = node_of(read(NPU, sample("topo/msswift_npu_smi_topo_910b.txt")).topology)
    assert node.num_devices == 8
    assert node.switched is False
    assert {pair.link for pair in node.pairs} == {"hccs"}
    assert len(node.pairs) == 28


def test_910c_package_and_switch_with_physical_numbers(tmp_path: Path) -> None:
    text = (
        "Ascend Topology:\n           Phy-ID12   Phy-ID13   Phy-ID14\n"
        "Phy-ID12   X          SIO        HCCS_SW\nPhy-ID13   SIO        X          HCCS_SW\n"
        "Phy-ID14   HCCS_SW    HCCS_SW    X\n"
    )
    node = node_of(read(NPU, written(tmp_path, "npu.txt", text)).topology)
    assert [pair.link for pair in node.pairs] == ["sio", "hccs_switch", "hccs_switch"]
    assert node.switched is True


def test_npu_header_without_indent_and_pcie_cards(tmp_path: Path) -> None:
    text = "NPU0       NPU1       CPU Affinity\nNPU0       X          SYS   0-63\nNPU1       SYS        X     64-127\n"
    node = node_of(read(NPU, written(tmp_path, "npu.txt", text)).topology)
    assert [pair.link for pair in node.pairs] == ["system"]
    assert node.switched is None
    with pytest.raises(DocumentInvalid, match="no whole row"):
        read_anyway(NPU, [written(tmp_path, "none.txt", "npu-smi info -t topo\n")])


def test_metax_two_groups_of_four_with_nics() -> None:
    imported = read(MX, sample("topo/msswift_metax_mx_smi_topo_n.txt"))
    node = node_of(imported.topology)
    assert imported.tool_version == "2.2.9"
    assert node.num_devices == 8
    assert len(node.nics) == 6
    assert [pair.link for pair in node.pairs if pair.first == 0] == ["metaxlink"] * 3 + ["numa"] * 4
    assert node.numa_node_of_device == (0,) * 8
    assert [nic.nearest_devices for nic in node.nics] == [(0, 1, 2, 3)] * 2 + [(4, 5, 6, 7)] * 2 + [()] * 2
    assert not NVIDIA.matches(sample("topo/msswift_metax_mx_smi_topo_n.txt").head())


def test_metax_without_title_line(tmp_path: Path) -> None:
    text = "mx-smi topo -m\nAttached GPUs : 2\n        GPU0    GPU1\nGPU0    X       SYS\nGPU1    SYS     X\n"
    assert [pair.link for pair in node_of(read(MX, written(tmp_path, "mx.txt", text)).topology).pairs] == ["system"]


def test_old_rocm_says_numa_node_without_topology(tmp_path: Path) -> None:
    text = """\
========================== Link Type between two GPUs ==========================
       GPU0         GPU1
GPU0   0            PCIE
GPU1   PCIE         0
================================== Numa Nodes ==================================
GPU[0] \t\t: Numa Node: 0
GPU[0] \t\t: Numa Affinity: 0
GPU[1] \t\t: Numa Node: 1
GPU[1] \t\t: Numa Affinity: 1
"""
    node = node_of(read(ROCM, written(tmp_path, "r.txt", text)).topology)
    assert node.numa_node_of_device == (0, 1)
