"""NCCL graph XML (``NCCL_GRAPH_DUMP_FILE`` or a cloud's ``NCCL_GRAPH_FILE``): the channels that NCCL searched.

Recognised by ``<graphs version="...">``. ``<graph id pattern nchannels speedintra speedinter typeintra typeinter>``
with ``<channel><net dev/><gpu dev/>...</channel>``; speeds are GB/s a channel; pattern 4 = ring, 1 and 2 = split and
balanced tree, 3 = tree, 5 = NVLS. It says how many GPUs and NICs take part and how many channels each algorithm got,
not how the node is wired. Source: NVIDIA/nccl src/graph/search.cc.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiles.errors import DocumentInvalid
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.source_file import Head, SourceFile
from profiles.importing.xml_text import parse_xml
from profiles.topology import Nic, NodeTopology, Topology

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_ROOT = re.compile(r"<graphs[\s>]")
_INSIDE = re.compile(r"<graph[\s>]")
_PATTERNS = {"1": "balanced_tree", "2": "split_tree", "3": "tree", "4": "ring", "5": "nvls", "6": "collnet_direct"}
MAX_DEVICES = 1024


def _matches(head: Head) -> bool:
    """A ``<graphs>`` element with graphs."""
    text = head.text.lstrip()
    root = _ROOT.search(text) if text.startswith("<") else None
    return root is not None and bool(_INSIDE.search(text, root.end()))


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    file = files[0]
    root = parse_xml(file)
    graphs = root.findall("graph") if root.tag == "graphs" else []
    if not graphs:
        raise DocumentInvalid(
            "there is no <graph> in it", where=file.where, hint="give what NCCL_GRAPH_DUMP_FILE wrote"
        )
    imported = Imported(tool="nccl", facts={"num_graphs": len(graphs)})
    gpus: set[int] = set()
    nets: set[int] = set()
    for number, graph in enumerate(graphs):
        _facts(number, graph, imported)
        for channel in graph.findall("channel"):
            gpus |= _devices(channel, "gpu", imported)
            nets |= _devices(channel, "net", imported)
    if not gpus:
        raise DocumentInvalid("no channel names a GPU", where=file.where, hint="the file may be cut off; dump it again")
    node = NodeTopology(
        num_devices=len(gpus),
        device_reported=options.given.get("device", ""),
        nics=tuple(Nic(index=index) for index in range(len(nets))),
    )
    imported.topology = Topology(node=node, devices_of_node=(len(gpus),))
    return imported


def _facts(number: int, graph: Element, imported: Imported) -> None:
    """Channels, speed and link types of one graph."""
    pattern = graph.get("pattern") or ""
    key = f"graph_{number}"
    imported.facts[f"{key}_pattern"] = _PATTERNS.get(pattern, pattern[:20])
    channels = graph.get("nchannels") or ""
    found = len(graph.findall("channel"))
    if not channels.isdigit() or len(channels) > 6:
        imported.bad(f"/graphs/graph[{number}]", f"nchannels is '{channels[:20]}'", "a whole number is needed")
    elif int(channels) != found:
        what = f"graph {number} declares {channels} channels and lists {found}"
        imported.flag("channels-differ", what)
    imported.facts[f"{key}_num_channels"] = found
    for name in ("speedintra", "speedinter"):
        speed = _speed(graph.get(name))
        if speed is not None:
            imported.facts[f"{key}_{name}_bytes_per_s"] = speed
    for name in ("typeintra", "typeinter"):
        if graph.get(name):
            imported.facts[f"{key}_{name}"] = (graph.get(name) or "")[:20]


def _speed(text: str | None) -> float | None:
    try:
        speed = float(text or "") * 1e9
    except ValueError:
        return None
    return speed if math.isfinite(speed) and 0 < speed < 1e14 else None


def _devices(channel: Element, tag: str, imported: Imported) -> set[int]:
    found: set[int] = set()
    for element in channel.findall(tag):
        text = element.get("dev") or ""
        # Newer versions write NICs as hexadecimal ids.
        try:
            number = int(text, 16) if text.lower().startswith("0x") else int(text)
        except ValueError:
            imported.bad("/graphs", f"a channel names {tag} '{text[:20]}'", "dev is a whole number")
            continue
        if len(found) < MAX_DEVICES:
            found.add(number)
    return found


FORMAT = Format(
    name="nccl-graph-xml", title="NCCL graph XML: channels of rings and trees", matches=_matches, read=_read
)
