"""ibnetdiscover, ibstat and NetQ: leaves, spines, rails, rates, and adapters that do not know their host."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.ibnetdiscover import FORMAT as IB
from profiles.importers.ibstat import FORMAT as IBSTAT
from profiles.importers.netq import FORMAT as NETQ
from profiles.importing.infiniband_rate import infiniband_rate_bytes_per_s
from profiles.topology import Topology
from tests.importing import read, read_anyway, sample, written


def full_text(
    *, units: int = 2, nodes: int = 4, rails: int = 2, spines: int = 2, cables: int = 1, unnamed: int = 0
) -> str:
    """A rail-optimised fat tree as ``ibnetdiscover`` prints it; the last ``unnamed`` nodes of a unit have no name."""
    lines = ["#", "# Topology file: generated on Wed Aug  6 16:11:23 2025", "#", ""]
    for unit in range(units):
        for rail in range(rails):
            leaf = f"S-{unit:08x}{rail:08x}"
            lines += [
                "vendid=0x2c9",
                "devid=0xd2f2",
                f'Switch\t65 "{leaf}"\t\t# "MF0;leaf-{unit}-{rail}:MQM9700/U1" enhanced port 0 lid 73 lmc 0',
            ]
            for node in range(nodes):
                name = (
                    f"dgx-{unit}-{node} mlx5_{rail}"
                    if node < nodes - unnamed
                    else "MT4129 ConnectX7   Mellanox Technologies"
                )
                guid = f"{unit:04x}{node:04x}{rail:08x}"
                lines.append(f'[{node + 1}]\t"H-{guid}"[1]({guid}) \t\t# "{name}" lid 6 4xNDR')
            for spine in range(spines):
                for cable in range(cables):
                    port = 1 + unit * rails * cables + rail * cables + cable
                    lines.append(
                        f'[{40 + spine * cables + cable}]\t"S-ffffffff{spine:08x}"[{port}]\t\t# "spine-{spine}" lid 2 4xNDR'  # noqa: E501
                    )
            lines += [
                f'[65]\t"H-aaaaaaaa{unit:04x}{rail:04x}"[1](aa) \t\t# "Mellanox Technologies Aggregation Node" lid 1 4xNDR',  # noqa: E501
                "",
            ]
    return "\n".join(lines) + "\n"


def topology_of(topology: Topology | None) -> Topology:
    assert topology is not None
    return topology


def test_rail_optimised_units_under_two_spines(tmp_path: Path) -> None:
    imported = read(IB, written(tmp_path, "ib.out", full_text()))
    topology = topology_of(imported.topology)
    assert imported.bad_rows == []
    assert topology.num_nodes == 8
    assert topology.irregular == ()
    assert topology.rail_optimized is True
    assert [(nic.bandwidth_bytes_per_s, nic.kind) for nic in topology.nics] == [(50e9, "ib")] * 2
    leaf, spine = topology.tiers
    assert (leaf.name, leaf.groups) == ("leaf", ((0, 1, 2, 3), (4, 5, 6, 7)))
    assert leaf.downlinks_per_group == (8, 8)
    assert leaf.uplinks_per_group == (4, 4)
    assert leaf.link_bandwidth_bytes_per_s == 50e9 == leaf.downlink_bandwidth_bytes_per_s
    assert (spine.name, spine.groups) == ("spine", (tuple(range(8)),))
    assert "dgx" not in topology.canonical_json()
    assert "spine-" not in topology.canonical_json()


def test_units_without_spines_are_islands_and_storage_is_left_out(tmp_path: Path) -> None:
    text = full_text(spines=0, rails=4) + (
        'Switch\t65 "S-0000000000000000"\t\t# "MF0;leaf-0-0:MQM9700/U1" enhanced port 0 lid 73 lmc 0\n'
        '[30]\t"H-5c25730300d765c8"[1](5c25730300d765c8) \t\t# "ufm-01 mlx5_0" lid 681 4xHDR\n'
    )
    topology = topology_of(read(IB, written(tmp_path, "ib.out", text)).topology)
    assert topology.num_nodes == 8
    assert len(topology.nics) == 4
    assert any("1 hosts with few NICs are left out" in what for what in topology.irregular)
    assert any("not joined by any switch" in what for what in topology.irregular)


def test_unnamed_hosts_are_counted_by_their_leaf_port(tmp_path: Path) -> None:
    imported = read(IB, written(tmp_path, "ib.out", full_text(rails=4, unnamed=1)))
    assert topology_of(imported.topology).num_nodes == 8
    assert [flag.code for flag in imported.flags] == ["unnamed-hosts"]


def test_leaf_that_holds_two_nics_of_a_node_is_no_rail(tmp_path: Path) -> None:
    text = full_text(units=1, rails=1, spines=0)
    text += text.replace("mlx5_0", "mlx5_1").replace("[1]\t", "[11]\t").replace("[2]\t", "[12]\t").replace(
        "[3]\t", "[13]\t").replace("[4]\t", "[14]\t").replace('"H-0000', '"H-0001')  # fmt: skip
    topology = topology_of(read(IB, written(tmp_path, "ib.out", text)).topology)
    assert topology.num_nodes == 4
    assert len(topology.nics) == 2
    assert topology.rail_optimized is False


def test_ports_report_of_a_small_excerpt() -> None:
    imported = read(IB, sample("topology/ibexporter_ibnetdiscover_p_test.out"))
    topology = topology_of(imported.topology)
    assert topology.num_nodes == 3
    assert [nic.bandwidth_bytes_per_s for nic in topology.nics] == [12.5e9]
    assert [len(group) for group in topology.tiers[0].groups] == [1, 2]
    assert imported.skipped == {"port without a link": 2}
    assert imported.facts["num_switches"] == 3


def test_ports_report_without_hosts_is_refused() -> None:
    with pytest.raises(DocumentInvalid, match="no port is connected"):
        read(IB, sample("topology/ibexporter_ibnetdiscover_p_test3.out"))
    topology = topology_of(read(IB, sample("topology/ibexporter_ibnetdiscover_p_test2.out")).topology)
    assert topology.num_nodes == 1
    assert topology.nics[0].bandwidth_bytes_per_s == 25e9


def test_a_host_without_cables_is_refused(tmp_path: Path) -> None:
    text = 'vendid=0x2c9\ncaguid=0xb8e92403009ca838\nCa\t1 "H-b8e92403009ca838"\t\t# "dgx-gb200-n01-c1 HCA-1"\n'
    with pytest.raises(DocumentInvalid, match="no port is connected"):
        read(IB, written(tmp_path, "bad.out", text))


def test_cut_lines_are_bad_rows(tmp_path: Path) -> None:
    text = full_text()
    imported = read(IB, written(tmp_path, "cut.out", text + '[7]\t"H-00'))
    assert len(imported.bad_rows) == 1
    good = "CA   134  1 0x7cfe9003003b4bde 4x EDR - SW  1719 10 0x7cfe9003009ce5b0 ( 'o1 HCA-1' - 'sw' )\n"
    for end in (60, 20):
        assert [row.where for row in read(IB, written(tmp_path, "p.out", good + good[:end])).bad_rows] == ["line 2"]


@pytest.mark.parametrize(
    ("text", "gigabits"),
    [("4xNDR", 400), ("2xNDR", 200), ("4x EDR", 100), ("4xHDR", 200), ("4xXDR", 800), ("1xSDR", 2)],
)
def test_rates(text: str, gigabits: float) -> None:
    assert infiniband_rate_bytes_per_s(text) == gigabits * 1e9 / 8
    assert infiniband_rate_bytes_per_s("4x ???") is None


IBSTAT_TEXT = """CA 'mlx5_0'
\tCA type: MT4129
\tNumber of ports: 1
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tLink layer: InfiniBand
CA 'mlx5_1'
\tPort 1:
\t\tState: Down
\t\tPhysical state: Polling
\t\tRate: 10
\t\tLink layer: InfiniBand
CA 'mlx5_bond_0'
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 100
\t\tLink layer: Ethernet
"""


def test_ibstat_of_one_and_two_hosts(tmp_path: Path) -> None:
    imported = read(IBSTAT, written(tmp_path, "ibstat.txt", IBSTAT_TEXT))
    topology = topology_of(imported.topology)
    assert [(nic.kind, nic.bandwidth_bytes_per_s) for nic in topology.nics] == [("ib", 50e9), ("roce", 12.5e9)]
    assert topology.num_nodes is None
    assert imported.skipped == {"port is not active": 1}
    assert topology_of(read(IBSTAT, written(tmp_path, "two.txt", IBSTAT_TEXT * 2)).topology).num_nodes == 2


def test_ibstatus_and_broken_rates(tmp_path: Path) -> None:
    text = (
        "Infiniband device 'mlx5_0' port 1 status:\n\tstate:\t\t 4: ACTIVE\n\tphys state:\t 5: LinkUp\n"
        "\trate:\t\t 200 Gb/sec (4X HDR)\n\tlink_layer:\t InfiniBand\n"
    )
    topology = topology_of(read(IBSTAT, written(tmp_path, "ibstatus.txt", text)).topology)
    assert [(nic.kind, nic.bandwidth_bytes_per_s) for nic in topology.nics] == [("ib", 25e9)]
    broken = IBSTAT_TEXT.replace("Rate: 400", "Rate: fast")
    assert read(IBSTAT, written(tmp_path, "b.txt", broken)).bad_rows
    with pytest.raises(DocumentInvalid, match="no port is active"):
        read(IBSTAT, written(tmp_path, "d.txt", IBSTAT_TEXT.replace("Active", "Down")))


def test_guids_by_host() -> None:
    topology = topology_of(read(IBSTAT, sample("topology/superbench_ibstat.txt")).topology)
    assert topology.num_nodes == 10
    assert len(topology.nics) == 1
    assert topology.nics[0].bandwidth_bytes_per_s is None
    assert "vma" not in topology.canonical_json()


def test_netq_graph_and_nodes() -> None:
    graph = topology_of(read(NETQ, sample("topology/topograph_netq_topologyGraph.json")).topology)
    assert graph.num_nodes == 8
    assert len(graph.nics) == 4
    assert graph.rail_optimized is False
    leaf, spine = graph.tiers
    assert sorted(map(len, leaf.groups)) == [4, 4]
    assert leaf.downlinks_per_group == (16, 16)
    assert sorted(leaf.uplinks_per_group) == [19, 28]
    assert len(spine.groups) == 1
    nodes = topology_of(read(NETQ, sample("topology/topograph_netq_computeNodes.json")).topology)
    assert nodes.devices_of_node == (4, 4)
    assert nodes.scale_up_domain_size == 8
    assert nodes.tiers[0].kind == "scale_up"
    assert nodes.tiers[0].groups == ((0, 1),)


def test_netq_both_together() -> None:
    files = (sample("topology/topograph_netq_computeNodes.json"), sample("topology/topograph_netq_topologyGraph.json"))
    both = topology_of(read(NETQ, *files).topology)
    assert both.num_nodes == 8
    assert [tier.name for tier in both.tiers] == ["accelerator", "leaf", "spine"]


@pytest.mark.parametrize(
    "text", ["[]", "{}", '[{"GpuIDList": []}]', '[{"links": [], "nodes": []}]', '[{"links": [', "[1]"]
)
def test_netq_without_content_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DocumentInvalid):
        read_anyway(NETQ, [written(tmp_path, "x.json", text)])
