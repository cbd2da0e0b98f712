"""``ibstat`` / ``ibstatus``: the RDMA adapters of a host with rate, state and link layer; or adapter GUIDs by host.

Recognised by ``CA 'mlx5_0'`` with ``Port 1:`` below (ibstat), ``Infiniband device 'mlx5_0' port 1 status:``
(ibstatus), or lines ``VM_hostname NAME`` each followed by port GUIDs (SuperBench's list of ``ibstat -p``). ``Rate``
is Gbit/s. Ports that are not Active are left out. When the first adapter comes again, the next host begins. Source:
linux-rdma/rdma-core infiniband-diags/ibstat.c, microsoft/superbenchmark ib_traffic tests.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from profiles.errors import DocumentInvalid
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.log_lines import LogLine, log_lines
from profiles.importing.source_file import Head, SourceFile
from profiles.topology import Nic, Topology

_ADAPTER = re.compile(r"\s*CA '([^']{1,64})'\s*$|\s*Infiniband device '([^']{1,64})' port (\d+) status:", re.IGNORECASE)
_PORT = re.compile(r"\s*Port (\d+):\s*$", re.IGNORECASE)
_FIELD = re.compile(r"\s*(State|Physical state|phys state|Rate|Link[ _]layer)\s*:\s*(.*\S)", re.IGNORECASE)
_RATE = re.compile(r"(\d{1,5}(?:\.\d+)?)\b")
_HOST = re.compile(r"\s*VM_hostname\s+(\S+)\s*$")
_GUID = re.compile(r"\s*(?:0x)?[0-9a-fA-F]{16}\s*$")
_HAS_ADAPTER = re.compile(r"^[ \t]*CA '[^'\n]{1,64}'[ \t]*$", re.MULTILINE)
_HAS_PORT = re.compile(r"^[ \t]*Port \d{1,3}:[ \t]*$", re.MULTILINE)
_HAS_STATUS = re.compile(r"^[ \t]*Infiniband device '[^'\n]{1,64}' port \d{1,3} status:", re.MULTILINE)
_HAS_LIST = re.compile(r"^[ \t]*VM_hostname[ \t]+\S{1,255}[ \t]*\n[ \t]*(?:0x)?[0-9a-fA-F]{16}[ \t]*$", re.MULTILINE)
_LAYERS = {"infiniband": "ib", "ethernet": "roce"}


@dataclass(slots=True)
class _Port:
    """What is said about one port."""

    line: int
    fields: dict[str, str] = field(default_factory=dict)


def _matches(head: Head) -> bool:
    """Ibstat's adapters with ports, ibstatus' headers, or the list of hosts and GUIDs."""
    text = head.text
    if _HAS_ADAPTER.search(text) and _HAS_PORT.search(text):
        return True
    if _HAS_STATUS.search(text):
        return True
    return bool(_HAS_LIST.search(text))


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    file = files[0]
    imported = Imported(tool="ibstat")
    lines = list(log_lines(file))
    listed = _guid_list(lines)
    if listed:
        usual = Counter(listed).most_common(1)[0][0]
        irregular = () if len(set(listed)) == 1 else (f"hosts list {min(listed)} to {max(listed)} ports",)
        nics = tuple(Nic(index=index, kind="ib") for index in range(usual))
        imported.topology = Topology(num_nodes=len(listed), nics=nics, irregular=irregular)
        imported.facts["num_ports"] = sum(listed)
        return imported
    hosts = _hosts(lines)
    found = [tuple(_nics(ports, imported)) for ports in hosts]
    if not any(found):
        raise DocumentInvalid(
            "no port is active", where=file.where, hint="give the output of ibstat on a node whose links are up"
        )
    kind, count = Counter(found).most_common(1)[0]
    irregular = () if count == len(found) else (f"{len(found) - count} of {len(found)} hosts have other NICs",)
    imported.topology = Topology(num_nodes=len(found) if len(found) > 1 else None, nics=kind, irregular=irregular)
    return imported


def _guid_list(lines: list[LogLine]) -> list[int]:
    """Number of port GUIDs of each host of a ``VM_hostname`` list."""
    counts: list[int] = []
    for line in lines:
        if _HOST.match(line.text):
            counts.append(0)
        elif counts and _GUID.match(line.text):
            counts[-1] += 1
    return [count for count in counts if count]


def _hosts(lines: list[LogLine]) -> list[list[_Port]]:
    """Ports of each host, in the order of the file (or of the rank that a label in front names)."""
    hosts: list[list[_Port]] = []
    seen: dict[int | None, set[str]] = {}
    current: dict[int | None, list[_Port]] = {}
    for line in lines:
        adapter = _ADAPTER.match(line.text)
        if adapter:
            name = adapter.group(1) or f"{adapter.group(2)} {adapter.group(3)}"
            if line.rank not in current or name in seen[line.rank]:
                current[line.rank] = []
                hosts.append(current[line.rank])
                seen[line.rank] = set()
            seen[line.rank].add(name)
            if adapter.group(2):
                current[line.rank].append(_Port(line.number))
            continue
        ports = current.get(line.rank)
        if ports is None:
            continue
        if _PORT.match(line.text):
            ports.append(_Port(line.number))
        elif ports and (said := _FIELD.match(line.text)):
            ports[-1].fields.setdefault(said.group(1).casefold().replace("_", " "), said.group(2))
    return hosts


def _nics(ports: list[_Port], imported: Imported) -> list[Nic]:
    nics: list[Nic] = []
    for port in ports:
        state = port.fields.get("state", "")
        if "active" not in state.casefold():
            imported.skip("port is not active")
            continue
        rate = _RATE.match(port.fields.get("rate", ""))
        if not rate or not 0 < float(rate.group(1)) <= 10_000:
            imported.bad(port.line, "the rate of this port is missing or no number", "ibstat prints Rate: 200 (Gbit/s)")
            continue
        kind = _LAYERS.get(port.fields.get("link layer", "").casefold(), "")
        nics.append(Nic(index=len(nics), bandwidth_bytes_per_s=float(rate.group(1)) * 1e9 / 8, kind=kind))
    return nics


FORMAT = Format(name="ibstat", title="ibstat / ibstatus: RDMA ports of a host", matches=_matches, read=_read)
