"""Slurm's topology.conf and topology.yaml, hostlists, Topograph's models."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.slurm_topology_conf import FORMAT as CONF
from profiles.importers.slurm_topology_yaml import FORMAT as YAML
from profiles.importers.topograph import FORMAT as TOPOGRAPH
from profiles.importing.hostlist import expand_hostlist
from profiles.topology import Topology
from tests.importing import read, read_anyway, sample, written


def shape(topology: Topology | None) -> list[tuple[str, list[int]]]:
    """Tiers as names and group sizes."""
    assert topology is not None
    return [(tier.name, [len(group) for group in tier.groups]) for tier in topology.tiers]


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a[01-03,20]b,c3", ["a01b", "a02b", "a03b", "a20b", "c3"]),
        ("r[1-2]n[0-1]", ["r1n0", "r1n1", "r2n0", "r2n1"]),
        ("node[009-011]", ["node009", "node010", "node011"]),
        ("", []),
    ],
)
def test_hostlists(text: str, hosts: list[str]) -> None:
    assert expand_hostlist(text, "x") == hosts


@pytest.mark.parametrize(
    "text", ["a[1-", "a[3-1]", "a]1[", "a[[1]]", "a[x]", "a[1-999999999]", "a[0-999]b[0-999]c[0-999]"]
)
def test_broken_and_gigantic_hostlists_are_refused(text: str) -> None:
    with pytest.raises(DocumentInvalid):
        expand_hostlist(text, "x")


def test_tree_of_three_levels() -> None:
    imported = read(CONF, sample("topology/topograph_expected_slurm_tree_topology.conf"))
    assert imported.topology is not None
    assert imported.topology.num_nodes == 96
    assert shape(imported.topology) == [("leaf", [8] * 12), ("spine", [16] * 6), ("core", [96])]
    assert "srv" not in imported.topology.canonical_json()
    assert imported.topology.irregular == ()


def test_blocks_and_their_sizes() -> None:
    imported = read(CONF, sample("topology/topograph_expected_slurm_block_topology.conf"))
    assert shape(imported.topology) == [("block", [8] * 12), ("block-16", [16] * 6), ("block-32", [32] * 3)]
    assert imported.topology is not None
    assert {tier.kind for tier in imported.topology.tiers} == {"block"}


def test_dialects_case_quotes_continuation_scontrol_and_rings(tmp_path: Path) -> None:
    text = (
        '# comment\nswitchname=s0 nodes=n[0-2] LinkSpeed=1 # more\nSwitchName=s1 Nodes="n[3-4]"\n'
        "SwitchName=s2 \\\n   Switches=s[0-1]\nTopologyParam=RouteTree\n"
    )
    imported = read(CONF, written(tmp_path, "topology.conf", text))
    assert shape(imported.topology) == [("leaf", [3, 2]), ("spine", [5])]
    assert imported.topology is not None
    assert imported.topology.irregular == ("leaf groups hold 2 to 3 nodes",)
    shown = "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0-1]\nSwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[2-3]\n"
    shown += "SwitchName=s2 Level=1 LinkSpeed=1 Nodes=n[0-3] Switches=s[0-1]\n"
    assert shape(read(CONF, written(tmp_path, "s.txt", shown)).topology) == [("leaf", [2, 2]), ("spine", [4])]
    ring = read(CONF, written(tmp_path, "r.conf", "RingName=r0 Nodes=n[1-8]\nRingName=r1 Nodes=n[9-16]\n"))
    assert shape(ring.topology) == [("ring", [8, 8])]


def test_blocks_that_hold_more_nodes_than_planned(tmp_path: Path) -> None:
    text = "".join(f"BlockName=b{index} Nodes=n{index}[01-18]\n" for index in range(4)) + "BlockSizes=16,64\n"
    assert shape(read(CONF, written(tmp_path, "t.conf", text)).topology) == [("block", [18] * 4), ("block-64", [72])]


def test_broken_lines_are_bad_rows_and_rings_of_switches_refused(tmp_path: Path) -> None:
    text = "SwitchName=s0 Nodes=n[0-3]\nSwitchName=s1 Nodes=n[4-\nSwitchName=s2\nBlockSizes=a,b\n"
    imported = read(CONF, written(tmp_path, "bad.conf", text))
    assert [row.where for row in imported.bad_rows] == ["line 2", "line 3", "line 4"]
    ring = "SwitchName=a Switches=b\nSwitchName=b Switches=a\nSwitchName=c Nodes=n1\n"
    with pytest.raises(DocumentInvalid, match="ring"):
        read(CONF, written(tmp_path, "ring.conf", ring))
    with pytest.raises(DocumentInvalid, match="no line names a node"):
        read(CONF, written(tmp_path, "none.conf", "SwitchName=a Switches=b\n"))


MANUAL = """- topology: topo1
  cluster_default: True
  tree:
    switches:
    - switch: sw_root
      nodes: node[01-04]
