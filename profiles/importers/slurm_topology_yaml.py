"""Slurm's ``topology.yaml``: a list of topologies, each a tree, blocks, rings, a 3-D torus, or flat.

Recognised by ``- topology: NAME`` items with one of those keys. The one with ``cluster_default: true`` is taken (else
the first that is not flat; ``--set topology=NAME`` chooses). Tree: ``switches: [{switch, children, nodes}]``; block:
``block_sizes``, ``blocks: [{block, nodes}]``; ring: ``rings: [{ring, nodes}]``; torus3d: entries with ``dims`` (x, y,
z) and ``nodes`` or ``regions``, x fastest. A torus here is one of nodes. Source: SchedMD/slurm, manual page
topology.yaml(5), src/plugins/topology/torus3d.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from profiles.errors import DocumentInvalid
from profiles.importing.block_tiers import block_tiers
from profiles.importing.format import Format, ReadOptions
from profiles.importing.hostlist import expand_hostlist
from profiles.importing.imported import Imported
from profiles.importing.source_file import Head, SourceFile
from profiles.importing.switch_tree import SwitchTree
from profiles.safe_yaml import load_yaml_text
from profiles.text_limits import MAX_DOCUMENT_BYTES
from profiles.topology import NetworkTier, Topology

_KINDS = ("tree", "block", "ring", "torus3d", "flat")
_ITEM = re.compile(r"^[ \t]*-[ \t]+topology[ \t]*:[ \t]*\S", re.MULTILINE)
_KEY = re.compile(r"^[ \t]+(?:tree|block|ring|torus3d|flat)[ \t]*:", re.MULTILINE)
_PRODUCT = re.compile(r"(\d{1,5})\s*[xX,]\s*(\d{1,5})\s*[xX,]\s*(\d{1,5})\Z")


def _matches(head: Head) -> bool:
    """List items called ``topology`` that define one of Slurm's kinds."""
    return bool(_ITEM.search(head.text) and _KEY.search(head.text))


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    file = files[0]
    data = load_yaml_text(file.text(MAX_DOCUMENT_BYTES), file.where)
    items = data if isinstance(data, list) else data.get("topologies") if isinstance(data, dict) else None
    found = [item for item in items or [] if isinstance(item, dict) and any(kind in item for kind in _KINDS)]
    if not found:
        raise DocumentInvalid(
            "there is no topology in it", where=file.where, hint="a list of - topology: NAME with tree:, block:, ..."
        )
    imported = Imported(tool="slurm")
    chosen = _choose(found, options, file.where)
    kind = next(kind for kind in _KINDS if kind in chosen)
    imported.facts |= {"num_topologies": len(found), "kind": kind}
    if len(found) > 1:
        imported.flag("several-topologies", f"{len(found)} topologies are defined; the default one ({kind}) is taken")
    reader = {"tree": _tree, "block": _block, "ring": _ring, "torus3d": _torus}.get(kind)
    if reader is None:
        raise DocumentInvalid(
            "the topology is flat: nothing is known of its network",
            where=file.where,
            hint="choose another with --set topology=NAME, or give no topology",
        )
    imported.topology = reader(chosen[kind], file.where)
    return imported


def _choose(found: list[dict[str, Any]], options: ReadOptions, where: str) -> dict[str, Any]:
    wanted = options.given.get("topology")
    if wanted:
        for item in found:
            if str(item.get("topology")) == wanted:
                return item
        raise DocumentInvalid(f"no topology is called '{wanted}'", where=where, hint="check --set topology=NAME")
    default = next((item for item in found if item.get("cluster_default") is True), None)
    if default is not None and "flat" not in default:
        return default
    return next((item for item in found if not item.get("flat")), found[0])


def _entries(data: Any, key: str, where: str) -> list[dict[str, Any]]:
    """The list under ``key``; a missing or malformed one is refused."""
    entries = data.get(key) if isinstance(data, dict) else None
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise DocumentInvalid(f"'{key}' is no list of mappings", where=where, hint=f"write {key}: with a list below")
    return entries


def _hosts(entry: dict[str, Any], key: str, where: str) -> list[str]:
    value = entry.get(key)
    if value is None:
        return []
    texts = value if isinstance(value, list) else [value]
    return [host for text in texts for host in expand_hostlist(str(text), where)]


