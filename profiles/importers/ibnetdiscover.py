"""``ibnetdiscover`` (full form and ``-p``): the cables of an InfiniBand fabric, and so its leaves, spines and nodes.

Full form, recognised by ``Switch 65 "S-..."`` or ``Ca 1 "H-..."``: one block a switch, one line a port, ``[1]
"H-..."[1](guid) # "host mlx5_5" lid 647 4xNDR``. ``-p``, recognised by ``CA 134 1 0x... 4x EDR - SW 1719 10 0x... (
'host HCA-1' - 'switch' )``. A node is a host name without its adapter (``mlx5_5``, ``HCA-6``); SHARP's aggregation
nodes are left out. Adapters that do not know their host (``MT4129 ConnectX7``, ``localhost``) are put together by
leaf port where the named ones show that a node uses the same port on all its leaves; else they are only counted.
Source: linux-rdma/rdma-core infiniband-diags/ibnetdiscover.c.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from profiles.errors import DocumentInvalid
from profiles.importing.fabric_graph import Cable, Fabric, FabricGraph, fabric_of
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.infiniband_rate import infiniband_rate_bytes_per_s
from profiles.importing.log_lines import LogLine, log_lines
from profiles.importing.source_file import Head, SourceFile
from profiles.topology import Nic, Topology

_BLOCK = re.compile(r'\s*(Switch|Ca|Rt)\s+\d+\s+"([SHR]-[0-9a-fA-F]{1,16})"\s*(?:#\s*"([^"]*)")?')
_PORT = re.compile(
    r'\s*\[(?:ext )?(\d+)\](?:\([0-9a-fA-F]+\))?\s+"([SHR]-[0-9a-fA-F]{1,16})"\s*\[(?:ext )?(\d+)\]'
    r"(?:\([0-9a-fA-F]+\))?\s*(?:#\s*(.*))?$"
)
_BEGINS_PORT = re.compile(r"\s*\[(?:ext )?\d")
_QUOTED = re.compile(r'"([^"]*)"')
_PAIR = re.compile(
    r"\s*(CA|SW|RT)\s+\d+\s+(\d+)\s+(0x[0-9a-fA-F]{1,16})\s+(\d+x\s+\S+)\s+-\s+"
    r"(CA|SW|RT)\s+\d+\s+(\d+)\s+(0x[0-9a-fA-F]{1,16})\s+\(\s*'(.*)'\s+-\s+'(.*)'\s*\)"
)
_UNPAIRED = re.compile(r"\s*(?:CA|SW|RT)\s+\d+\s+\d+\s+0x[0-9a-fA-F]{1,16}\s+\d+x\s+\S+\s+(?!-\s)\S")
_ADAPTER = re.compile(r"(?:HCA-\d+|[A-Za-z]+\d*(?:_bond)?_\d+|hfi\d+_\d+|ibp\S+|rocep\S+|rdmap\S+)\Z")
_NO_HOST = re.compile(r"Mellanox Technologies|ConnectX|^MT\d{4}|^localhost$|^$", re.IGNORECASE)
_AGGREGATION = "Aggregation Node"
_LONGEST = 2000
_FULL = re.compile(r'^[ \t]*(?:Switch|Ca)[ \t]+\d{1,4}[ \t]+"[SH]-[0-9a-fA-F]{8,16}"', re.MULTILINE)
_PORTS = re.compile(
    r"^[ \t]*(?:CA|SW)[ \t]+\d{1,6}[ \t]+\d{1,4}[ \t]+0x[0-9a-fA-F]{8,16}[ \t]+\d{1,2}x[ \t]+(?:[A-Z]DR\d*|\?\?\?)",
    re.MULTILINE,
)


def _matches(head: Head) -> bool:
    """A block or port line of either form."""
    return bool(_FULL.search(head.text) or _PORTS.search(head.text))


@dataclass(slots=True)
class _Cables:
    """Cables by the GUID and port of both ends, and what each end is called."""

    found: dict[tuple[tuple[str, str], tuple[str, str]], float | None] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    switches: set[str] = field(default_factory=set)
    unconnected: int = 0

    def add(self, first: tuple[str, str], second: tuple[str, str], rate: float | None) -> None:
        key = (first, second) if first <= second else (second, first)
        if self.found.get(key) is None:
            self.found[key] = rate


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    file = files[0]
    imported = Imported(tool="ibnetdiscover")
    cables = _cables(log_lines(file), imported)
    graph, unnamed = _graph(cables)
    if not graph.hosts and not unnamed:
        what = "no host is connected to a switch" if cables.found else "no port is connected"
        raise DocumentInvalid(what, where=file.where, hint="run ibnetdiscover on a fabric whose links are up")
    placed = _place_unnamed(graph, unnamed)
    fabric = fabric_of(graph)
    if fabric is None:
        raise DocumentInvalid(
            f"none of {len(unnamed)} adapters knows its host", where=file.where, hint="load the node descriptions first"
        )
    irregular = list(fabric.irregular)
    if placed < len(unnamed):
        irregular.append(f"{len(unnamed) - placed} adapters do not name their host and are not counted")
    if placed:
        what = f"{placed} adapters that do not name their host were put together by the leaf port they share"
        imported.flag("unnamed-hosts", what)
    imported.facts["num_switches"] = len(cables.switches)
    imported.facts["num_cables"] = len(cables.found)
    if cables.unconnected:
        imported.skip("port without a link", cables.unconnected)
    imported.topology = _topology(fabric, irregular)
    return imported


def _topology(fabric: Fabric, irregular: list[str]) -> Topology:
    rate = fabric.nic_rate_bytes_per_s
    return Topology(
        num_nodes=len(fabric.nodes),
        nics=tuple(Nic(index=index, bandwidth_bytes_per_s=rate, kind="ib") for index in range(fabric.num_nics)),
        rail_optimized=fabric.rail_optimized,
        tiers=fabric.tiers,
        irregular=tuple(irregular),
    )


def _cables(lines: Iterable[LogLine], imported: Imported) -> _Cables:
    cables = _Cables()
    block: str | None = None
    for line in lines:
        text = line.text
        if len(text) > _LONGEST:
            imported.bad(line.number, f"the line has {len(text):,} characters", "one line describes one port")
            continue
        header = _BLOCK.match(text)
        if header:
            block = header.group(2)
            _remember(cables, block, header.group(3) or "")
        elif _BEGINS_PORT.match(text):
            _port_line(cables, block, line, imported)
        elif (pair := _PAIR.match(text)) is not None:
            kind, port, guid, rate, other_kind, other_port, other_guid, name, other_name = pair.groups()
            first, second = f"{kind[0]}-{guid}", f"{other_kind[0]}-{other_guid}"
            _remember(cables, first, name)
            _remember(cables, second, other_name)
            cables.add((first, port), (second, other_port), infiniband_rate_bytes_per_s(rate))
        elif _UNPAIRED.match(text):
            cables.unconnected += 1
        elif re.match(r"\s*(?:CA|SW|RT)\s+\d+\s", text):
            imported.bad(line.number, "the line of this port is incomplete", "run ibnetdiscover -p again")
    return cables


def _port_line(cables: _Cables, block: str | None, line: LogLine, imported: Imported) -> None:
    port = _PORT.match(line.text)
    if block is None or not port:
        imported.bad(line.number, "the line of this port is incomplete", "run ibnetdiscover again")
        return
    comment = port.group(4) or ""
    quoted = _QUOTED.search(comment)
    if quoted:
        cables.names.setdefault(port.group(2), quoted.group(1))
    if port.group(2).startswith("S-"):
        cables.switches.add(port.group(2))
    cables.add((block, port.group(1)), (port.group(2), port.group(3)), infiniband_rate_bytes_per_s(comment))


def _remember(cables: _Cables, end: str, name: str) -> None:
    cables.names[end] = name or cables.names.get(end, "")
    if end.startswith("S-"):
        cables.switches.add(end)


def _graph(cables: _Cables) -> tuple[FabricGraph, list[Cable]]:
    """The graph of named hosts and switches, and the cables of adapters that do not name their host."""
    graph = FabricGraph(switches=set(cables.switches))
    unnamed: list[Cable] = []
    for (one, other), rate in sorted(cables.found.items()):
        first, second = (one, other) if one[0] in cables.switches else (other, one)
        if first[0] not in cables.switches:
            continue
        if second[0] in cables.switches:
            graph.add(Cable(first[0], second[0], rate, first[1], second[1]))
            continue
        name = cables.names.get(second[0], "")
        if _AGGREGATION in name:
            continue
        host = host_of(name)
        cable = Cable(first[0], f"host {host}" if host else second[0], rate, first[1], second[1])
        if host:
            graph.add(cable)
        else:
            unnamed.append(cable)
    return graph, unnamed


def host_of(description: str) -> str:
    """The host in a node description such as ``dgx-01 mlx5_5``; empty if it names none."""
    words = description.split()
    if len(words) > 1 and _ADAPTER.match(words[-1]):
        words = words[:-1]
    host = " ".join(words)
    return "" if _NO_HOST.search(host) else host


def _place_unnamed(graph: FabricGraph, unnamed: list[Cable]) -> int:
    """Put adapters of unnamed hosts together by leaf port, if named hosts use one port number on all their leaves."""
    several = [cables for cables in graph.hosts.values() if len(cables) > 1]
    same = [cables for cables in several if len({cable.first_port for cable in cables}) == 1]
    if not unnamed or not several or len(same) < 0.8 * len(several):
        return 0
    usual = Counter(len(cables) for cables in same).most_common(1)[0][0]
    unit_of = {cable.first: min(each.first for each in cables) for cables in same for cable in cables}
    groups: dict[tuple[str, str], list[Cable]] = {}
    for cable in unnamed:
        groups.setdefault((unit_of.get(cable.first, cable.first), cable.first_port), []).append(cable)
    placed = 0
    for (unit, port), cables in sorted(groups.items()):
        if 2 * len(cables) > usual and len(cables) <= usual:
            for cable in cables:
                renamed = Cable(cable.first, f"port {unit} {port}", cable.rate_bytes_per_s, cable.first_port)
                graph.add(renamed)
            placed += len(cables)
    return placed


FORMAT = Format(
    name="ibnetdiscover", title="ibnetdiscover, full or -p: InfiniBand fabric", matches=_matches, read=_read
)