- topology: topo2
  cluster_default: False
  block:
    block_sizes:
      - 4
      - 16
    blocks:
    - block: b1
      nodes: node[01-04]
    - block: b2
      nodes: node[05-08]
    - block: b3
      nodes: node[09-12]
    - block: b4
      nodes: node[13-16]
- topology: topo3
  cluster_default: False
  flat: True
"""


def test_yaml_of_the_manual(tmp_path: Path) -> None:
    file = written(tmp_path, "topology.yaml", MANUAL)
    imported = read(YAML, file)
    assert shape(imported.topology) == [("leaf", [4])]
    assert imported.facts == {"num_topologies": 3, "kind": "tree"}
    block = read(YAML, file, given={"topology": "topo2"})
    assert shape(block.topology) == [("block", [4] * 4), ("block-16", [16])]
    with pytest.raises(DocumentInvalid, match="flat"):
        read(YAML, file, given={"topology": "topo3"})
    with pytest.raises(DocumentInvalid, match="no topology is called"):
        read(YAML, file, given={"topology": "topo9"})


def test_yaml_tree_ring_and_torus(tmp_path: Path) -> None:
    tree = (
        "- topology: t\n  tree:\n    switches:\n    - switch: root\n      children: leaf[0-1]\n"
        "    - switch: leaf0\n      nodes: n[0-3]\n    - switch: leaf1\n      nodes: n[4-7]\n"
    )
    assert shape(read(YAML, written(tmp_path, "t.yaml", tree)).topology) == [("leaf", [4, 4]), ("spine", [8])]
    torus = "- topology: t\n  torus3d:\n    toruses:\n    - torus: a\n      dims: {x: 4, y: 2, z: 8}\n      nodes: n[0-63]\n      placements:\n      - dims: {x: 2, y: 2, z: 2}\n"  # noqa: E501
    topology = read(YAML, written(tmp_path, "torus.yaml", torus)).topology
    assert topology is not None
    assert topology.torus_shape == (8, 2, 4)
    assert topology.num_nodes == 64
    assert topology.irregular == ()
    ring = "- topology: t\n  ring:\n    rings:\n    - ring: r\n      nodes: n[0-7]\n"
    assert shape(read(YAML, written(tmp_path, "ring.yaml", ring)).topology) == [("ring", [8])]


@pytest.mark.parametrize(
    "text",
    [
        "- topology: t\n  tree: 5\n", "- topology: t\n  tree:\n    switches: []\n", "- topology: t\n  block:\n    blocks: x\n",  # noqa: E501
        "- topology: t\n  torus3d: {}\n", "- topology: t\n  tree:\n    switches:\n    - switch: a\n      nodes: n[1-\n",
        "- topology: t\n  tree: *a\n",
    ],
)  # fmt: skip
def test_yaml_without_content_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DocumentInvalid):
        read_anyway(YAML, [written(tmp_path, "bad.yaml", text)])


def test_topograph_models() -> None:
    large = read(TOPOGRAPH, sample("topology/topograph_model_large.yaml"))
    assert shape(large.topology) == [("accelerator", [8] * 12), ("leaf", [8] * 12), ("spine", [16] * 6), ("core", [96])]
    assert large.topology is not None
    assert large.topology.tiers[0].kind == "scale_up"
    small = read(TOPOGRAPH, sample("topology/topograph_model_small-tree.yaml"))
    assert shape(small.topology) == [("accelerator", [3, 3]), ("leaf", [3, 3]), ("spine", [6])]


def test_topograph_irregular_racks() -> None:
    imported = read(TOPOGRAPH, sample("topology/topograph_model_dual-xclr-irregular.yaml"))
    topology = imported.topology
    assert topology is not None
    assert topology.num_nodes == 255
    assert [tier.kind for tier in topology.tiers[:2]] == ["block", "scale_up"]
    assert sorted({len(group) for group in topology.tiers[0].groups}) == [5, 7, 9]
    assert any("leaf groups hold 5 to 9 nodes" in what for what in topology.irregular)


def test_topograph_old_form(tmp_path: Path) -> None:
    text = (
        "switches:\n- name: top\n  switches: [a,b]\n- name: a\n  capacity_blocks: [c1]\n- name: b\n  capacity_blocks: [c2]\n"  # noqa: E501
        "capacity_blocks:\n- name: c1\n  type: GB200\n  nvlink: n1\n  nodes: [x1,x2]\n- name: c2\n  type: GB200\n  nvlink: n2\n  nodes: [x3]\n"  # noqa: E501
    )
    imported = read(TOPOGRAPH, written(tmp_path, "old.yaml", text))
    assert shape(imported.topology) == [("accelerator", [2, 1]), ("leaf", [2, 1]), ("spine", [3])]
    assert imported.facts["device_type"] == "GB200"


@pytest.mark.parametrize(
    "text", ["switches:\nblocks:\n", "switches:\n  a: 1\nblocks:\n- nodes: ['a[1-']\n", "switches:\n\tblocks:\n"]
)
def test_topograph_without_nodes_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DocumentInvalid):
        read_anyway(TOPOGRAPH, [written(tmp_path, "bad.yaml", text)])
