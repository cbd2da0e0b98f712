"""AIConfigurator's system files: constants as facts, the node as a topology."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.aiconfigurator_system import FORMAT
from tests.importing import read, read_anyway, sample, written


def test_gb200_rack() -> None:
    imported = read(FORMAT, sample("aiconfigurator/system_gb200.yaml"))
    assert imported.num_observations == 0
    assert imported.facts["gpu.mem_capacity"] == 198674743296
    assert imported.facts["node.inter_rack_bw"] == 100000000000
    assert imported.facts["misc.nccl_mem.2"] == 358612992
    assert imported.facts["device"] == "gb200"
    topology = imported.topology
    assert topology is not None
    assert topology.scale_up_domain_size == 72
    assert topology.node is not None
    assert (topology.node.num_devices, topology.node.host_link_bandwidth_bytes_per_s) == (4, 64e9)
    assert [flag.code for flag in imported.flags] == ["not-measured"]


@pytest.mark.parametrize(("name", "device", "devices"), [("h100_sxm", "h100-sxm5-80gb", 8), ("b60", "arc-pro-b60", 8)])
def test_others(name: str, device: str, devices: int) -> None:
    imported = read(FORMAT, sample(f"aiconfigurator/system_{name}.yaml"))
    assert imported.topology is not None
    assert imported.topology.node is not None
    assert (imported.topology.node.num_devices, imported.topology.scale_up_domain_size) == (devices, None)
    assert imported.facts["device"] == device


@pytest.mark.parametrize(
    "node",
    [
        "  num_gpus_per_node: 0",
        "  num_gpus_per_node: x",
        "  pcie_bw: 3",
        "  num_gpus_per_node: 8\n  pcie_bw: -1",
        " - 3",
        "",
    ],
)
def test_impossible_nodes_are_refused(tmp_path: Path, node: str) -> None:
    text = f"data_dir: data/x\ngpu:\n  mem_bw: 1\nnode:\n{node}\n"
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "x.yaml", text)])
