"""A topology becomes a cluster: rounds trips with the catalogue, every kind of source, what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.catalogue import load_cluster, load_device, read_cluster
from profiles.cluster import Cluster
from profiles.complete_cluster import cluster_yaml, complete_cluster
from profiles.consistency import check_cluster
from profiles.errors import Conflict, DocumentInvalid, ProfileMissing
from profiles.importing.format import ReadOptions
from profiles.importing.formats import load_format
from profiles.merge_topologies import merge_topologies
from profiles.safe_yaml import load_yaml_text
from profiles.topology import DevicePair, NetworkTier, Nic, NodeTopology, Topology
from tests.importing import sample


def imported(format_name: str, name: str) -> Topology:
    """The topology of a sample."""
    topology = load_format(format_name).read([sample(name)], ReadOptions()).topology
    assert topology is not None
    return topology


def full_mesh(
    num_devices: int, link: str, num_links: int | None, *, switched: bool | None, reported: str = ""
) -> Topology:
    """One node whose pairs are all joined alike."""
    pairs = [
        DevicePair.model_validate({"first": first, "second": second, "link": link, "num_links": num_links})
        for first in range(num_devices)
        for second in range(first + 1, num_devices)
    ]
    node = NodeTopology(num_devices=num_devices, pairs=tuple(pairs), switched=switched, device_reported=reported)
    return Topology(node=node, devices_of_node=(num_devices,))


def completed(topology: Topology, base: str | None = None, device: str | None = None) -> tuple[Cluster, str]:
    """The cluster and its notes as one text, after checking that the file it makes reads back."""
    cluster, notes = complete_cluster(topology, base=load_cluster(base) if base else None, device=device, name="mine")
    assert check_cluster(cluster) == []
    assert read_cluster(load_yaml_text(cluster_yaml(cluster), "mine.yaml"), "mine.yaml") == cluster
    return cluster, "\n".join(notes)


def test_dgx_h100_comes_back_from_its_own_matrix() -> None:
    topology = imported("nvidia-smi-topo", "topo/stas_topo_h100_nv18_full.txt")
    cluster, notes = completed(topology, "dgx-h100")
    base = load_cluster("dgx-h100")
    assert cluster.pools == base.pools
    assert cluster.fabric == base.fabric
    assert "scale_up.bandwidth_bytes_per_s: 450 GB/s, from the topology (18 links of 25.0 GB/s)" in notes
    assert "host.memory_bytes: 2.00 TiB, from the base" in notes


def test_h200_node_with_nics_of_the_matrix_and_rates_of_the_base() -> None:
    cluster, notes = completed(
        imported("nvidia-smi-topo", "topo/mlperf_v5.0_google_h200_topo_m_tabs_ansi.txt"), "dgx-h200"
    )
    assert cluster.pools == load_cluster("dgx-h200").pools
    assert "nics_per_node: 8, from the topology" in notes
    assert "nic_bandwidth_bytes_per_s: 50.0 GB/s, from the base" in notes


def test_mi300x_mesh_by_counts_and_without() -> None:
    counted, _ = completed(full_mesh(8, "xgmi", 1, switched=False, reported="AMD Instinct MI300X"), "mi300x-8")
    assert counted.pools == load_cluster("mi300x-8").pools
    uncounted, notes = completed(full_mesh(8, "xgmi", None, switched=False), "mi300x-8")
    assert uncounted.pools == counted.pools
    assert "links are not counted" in notes
    half, _ = completed(full_mesh(4, "xgmi", 1, switched=False), "mi300x-8")
    scale_up = half.pools[0].scale_up
    assert (scale_up.kind, scale_up.domain_size) == ("mesh", 4)
    assert (scale_up.pair_bandwidth_bytes_per_s, scale_up.bandwidth_bytes_per_s) == (64e9, 192e9)


def test_a100_of_azure_whose_xml_hides_its_nvlinks() -> None:
    cluster, notes = completed(imported("nccl-topo-xml", "nccl-xml/azure_ndv4-topo.xml"), "dgx-a100-80g")
    assert cluster.pools == load_cluster("dgx-a100-80g").pools
    assert "scale_up: switch of 8, from the base" in notes
    assert "nics_per_node: 8, from the topology" in notes


def test_oci_h100_dump_overrules_the_nic_rate() -> None:
    cluster, _ = completed(imported("nccl-topo-xml", "nccl-xml/oci_H100-topology.xml"), "oci-h100")
    pool = cluster.pools[0]
    assert (pool.nics_per_node, pool.nic_bandwidth_bytes_per_s) == (16, 22.5e9)
    assert pool.host.link_bandwidth_bytes_per_s == load_cluster("oci-h100").pools[0].host.link_bandwidth_bytes_per_s
    assert cluster.provenance["nic_bandwidth_bytes_per_s"].confidence == "measured"


def test_ascend_with_base_and_from_the_catalogue_alone() -> None:
    topology = imported("npu-smi-topo", "topo/msswift_npu_smi_topo_910b.txt")
    cluster, _ = completed(topology, "ascend-910b-8")
    assert cluster.pools == load_cluster("ascend-910b-8").pools
    alone, notes = completed(topology, device="ascend-910b2")
    assert alone.pools[0].scale_up.pair_bandwidth_bytes_per_s == 28e9
    assert alone.num_devices == 8
    assert "from the catalogue (ascend-910b-8 agree)" in notes


def test_nvl72_blocks_are_the_domains() -> None:
    groups = tuple(tuple(range(start, start + 18)) for start in range(0, 72, 18))
    topology = Topology(num_nodes=72, tiers=(NetworkTier(name="block", groups=groups, kind="block"),))
    cluster, notes = completed(topology, "gb200-nvl72")
    assert cluster.num_devices == 288
    assert cluster.pools[0].scale_up.domain_size == 72
    assert "fabric.block: its groups are the scale-up domains" in notes
    small, _ = completed(
        imported("slurm-topology-conf", "topology/topograph_expected_slurm_block_topology.conf"), "gb200-nvl72"
    )
    assert small.pools[0].scale_up.domain_size == 32
    assert small.num_devices == 384
    assert [(level.name, level.num_nodes) for level in small.fabric] == [("block-16", 16), ("block-32", 32)]


def test_blocks_of_a_cluster_of_single_node_domains_are_fabric_only() -> None:
    topology = imported("slurm-topology-conf", "topology/topograph_expected_slurm_block_topology.conf")
    cluster, _ = completed(topology, "dgx-h100")
    assert cluster.pools[0].scale_up.domain_size == 8
    assert [level.num_nodes for level in cluster.fabric] == [8, 16, 32]


def test_one_tray_cannot_shrink_the_nvl72_domain() -> None:
    cluster, notes = completed(full_mesh(4, "nvlink", 18, switched=True), "gb200-nvl72")
    assert cluster.pools[0].scale_up.domain_size == 72
    assert "one node cannot show it" in notes
    assert cluster.pools[0].scale_up.bandwidth_bytes_per_s == 900e9


def test_slurm_tree_gives_the_fabric() -> None:
    topology = imported("slurm-topology-conf", "topology/topograph_expected_slurm_tree_topology.conf")
    cluster, notes = completed(topology, "dgx-h100")
    assert cluster.num_devices == 768
    assert [(level.name, level.num_nodes) for level in cluster.fabric] == [("leaf", 8), ("spine", 16), ("core", 96)]
    assert "fabric.leaf.oversubscription: 1, from the base's leaf" in notes


def test_oversubscription_follows_from_the_cables() -> None:
    leaf = NetworkTier(
        name="leaf", groups=((0, 1, 2, 3), (4, 5, 6, 7)), uplinks_per_group=(16, 8), downlinks_per_group=(32, 32),
        link_bandwidth_bytes_per_s=50e9, downlink_bandwidth_bytes_per_s=25e9,
    )  # fmt: skip
    spine = NetworkTier(name="spine", groups=(tuple(range(8)),))
    nics = tuple(Nic(index=index, bandwidth_bytes_per_s=25e9, kind="ib") for index in range(8))
    topology = Topology(num_nodes=8, nics=nics, tiers=(leaf, spine), rail_optimized=True)
    cluster, notes = completed(topology, "dgx-h100")
    assert [(level.num_nodes, level.oversubscription) for level in cluster.fabric] == [(4, 2.0), (8, 1.0)]
    assert cluster.pools[0].nic_bandwidth_bytes_per_s == 25e9
    assert "the worst group" in notes


def test_irregular_racks_take_the_smallest_safe_group() -> None:
    topology = imported("topograph", "topology/topograph_model_dual-xclr-irregular.yaml")
    cluster, notes = completed(topology, "dgx-h100")
    assert cluster.pools[0].num_nodes == 255
    assert cluster.fabric[0].num_nodes == 5
    assert "29 groups of 5 to 9; the smallest is safe" in notes
    assert "irregular: leaf groups hold 5 to 9 nodes" in notes
    racks, said = completed(topology, "gb200-nvl72")
    assert racks.pools[0].scale_up.domain_size == 20
    assert "more than the base's 72 devices" in said


def test_super_pods_of_a_rank_table() -> None:
    cluster, _ = completed(
        imported("hccl-rank-table", "ascend/ranktable_a3_superpod_v1.2_commented.json"), "ascend-910c"
    )
    pool = cluster.pools[0]
    assert (pool.num_nodes, pool.devices_per_node, pool.scale_up.domain_size, pool.nics_per_node) == (4, 4, 8, 4)


def test_pcie_node_and_islands() -> None:
    pcie, _ = completed(imported("nvidia-smi-topo", "topo/stelline_esc8000a_topo_m.txt"), "l40s-8")
    assert (pcie.pools[0].scale_up.kind, pcie.pools[0].scale_up.domain_size) == ("pcie", 4)
    islands = full_mesh(8, "system", None, switched=None)
    assert islands.node is not None
    pairs = tuple(
        pair.model_copy(update={"link": "xgmi", "num_links": 1}) if pair.first // 4 == pair.second // 4 else pair
        for pair in islands.node.pairs
    )
    two = islands.model_copy(update={"node": islands.node.model_copy(update={"pairs": pairs, "switched": False})})
    cluster, notes = completed(two, "mi300x-8")
    assert cluster.pools[0].scale_up.domain_size == 4
    assert "only groups of 4 devices" in notes


def test_what_nobody_says_is_missing_by_name() -> None:
    h100 = imported("nccl-topo-xml", "nccl-xml/oci_H100-topology-kubernetes.xml")
    with pytest.raises(ProfileMissing, match=r"host\.memory_bytes") as caught:
        completed(h100)
    assert "--base" in (caught.value.hint or "")
    assert "dgx-h100" in (caught.value.hint or "")
    with pytest.raises(ProfileMissing, match="device") as caught:
        completed(imported("mx-smi-topo", "topo/msswift_metax_mx_smi_topo_n.txt"))
    assert "--device" in (caught.value.hint or "")
    two_nodes = imported("npu-smi-topo", "topo/msswift_npu_smi_topo_910b.txt").model_copy(
        update={"num_nodes": 2, "tiers": (NetworkTier(name="leaf", groups=((0,), (1,))),)}
    )
    with pytest.raises(ProfileMissing, match=r"fabric\.oversubscription"):
        completed(two_nodes, device="ascend-910b2")


def test_a_base_of_another_device_is_a_conflict_unless_the_user_decides() -> None:
    h100 = imported("nccl-topo-xml", "nccl-xml/oci_H100-topology-kubernetes.xml")
    with pytest.raises(Conflict, match="h100-sxm5-80gb"):
        completed(h100, "dgx-a100-80g")
    cluster, _ = completed(h100, "dgx-a100-80g", "h100-sxm5-80gb")
    assert cluster.pools[0].device == load_device("h100-sxm5-80gb")
    assert cluster.pools[0].scale_up.bandwidth_bytes_per_s == 450e9


def test_a_base_of_several_pools_is_refused() -> None:
    base = load_cluster("dgx-h100")
    pool = base.pools[0]
    mixed = base.model_copy(update={"pools": (pool, pool.model_copy(update={"name": "other"}))})
    with pytest.raises(DocumentInvalid, match="2 pools"):
        complete_cluster(Topology(num_nodes=2), base=mixed, device=None, name="x")


def test_node_network_and_rates_of_three_tools_merge() -> None:
    node = imported("nvidia-smi-topo", "topo/mlperf_v5.0_google_h200_topo_m_tabs_ansi.txt")
    slurm = imported("slurm-topology-conf", "topology/topograph_expected_slurm_tree_topology.conf")
    rates = Topology(nics=tuple(Nic(index=index, bandwidth_bytes_per_s=50e9, kind="roce") for index in range(8)))
    merged = merge_topologies([slurm, node, rates])
    assert merged.num_nodes == 96
    assert merged.node == node.node
    assert len(merged.nics) == 8
    cluster, notes = completed(merged, "dgx-h200")
    assert cluster.num_devices == 768
    assert "nic_bandwidth_bytes_per_s: 50.0 GB/s, from the topology" in notes


def test_merging_refuses_nodes_of_different_size_and_nothing() -> None:
    with pytest.raises(Conflict, match="nodes of 4 devices, another of 8"):
        merge_topologies([full_mesh(4, "nvlink", 4, switched=False), full_mesh(8, "nvlink", 18, switched=True)])
    with pytest.raises(DocumentInvalid):
        merge_topologies([])


def test_merging_prefers_links_over_capabilities_and_fills_nics() -> None:
    capability = full_mesh(2, "unknown", None, switched=None)
    links = full_mesh(2, "nvlink", 4, switched=None)
    assert links.node is not None
    assert capability.node is not None
    named = (Nic(index=0, nearest_devices=(0,), link="pcie_switch"),)
    rated = (Nic(index=0, bandwidth_bytes_per_s=25e9, kind="ib"),)
    first = links.model_copy(update={"node": links.node.model_copy(update={"nics": named})})
    second = capability.model_copy(update={"node": capability.node.model_copy(update={"nics": rated})})
    merged = merge_topologies([second, first])
    assert merged.node is not None
    assert merged.node.pairs == links.node.pairs
    assert merged.node.nics == (
        Nic(index=0, bandwidth_bytes_per_s=25e9, kind="ib", nearest_devices=(0,), link="pcie_switch"),
    )


def test_the_file_is_a_cluster_for_the_planner(tmp_path: Path) -> None:
    topology = imported("slurm-topology-conf", "topology/topograph_expected_slurm_tree_topology.conf")
    cluster, _ = complete_cluster(topology, base=load_cluster("dgx-h100"), device=None, name="from-slurm")
    path = tmp_path / "cluster.yaml"
    path.write_text(cluster_yaml(cluster), encoding="utf-8")
    assert load_cluster(str(path)) == cluster
    assert "device: h100-sxm5-80gb" in path.read_text(encoding="utf-8")
    assert load_cluster(str(path), 64).num_devices == 64


@pytest.mark.parametrize(
    ("kind", "base", "expected"),
    [
        ("efa", "dgx-h100", "efa"),
        ("ib", "dgx-h100", None),
        ("", "aws-p5", "efa"),
        ("ib", "aws-p5", None),
        ("ib", "azure-nd-h100-v5", "infiniband"),
        ("ethernet", "oci-h100", "roce"),
    ],
)
def test_the_transport_of_the_nics(kind: str, base: str, expected: str | None) -> None:
    """An mlx5 card may carry InfiniBand or RoCE, and no EFA."""
    nics = tuple(Nic(index=index, bandwidth_bytes_per_s=50e9, kind=kind) for index in range(8))
    cluster, _ = completed(Topology(num_nodes=4, nics=nics), base)
    assert cluster.pools[0].nic_transport == expected
