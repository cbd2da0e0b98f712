"""NCCL topology and graph XML: dumps, cloud files, AMD, fused domains, hostile ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.nccl_graph_xml import FORMAT as GRAPH
from profiles.importers.nccl_topo_xml import FORMAT
from profiles.topology import NodeTopology, Topology
from tests.importing import read, read_anyway, sample, written


def node_of(topology: Topology | None) -> NodeTopology:
    assert topology is not None
    assert topology.node is not None
    return topology.node


def test_oci_h100_dump_shows_switches_and_double_nics() -> None:
    node = node_of(read(FORMAT, sample("nccl-xml/oci_H100-topology-kubernetes.xml")).topology)
    assert node.num_devices == 8
    assert node.switched is True
    assert node.device_reported == "H100 SXM5 80GB"
    assert {(pair.link, pair.num_links) for pair in node.pairs} == {("nvlink", 18)}
    assert len(node.pairs) == 28
    assert len(node.nics) == 16
    assert {nic.bandwidth_bytes_per_s for nic in node.nics} == {25e9}
    assert {nic.direct for nic in node.nics} == {True}
    assert node.nics[0].nearest_devices == (0,)
    assert node.host_link_bandwidth_bytes_per_s == pytest.approx(32e9 * 16 * 128 / 130 / 8)
    assert node.numa_node_of_device == (0, 0, 0, 0, 1, 1, 1, 1)
    assert node.cpu == "GenuineIntel x86_64"


def test_a_slow_virtual_bridge_does_not_limit_the_host_link() -> None:
    imported = read(FORMAT, sample("nccl-xml/oci_H100-topology.xml"))
    assert node_of(imported.topology).host_link_bandwidth_bytes_per_s == pytest.approx(63.015e9, rel=1e-4)
    assert [flag.code for flag in imported.flags] == ["slow-bridge"]
    assert {nic.bandwidth_bytes_per_s for nic in node_of(imported.topology).nics} == {22.5e9}


@pytest.mark.parametrize(
    ("name", "num_nics", "kind"),
    [("azure_ndv4-topo.xml", 8, "ib"), ("aws_p4de-24xl-topo.xml", 4, "efa")],
)
def test_cloud_files_give_devices_and_nics_but_no_links(name: str, num_nics: int, kind: str) -> None:
    imported = read(FORMAT, sample(f"nccl-xml/{name}"))
    node = node_of(imported.topology)
    assert node.num_devices == 8
    assert node.pairs == ()
    assert node.switched is None
    assert node.host_link_bandwidth_bytes_per_s is None
    assert [(nic.kind, nic.bandwidth_bytes_per_s) for nic in node.nics] == [(kind, None)] * num_nics
    assert node.nics[0].nearest_devices == (0, 1)
    assert node.nics[0].link == "pcie_switch"
    assert [flag.code for flag in imported.flags] == ["links-omitted"]


def test_a_file_without_classes_is_refused() -> None:
    with pytest.raises(DocumentInvalid, match="9 PCI devices are listed without a class"):
        read(FORMAT, sample("nccl-xml/aws_g5.48xl-topo.xml"))


def test_mi250x_partial_mesh_and_a_socket_nic() -> None:
    node = node_of(read(FORMAT, sample("nccl-xml/rccl_topo_8p_90a_1.xml")).topology)
    assert node.device_reported == "AMD Instinct MI250X"
    assert node.switched is False
    linked = {(pair.first, pair.second) for pair in node.pairs if pair.link == "xgmi"}
    assert linked == {(0, 1), (0, 2), (0, 6), (1, 3), (1, 5), (2, 3), (2, 4), (3, 7), (4, 5), (4, 6), (5, 7), (6, 7)}
    assert [(nic.kind, nic.bandwidth_bytes_per_s, nic.direct) for nic in node.nics] == [("ethernet", 125e6, False)]


def test_mi100_two_hives_with_infiniband() -> None:
    node = node_of(read(FORMAT, sample("nccl-xml/rccl_topo_8p_rome_4n_1.xml")).topology)
    assert sum(pair.link == "xgmi" for pair in node.pairs) == 12
    assert [(nic.kind, nic.bandwidth_bytes_per_s) for nic in node.nics] == [("ib", 25e9)] * 4


GPU = '<pci busid="{bus}" class="0x030200" vendor="0x10de" device="0x2941" link_speed="64.0 GT/s PCIe" link_width="16">'


def tray(host: str) -> str:
    """One GB200 tray of a fused domain: two GPUs with C2C, a socket NIC under each CPU."""
    cpus = ""
    for numa in (0, 1):
        cpus += f'<cpu host_hash="{host}" numaid="{numa}" arch="arm64"><nic><net name="eth0" dev="0" speed="10000" guid="0x0" gdr="0"/></nic>'  # noqa: E501
        cpus += GPU.format(bus=f"000{numa}:01:00.0") + f'<gpu dev="{numa}" sm="100" rank="{numa}" gdr="1">'
        cpus += '<nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/><c2c bw="44712" count="5"/></gpu></pci></cpu>'  # noqa: E501
    return cpus


def test_fused_multi_node_domain_counts_hosts(tmp_path: Path) -> None:
    text = f'<system version="1">{tray("0x1")}{tray("0x2")}</system>'
    topology = read(FORMAT, written(tmp_path, "mnnvl.xml", text)).topology
    node = node_of(topology)
    assert topology is not None
    assert topology.num_nodes == 2
    assert topology.scale_up_domain_size == 4
    assert topology.devices_of_node == (2, 2)
    assert node.num_devices == 2
    assert node.switched is True
    assert node.device_reported == "GB200"
    assert node.host_link_bandwidth_bytes_per_s == 44712e6 * 5
    assert len(node.nics) == 1
    assert node.nics[0].bandwidth_bytes_per_s == 1.25e9


def test_graph_of_azure_ncv4() -> None:
    imported = read(GRAPH, sample("nccl-xml/azure_ncv4-graph.xml"))
    assert node_of(imported.topology).num_devices == 4
    assert imported.facts["graph_0_pattern"] == "ring"
    assert imported.facts["graph_0_num_channels"] == 2
    assert imported.facts["graph_1_speedintra_bytes_per_s"] == 12e9
    assert imported.facts["graph_1_typeintra"] == "SYS"
    assert not FORMAT.matches(sample("nccl-xml/azure_ncv4-graph.xml").head())


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE s [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><system version="1"><cpu>&b;</cpu></system>',
        '<!DOCTYPE s SYSTEM "file:///etc/passwd"><system version="1"><cpu/></system>',
        '<system version="1"><cpu numaid="0"><pci busid="a"',
        '<system version="1"><cpu numaid="0"/></system>',
        "<graphs><graph/></graphs>",
    ],
)
def test_hostile_or_empty_xml_is_one_clear_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        read_anyway(FORMAT, [written(tmp_path, "bad.xml", text)])
    assert caught.value.where
    assert caught.value.hint


def test_impossible_counts_and_speeds_are_bad_rows(tmp_path: Path) -> None:
    text = tray("0x1").replace('count="18"', 'count="-1"', 1).replace('speed="10000"', 'speed="fast"')
    imported = read(FORMAT, written(tmp_path, "x.xml", f'<system version="1">{text}</system>'))
    assert len(imported.bad_rows) >= 2


def test_deep_nesting_ends(tmp_path: Path) -> None:
    text = '<system version="1"><cpu>' + "<pci>" * 5000 + "</pci>" * 5000 + "</cpu></system>"
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "deep.xml", text)])


@pytest.mark.parametrize(
    "text", ["<graphs version='1'></graphs>", "<graphs><graph nchannels='x'/></graphs>", "<graphs"]
)
def test_graph_without_channels_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DocumentInvalid):
        read_anyway(GRAPH, [written(tmp_path, "g.xml", text)])


def _eight_gpus(*, links: str = "", ids: str = "") -> str:
    gpus = "".join(
        f'<pci busid="0000:{bus}0:00.0" class="0x030200" {ids} link_speed="32.0 GT/s PCIe" link_width="16">'
        f'<gpu dev="{bus}" sm="90" rank="{bus}" gdr="1">{links}</gpu></pci>'
        for bus in range(8)
    )
    return f'<system version="1"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">{gpus}</cpu></system>'


def test_configured_gpus_without_links_are_not_called_pcie(tmp_path: Path) -> None:
    configured = read(FORMAT, written(tmp_path, "p5.xml", _eight_gpus()))
    assert node_of(configured.topology).pairs == ()
    assert [flag.code for flag in configured.flags] == ["links-omitted"]
    dumped = read(FORMAT, written(tmp_path, "pcie.xml", _eight_gpus(ids='vendor="0x10de" device="0x26b9"')))
    assert {pair.link for pair in node_of(dumped.topology).pairs} == {"pcie_host"}
    assert dumped.flags == []


def test_links_that_end_at_their_own_gpu_are_left_out(tmp_path: Path) -> None:
    links = '<nvlink target="0000:00:00.0" count="12" tclass="0x030200"/>'
    one = '<pci busid="0000:00:00.0" class="0x030200" vendor="0x10de" device="0x20b5"><gpu dev="0" sm="80" rank="0">'
    text = f'<system version="1"><cpu numaid="0">{one}{links}</gpu></pci></cpu></system>'
    imported = read(FORMAT, written(tmp_path, "ncv4.xml", text))
    assert [flag.code for flag in imported.flags] == ["own-link-target"]
