"""HCCL rank tables 1.0, 1.2, 2.0 and the Atlas 950 topology file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.hccl_rank_table import FORMAT
from profiles.importing.json_comments import strip_json_comments
from tests.importing import read, read_anyway, sample, written


def table(servers: int = 2, devices: int = 8, **more: Any) -> dict[str, Any]:
    """A rank table 1.0."""
    return {
        "version": "1.0",
        "status": "completed",
        "server_count": str(servers),
        "server_list": [
            {
                "server_id": f"10.0.0.{server}",
                "device": [
                    {
                        "device_id": str(device),
                        "device_ip": f"192.168.{server}.{device}",
                        "rank_id": str(server * devices + device),
                    }
                    for device in range(devices)
                ],
            }
            for server in range(servers)
        ],
        **more,
    }


def test_two_servers_with_their_ranks(tmp_path: Path) -> None:
    imported = read(FORMAT, written(tmp_path, "hccl.json", json.dumps(table())))
    topology = imported.topology
    assert topology is not None
    assert imported.tool_version == "1.0"
    assert imported.bad_rows == []
    assert topology.num_nodes == 2
    assert topology.devices_of_node == (8, 8)
    assert len(topology.rank_order) == 16
    assert topology.rank_order[9] == (1, 1)
    assert topology.node is not None
    assert [nic.kind for nic in topology.node.nics] == ["roce"] * 8
    assert "10.0.0" not in topology.canonical_json()
    assert "192.168" not in topology.canonical_json()


def test_ranks_keep_their_own_order(tmp_path: Path) -> None:
    data = table(2, 2)
    for server, ranks in zip(data["server_list"], ((3, 2), (1, 0)), strict=True):
        for device, rank in zip(server["device"], ranks, strict=True):
            device["rank_id"] = str(rank)
    topology = read(FORMAT, written(tmp_path, "hccl.json", json.dumps(data))).topology
    assert topology is not None
    assert topology.rank_order == ((1, 1), (1, 0), (0, 1), (0, 0))


@pytest.mark.parametrize(
    ("name", "nodes", "devices", "domain"),
    [("a2_commented", 2, 2, None), ("a3_v1.0_commented", 2, 2, None), ("a3_superpod_v1.2_commented", 4, 4, 8)],
)
def test_published_tables_with_comments(name: str, nodes: int, devices: int, domain: int | None) -> None:
    topology = read(FORMAT, sample(f"ascend/ranktable_{name}.json")).topology
    assert topology is not None
    assert (topology.num_nodes, topology.devices_of_node) == (nodes, (devices,) * nodes)
    assert topology.scale_up_domain_size == domain
    assert topology.rank_order == tuple((node, device) for node in range(nodes) for device in range(devices))
    assert [tier.groups for tier in topology.tiers] == ([((0, 1), (2, 3))] if domain else [])


def test_atlas_950_ranks_and_topology_file() -> None:
    topology = read(FORMAT, sample("ascend/ranktable_950_b_commented.json")).topology
    assert topology is not None
    assert topology.num_nodes == 1
    assert topology.rank_order == ((0, 0), (0, 1))
    imported = read(FORMAT, sample("ascend/ranktable_950_a_commented.json"))
    assert imported.topology is not None
    assert imported.topology.node is not None
    assert [(pair.link, pair.num_links) for pair in imported.topology.node.pairs] == [("ub", 1)]
    assert imported.facts["network_ports_per_device"] == 6


def test_version_2_servers_are_told_apart_by_local_id(tmp_path: Path) -> None:
    ranks = [
        {"rank_id": rank, "device_id": rank % 2, "local_id": rank % 2, "level_list": [
            {"net_layer": 0, "net_instance_id": "pod0"}, {"net_layer": 3, "net_instance_id": "cluster"}]}
        for rank in range(4)
    ]  # fmt: skip
    text = json.dumps({"version": "2.0", "status": "completed", "rank_count": 4, "rank_list": ranks})
    topology = read(FORMAT, written(tmp_path, "v2.json", text)).topology
    assert topology is not None
    assert topology.num_nodes == 2
    assert topology.devices_of_node == (2, 2)
    assert topology.rank_order == ((0, 0), (0, 1), (1, 0), (1, 1))
    assert [(tier.name, tier.kind) for tier in topology.tiers] == [("layer-0", "scale_up"), ("layer-3", "switch")]


def test_comments_are_blanked_only_outside_strings() -> None:
    text = '{"url": "http://a//b", /* c\n */ "x": 1} // end'
    plain = strip_json_comments(text)
    assert json.loads(plain) == {"url": "http://a//b", "x": 1}
    assert plain.count("\n") == text.count("\n")


def test_contradictions_are_told(tmp_path: Path) -> None:
    data = table(2, 2, server_count="3", status="initializing")
    data["server_list"][1]["device"][0]["rank_id"] = "0"
    data["super_pod_list"] = [{"super_pod_id": "0", "server_list": [{"server_id": "nobody"}]}]
    imported = read(FORMAT, written(tmp_path, "x.json", json.dumps(data)))
    assert {flag.code for flag in imported.flags} == {"server-count", "not-completed", "rank-gaps"}
    assert {row.what for row in imported.bad_rows} == {
        "rank 0 appears twice", "1 servers of the super pod are not in server_list",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", '{"server_list": []}', '{"server_list": [{"server_id": "a"}]}', '{"rank_list": []}'),
        *('{"peer_list": [], "edge_list": []}', '{"group_list": []}', '{"version": 1}'),
    ],
)
def test_tables_without_content_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "bad.json", text)])
