"""Ascend communication: ``communication.json`` and ``communication_matrix.json`` of one rank, or of a cluster.

Recognised by ``Communication Time Info`` or by ``Transit Time(ms)`` with ``Transport Type`` in JSON.  One rank:
step -> ``collective`` | ``p2p`` -> operation -> times and links.  A cluster (``cluster_communication.json``): group
``(0, 1)`` -> step -> operation -> rank -> times and links.  A matrix ends in pairs ``0-1`` of ranks instead, which
become ``device:0`` and ``device:1``.

Units are in the names: ms, MB and GB/s, all decimal (63,936 bytes are printed as 0.063936 MB).  The time of an
operation is its *transit* time, on the slowest rank: ``Elapse`` includes waiting for the others.  What was sent over
each kind of link (HCCS, RDMA, PCIE) is a link observation; ``SDMA`` is the sum of HCCS and PCIE and passed over.
The file has no logical size of a collective, so collectives are stored as operators of class ``collective``; what a
rank put on the links is their ``transit_bytes``.
Source: Ascend/msprof-analyze test/resource (cluster_communication.json), cluster_analyse documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from profiles.errors import DocumentInvalid
from profiles.importing.copy_links import copy_link
from profiles.importing.duration_statistics import Durations
from profiles.importing.environments import environment_of
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.json_document import decode_json
from profiles.importing.kernel_names import collective_operation
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import LinkKind, OperatorObservation, Scalar

_TIMES, _LINKS = "Communication Time Info", "Communication Bandwidth Info"
_TRANSIT_MS, _SIZE_MB = "Transit Time(ms)", "Transit Size(MB)"
_LINK_KINDS: dict[str, LinkKind] = {
    "HCCS": "device_to_device", "HCCS_SW": "device_to_device", "SIO": "device_to_device", "PCIE": "device_to_device",
    "RDMA": "network",
}  # fmt: skip
_PAIR = re.compile(r"(\d{1,7})(?:-|->)(\d{1,7})")
_NAME = re.compile(r"[A-Za-z]\w*?(?=_{1,2}\d|-(?:top|middle|bottom|total)|@|\Z)")
_MAX_BYTES = 1 << 30
_MAX_DEPTH = 6
_MAX_BAD = 1000


@dataclass(slots=True)
class Communication:
    """Operations and links of one run, by what they are; ranks are merged as they are added."""

    transit_ps: dict[tuple[str, str], dict[int, tuple[int, int]]] = field(default_factory=dict)
    """(step and group, operation's full name) to rank to (transit time in ps, bytes)."""
    links: dict[tuple[LinkKind, str, str, str, int], Durations] = field(default_factory=dict)
    """(kind, transport, source, target, bytes) to durations in ps."""


def matches(head: Head) -> bool:
    """Whether it is JSON with the fields of a communication or a communication matrix file."""
    start = head.text.lstrip()[:1]
    return start == "{" and _TRANSIT_MS in head.text and (_TIMES in head.text or "Transport Type" in head.text)


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """One file.  Raises DocumentInvalid where it holds no operation with a transit time."""
    file = files[0]
    imported = Imported(tool="msprof")
    communication = Communication()
    add_document(decode_json(file, dict, _MAX_BYTES), communication, imported, rank=0)
    batch = Batch(environment_of(options))
    store(communication, batch, imported)
    if not batch.num_observations:
        reasons = [row.what for row in imported.bad_rows] or list(imported.skipped) or ["no transit time"]
        hint = "record with profiler level 1 or higher; analyse a cluster with mode communication_time"
        raise DocumentInvalid(f"nothing to import: {reasons[0]}", where=file.where, hint=hint)
    if not batch.environment.device:
        imported.flag("device-unknown", "the file does not name the device; give it with --set device=NAME")
    imported.batches = [batch]
    return imported


def add_document(document: Mapping[str, Any], into: Communication, imported: Imported, rank: int) -> None:
    """Add the operations of a file; ``rank`` is whose file it is where the file itself does not say."""
    for path, entry in _entries(document, ()):
        if len(imported.bad_rows) > _MAX_BAD:
            raise DocumentInvalid(f"more than {_MAX_BAD} broken entries", hint="check that this is the right file")
        where = "#/" + "/".join(part.replace("~", "~0").replace("/", "~1")[:80] for part in path)
        if any(part.casefold().startswith("total") for part in path[-2:]) or "-total" in path[-1]:
            imported.skip("totals over all operations")
            continue
        try:
            if _TIMES in entry:
                _add_operation(path, entry, into, rank)
            else:
                _add_pair(path, entry, into, imported)
        except (ValueError, OverflowError) as error:
            imported.bad(where, str(error))


def store(communication: Communication, batch: Batch, imported: Imported) -> None:
    """Add observations: each operation at its slowest rank, grouped by operation, bytes and ranks; each link."""
    groups: dict[tuple[str, int, int], Durations] = {}
    for (_, name), ranks in communication.transit_ps.items():
        slowest_ps = max(picoseconds for picoseconds, _ in ranks.values())
        sent = max(size for _, size in ranks.values())
        if slowest_ps == 0:
            imported.skip("operations without a transit time on any rank")
            continue
        groups.setdefault((_plain_name(name), sent, len(ranks)), Durations()).add(slowest_ps)
    for (name, sent, num_ranks), durations in groups.items():
        detail: dict[str, Scalar] = {
            "operation": collective_operation(name), "transit_bytes": sent, "num_ranks_seen": num_ranks,
        }  # fmt: skip
        batch.operators.append(OperatorObservation("collective", name, durations.timing(1e12), detail=detail))
    for (kind, transport, source, target, size), durations in communication.links.items():
        timing = durations.timing(1e12)
        batch.links.append(copy_link(kind, (source, target), size, timing, transport))
    if groups:
        imported.flag(
            "transit-time",
            "times are transit times on the slowest rank (waiting left out); sizes are what a rank put on the links",
        )


def _entries(node: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Operations and pairs, wherever they are nested."""
    if not isinstance(node, dict) or len(path) > _MAX_DEPTH:
        return
    if path and (_TIMES in node or _TRANSIT_MS in node):
        yield path, node
        return
    for key, child in node.items():
        yield from _entries(child, (*path, str(key)))


def _add_operation(path: tuple[str, ...], entry: Mapping[str, Any], into: Communication, rank: int) -> None:
    times = _mapping(entry, _TIMES)
    links = _mapping(entry, _LINKS) if entry.get(_LINKS) else {}
    own, scope = (int(path[-1]), path[:-1]) if path[-1].isdigit() and len(path[-1]) < 8 else (rank, path)
    transit_ps = _picoseconds(times)
    sent = 0
    found: list[tuple[tuple[LinkKind, str, str, str, int], int]] = []
    for transport in links:
        kind = _LINK_KINDS.get(str(transport).upper())
        if kind is None:
            continue
        values = _mapping(links, transport)
        size, picoseconds = _bytes(values), _picoseconds(values)
        sent += size
        if size and picoseconds:
            ends = ("node:0", "node:1") if kind == "network" else ("device:0", "device:1")
            found.append(((kind, str(transport)[:20], *ends, size), picoseconds))
    for key, picoseconds in found:
        into.links.setdefault(key, Durations()).add(picoseconds)
    group = "/".join(scope[:-1])
    into.transit_ps.setdefault((group, scope[-1] if scope else path[-1]), {})[own] = (transit_ps, sent)


def _add_pair(path: tuple[str, ...], entry: Mapping[str, Any], into: Communication, imported: Imported) -> None:
    match = _PAIR.fullmatch(path[-1])
    if match is None:
        raise ValueError("the entry is neither an operation nor a pair of ranks")
    transport = str(entry.get("Transport Type", "")).upper()
    kind = _LINK_KINDS.get(transport)
    if kind is None:
        imported.skip("copies inside one device, and links of unknown kind")
        return
    size, picoseconds = _bytes(entry), _picoseconds(entry)
    if not size or not picoseconds:
        imported.skip("pairs of ranks that sent nothing")
        return
    ends = (f"device:{match.group(1)}", f"device:{match.group(2)}")
    into.links.setdefault((kind, transport[:20], *ends, size), Durations()).add(picoseconds)


def _mapping(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = entry.get(name)
    if not isinstance(found, dict):
        raise ValueError(f"'{name}' is not an object")
    return found


def _picoseconds(values: Mapping[str, Any]) -> int:
    return round(_number(values, _TRANSIT_MS) * 1e9)


def _bytes(values: Mapping[str, Any]) -> int:
    return round(_number(values, _SIZE_MB) * 1e6)


def _number(values: Mapping[str, Any], name: str) -> float:
    value = values.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"'{name}' is not a number")
    if not 0 <= value < 1e9:
        raise ValueError(f"'{name}' is {value}; a size or time is a number from 0")
    return float(value)


def _plain_name(name: str) -> str:
    """``hcom_broadcast__501_0@6297232067196334501`` is ``hcom_broadcast``."""
    match = _NAME.match(name)
    return match.group() if match else name[:80]


FORMAT = Format("msprof-communication", "Ascend communication (HCCL operations and links)", matches, read)