def _tree(data: Any, where: str) -> Topology:
    tree = SwitchTree()
    for entry in _entries(data, "switches", where):
        name = str(entry.get("switch", ""))
        tree.add(name, switches=_hosts(entry, "children", where), nodes=_hosts(entry, "nodes", where))
    tiers, irregular = tree.tiers(where)
    return Topology(num_nodes=len(tree.numbers), tiers=tiers, irregular=irregular)


def _numbered(lists: list[list[str]], where: str) -> tuple[list[list[int]], int]:
    numbers: dict[str, int] = {}
    groups = [[numbers.setdefault(host, len(numbers)) for host in hosts] for hosts in lists]
    if not numbers:
        raise DocumentInvalid("no node is named", where=where, hint="give nodes: node[01-16]")
    return groups, len(numbers)


def _block(data: Any, where: str) -> Topology:
    lists = [_hosts(entry, "nodes", where) for entry in _entries(data, "blocks", where)]
    groups, num_nodes = _numbered(lists, where)
    sizes = data.get("block_sizes") or []
    if not isinstance(sizes, list) or not all(isinstance(size, int) and 0 < size < 10**7 for size in sizes):
        raise DocumentInvalid("block_sizes is no list of numbers", where=where, hint="write block_sizes: [4, 16]")
    tiers, irregular = block_tiers(groups, sizes, num_nodes)
    return Topology(num_nodes=num_nodes, tiers=tiers, irregular=irregular)


def _ring(data: Any, where: str) -> Topology:
    lists = [_hosts(entry, "nodes", where) for entry in _entries(data, "rings", where)]
    groups, num_nodes = _numbered(lists, where)
    tier = NetworkTier(name="ring", groups=tuple(tuple(group) for group in groups), kind="block")
    what = f"{len(groups)} rings: nodes talk to their neighbours in the ring"
    return Topology(num_nodes=num_nodes, tiers=(tier,), irregular=(what,))


def _torus(data: Any, where: str) -> Topology:
    """The first torus; its shape in nodes, slowest axis first as the planner counts (z, y, x)."""
    toruses = list(_with_dims(data))
    if not toruses:
        raise DocumentInvalid("no torus with x, y and z is in it", where=where, hint="give dims: {x: 4, y: 4, z: 4}")
    entry, dims = toruses[0]
    num_nodes = dims[0] * dims[1] * dims[2]
    regions = entry.get("regions") if isinstance(entry.get("regions"), list) else []
    named = _hosts(entry, "nodes", where) or [
        host for region in regions or [] if isinstance(region, dict) for host in _hosts(region, "nodes", where)
    ]
    irregular: list[str] = []
    if len(toruses) > 1:
        irregular.append(f"{len(toruses)} tori; the shape is that of the first")
    if named and len(named) != num_nodes:
        irregular.append(f"the torus has {num_nodes} places and names {len(named)} nodes")
    return Topology(
        num_nodes=num_nodes * len([each for each in toruses if each[1] == dims]),
        torus_shape=(dims[2], dims[1], dims[0]),
        irregular=tuple(irregular),
    )


def _with_dims(data: Any, depth: int = 0) -> Iterator[tuple[dict[str, Any], tuple[int, int, int]]]:
    """Mappings that describe a torus; regions and placements, which have dims too, are not entered."""
    if isinstance(data, list):
        for item in data:
            yield from _with_dims(item, depth + 1)
    elif isinstance(data, dict) and depth < 6:
        dims = _dims(data.get("dims", data))
        if dims:
            yield data, dims
            return
        for key, value in data.items():
            if key not in ("placements", "regions", "nodes"):
                yield from _with_dims(value, depth + 1)


def _dims(value: Any) -> tuple[int, int, int] | None:
    if isinstance(value, str) and (match := _PRODUCT.match(value.strip())):
        sizes: list[Any] = [int(part) for part in match.groups()]
    elif isinstance(value, dict):
        sizes = [value.get(axis) for axis in ("x", "y", "z")]
    elif isinstance(value, list):
        sizes = value
    else:
        return None
    if len(sizes) != 3 or not all(isinstance(size, int) and 0 < size < 65_536 for size in sizes):
        return None
    return sizes[0], sizes[1], sizes[2]


FORMAT = Format(
    name="slurm-topology-yaml", title="Slurm topology.yaml: tree, blocks, rings, torus", matches=_matches, read=_read
)
