"""NetQ (NVIDIA NMX / NetQ REST): ``computeNodes`` (trays and their GPUs) and ``topologyGraph`` (switches and cables).

``computeNodes``: a list of ``{Name, DomainUUID, GpuIDList}``: nodes of each NVLink domain and GPUs of each node.
``topologyGraph``: a list of ``{nodes: [{tier, compounded_nodes: [{id, device_type, tier}]}], links: [{src, target,
compounded_links}]}``; a cable is one compounded link; switches have a tier from 1, hosts -1.  Rates are not in it.
Given together, both are read as one fabric.  Source: NVIDIA/topograph, tests/output/netq and pkg/providers/netq.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from profiles.errors import DocumentInvalid
from profiles.importing.fabric_graph import Cable, FabricGraph, fabric_of
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.source_file import Head, SourceFile
from profiles.importing.switch_tree import irregularities
from profiles.safe_json import load_json_text
from profiles.text_limits import MAX_DOCUMENT_BYTES
from profiles.topology import NetworkTier, Nic, Topology

_GRAPH = re.compile(r'"compounded_(?:links|nodes)"\s*:')
_NODES = re.compile(r'"GpuIDList"\s*:')
_DOMAIN = re.compile(r'"DomainUUID"\s*:')


def _matches(head: Head) -> bool:
    """A graph of compounded links or nodes, or a list of nodes with GPU lists and domains."""
    text = head.text.lstrip()[:1]
    if text not in ("[", "{"):
        return False
    return bool(_GRAPH.search(head.text)) or bool(_NODES.search(head.text) and _DOMAIN.search(head.text))


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported(tool="netq")
    found: list[Topology] = []
    for file in files:
        data = load_json_text(file.text(MAX_DOCUMENT_BYTES), file.where)
        items = [item for item in (data if isinstance(data, list) else [data]) if isinstance(item, dict)]
        if any("GpuIDList" in item for item in items):
            found.append(_compute_nodes(items, file.where, imported))
        elif any("links" in item for item in items):
            found.append(_graph(items, file.where, imported))
        else:
            raise DocumentInvalid(
                "neither GpuIDList nor links is in it", where=file.where, hint="give computeNodes or topologyGraph"
            )
    if len(found) == 1:
        imported.topology = found[0]
    else:
        from profiles.merge_topologies import merge_topologies

        imported.topology = merge_topologies(found)
    return imported


def _compute_nodes(items: list[dict[str, Any]], where: str, imported: Imported) -> Topology:
    devices: list[int] = []
    domains: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        gpus = item.get("GpuIDList")
        if not isinstance(gpus, list) or not gpus:
            imported.bad(f"/{index}", "the node lists no GPUs", "GpuIDList is a list of ids")
            continue
        domains.setdefault(str(item.get("DomainUUID")), []).append(len(devices))
        devices.append(len(gpus))
        if str(item.get("Health", "HEALTHY")).upper() != "HEALTHY":
            imported.skipped["node is reported unhealthy (still counted)"] = (
                imported.skipped.get("node is reported unhealthy (still counted)", 0) + 1
            )
    if not devices:
        raise DocumentInvalid("no node lists GPUs", where=where, hint="give the answer of /nmx/v1/compute-nodes")
    groups = tuple(tuple(group) for group in domains.values())
    sizes = {sum(devices[node] for node in group) for group in groups}
    return Topology(
        num_nodes=len(devices),
        devices_of_node=tuple(devices),
        tiers=(NetworkTier(name="accelerator", groups=groups, kind="scale_up"),),
        scale_up_domain_size=sizes.pop() if len(sizes) == 1 else None,
        irregular=tuple(irregularities("accelerator", groups, len(devices))),
    )


def _graph(items: list[dict[str, Any]], where: str, imported: Imported) -> Topology:
    graph = FabricGraph(switches=_switches(items))
    if not graph.switches:
        raise DocumentInvalid("no switch has a tier", where=where, hint="give the answer of /netq/.../topology-graph")
    for item in items:
        for index, link in enumerate(_dicts(item.get("links"))):
            ends = link.get("src"), link.get("target")
            if not all(isinstance(end, str) and end for end in ends):
                imported.bad(f"/links/{index}", "the link names no two ends", "src and target are ids of nodes")
                continue
            compounded = link.get("compounded_links")
            count = len(compounded) if isinstance(compounded, list) and compounded else 1
            for _ in range(min(count, 4096)):
                graph.add(Cable(str(ends[0]), str(ends[1])))
    fabric = fabric_of(graph)
    if fabric is None:
        raise DocumentInvalid("no host hangs on a switch", where=where, hint="is the graph complete?")
    imported.facts["num_switches"] = len(graph.switches)
    imported.facts["num_cables"] = len(graph.between) + sum(map(len, graph.hosts.values()))
    return Topology(
        num_nodes=len(fabric.nodes),
        nics=tuple(Nic(index=index, kind="ethernet") for index in range(fabric.num_nics)),
        rail_optimized=fabric.rail_optimized,
        tiers=fabric.tiers,
        irregular=fabric.irregular,
    )


def _switches(items: list[dict[str, Any]]) -> set[str]:
    """Ids of devices that are switches: by type, or by a tier from 1."""
    found: set[str] = set()
    for item in items:
        for tier in _dicts(item.get("nodes")):
            for node in _dicts(tier.get("compounded_nodes")) or [tier]:
                level = node.get("tier")
                if node.get("device_type") == "switch" or (isinstance(level, int) and level >= 1):
                    found.add(str(node.get("id")))
    return found


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


FORMAT = Format(
    name="netq",
    title="NetQ compute nodes and topology graph (JSON)",
    matches=_matches,
    read=_read,
    takes="files",
)
