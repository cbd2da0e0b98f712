"""The Inspector's JSON records: many calls of one size become one observation with its spread.

    {"header": {"id", "rank", "n_ranks", "nnodes"}, "metadata": {...}, "coll_perf": {"coll", "coll_sn",
     "coll_msg_size_bytes", "coll_exec_time_us", "coll_timing_source", "coll_algobw_gbs", "coll_algo", "coll_proto"}}

Since 4.3 the header stands once, in a ``dump_stats`` object, and holds for the records behind it.  ``p2p_perf`` are
sends and receives.  Per call (communicator, sequence number) the shortest time over the ranks counts; the observation
is the median over calls.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from profiles.importers.nccl_inspector.sizes import full_size_bytes
from profiles.importing.collective_names import exact_name, operation_of
from profiles.importing.duration_statistics import Durations
from profiles.importing.imported import Imported
from profiles.importing.source_file import SourceFile
from profiles.observations.records import CollectiveObservation, CollectiveOperation, Scalar

_TICKS_PER_US = 1000
_TICKS_PER_S = 1_000_000_000
_LONGEST_US = 10**12


@dataclass(frozen=True, slots=True)
class _Kind:
    """Calls that belong into one observation."""

    operation: CollectiveOperation
    variant: str
    size_bytes: int
    group_size: int
    num_nodes: int | None
    devices_per_node: int | None
    algorithm: str
    protocol: str
    num_channels: int | None
    timing_source: str


@dataclass(slots=True)
class _Calls:
    """Shortest time of each call over the ranks seen, and the place of the first record."""

    place: int
    shortest_us: dict[tuple[str, int], float] = field(default_factory=dict)
    seen: Counter[tuple[str, int]] = field(default_factory=Counter)


@dataclass(slots=True)
class Records:
    """The records of all files of one job."""

    imported: Imported
    version: str = ""
    _kinds: dict[_Kind, _Calls] = field(default_factory=dict)

    def read(self, file: SourceFile, prefix: str, index: int) -> None:
        """Take in one file.  Objects may span lines; what cannot be read becomes a bad row."""
        header: dict[str, Any] = {}
        for line, record in _objects(file, prefix, self.imported):
            own = record.get("header")
            if isinstance(own, dict):
                header = own
            self._note_version(record)
            for key, stem in (("coll_perf", "coll"), ("p2p_perf", "p2p")):
                perf = record.get(key)
                if not isinstance(perf, dict):
                    continue
                try:
                    self._take(header, perf, stem, line, index)
                except ValueError as error:
                    self.imported.bad(f"{prefix}{line}" if prefix else line, str(error))

    def observations(self) -> Iterator[CollectiveObservation]:
        """One observation for each kind of call."""
        alone = 0
        for kind, calls in self._kinds.items():
            ranks = max(calls.seen.values())
            alone += ranks < kind.group_size and kind.operation != "send_recv"
            timing = Durations(round(us * _TICKS_PER_US) for us in calls.shortest_us.values()).timing(_TICKS_PER_S)
            detail: dict[str, Scalar] = {**exact_name(kind.variant), "ranks_seen": ranks}
            if kind.timing_source:
                detail["timing_source"] = kind.timing_source
            yield CollectiveObservation(
                operation=kind.operation,
                size_bytes=kind.size_bytes,
                group_size=kind.group_size,
                timing=timing,
                num_nodes=kind.num_nodes,
                devices_per_node=kind.devices_per_node,
                launch="in_situ",
                algorithm=kind.algorithm,
                protocol=kind.protocol,
                num_channels=kind.num_channels,
                detail=detail,
                row=calls.place,
            )
        if alone:
            what = f"{alone} kinds of calls were seen on some of their ranks only: the times include waiting for others"
            self.imported.flag("waiting-included", what)

    def _note_version(self, record: dict[str, Any]) -> None:
        metadata = record.get("metadata")
        if not self.version and isinstance(metadata, dict):
            version = metadata.get("inspector_output_format_version")
            self.version = version[:20] if isinstance(version, str) else ""

    def _take(self, header: dict[str, Any], perf: dict[str, Any], stem: str, line: int, index: int) -> None:
        """Add one completed call.  Raises ValueError."""
        name = str(perf.get(stem, ""))
        operation = operation_of(name)
        if operation is None:
            raise ValueError(f"'{name[:40]}' is no collective that is known here")
        ranks, nodes = _whole(header, "n_ranks"), _whole(header, "nnodes", default=0)
        time_us = _number(perf, f"{stem}_exec_time_us")
        if ranks == 1:
            self.imported.skip("a communicator of one rank")
            return
        if time_us < 1 / _TICKS_PER_US:
            self.imported.skip("shorter than the clock can tell")
            return
        message = _whole(perf, f"{stem}_msg_size_bytes")
        if message == 0:
            self.imported.skip("size 0")
            return
        bandwidth = perf.get(f"{stem}_algobw_gbs")
        traffic = _number(perf, f"{stem}_algobw_gbs") * 1e9 * time_us * 1e-6 if bandwidth else None
        pair = stem == "p2p"
        size = message if pair else full_size_bytes(operation, message, ranks, traffic)
        if size >= 2**62:
            raise ValueError(f"{size} bytes are more than any tensor has")
        channels = perf.get("coll_n_channels")
        kind = _Kind(
            operation,
            name,
            size,
            2 if pair else ranks,
            1 if pair and nodes == 1 else None if pair else nodes or None,
            ranks // nodes if nodes and ranks % nodes == 0 and not pair else None,
            _word(perf.get("coll_algo")),
            _word(perf.get("coll_proto")),
            channels if isinstance(channels, int) and 0 < channels < 1000 else None,
            _word(perf.get(f"{stem}_timing_source")),
        )
        communicator = str(header.get("id", ""))
        # Sends of different ranks are different messages even where they share a number.
        owner = f"{communicator}/{header.get('rank', index)}" if pair else communicator
        call = (owner, _whole(perf, f"{stem}_sn", default=line))
        calls = self._kinds.setdefault(kind, _Calls(line))
        calls.seen[call] += 1
        calls.shortest_us[call] = min(time_us, calls.shortest_us.get(call, time_us))


def _objects(file: SourceFile, prefix: str, imported: Imported) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a stream with the line on which each begins; objects may span several lines."""
    pending: list[str] = []
    begin = 0
    for number, text in file.lines():
        if not text.strip():
            continue
        if not pending:
            begin = number
        pending.append(text)
        # Only a line that closes an object can end one; pretty-printed streams close it at the margin.
        if not text.rstrip().endswith("}") or (len(pending) > 1 and text[:1].isspace()):
            if len(pending) > 100_000:
                imported.bad(f"{prefix}{begin}" if prefix else begin, "an object of more than 100,000 lines")
                pending = []
            continue
        found = _parsed("\n".join(pending))
        pending = []
        if isinstance(found, dict):
            yield begin, found
        else:
            imported.bad(f"{prefix}{begin}" if prefix else begin, "the line is no JSON object: is it cut off?")
    if pending:
        imported.bad(f"{prefix}{begin}" if prefix else begin, "the last object is cut off")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _whole(record: dict[str, Any], key: str, default: int | None = None) -> int:
    value = record.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**48:
        raise ValueError(f"{key} is {str(value)[:40]}, not a whole number from 0")
    if key == "n_ranks" and not 0 < value < 2**31:
        raise ValueError(f"n_ranks is {value}")
    return value


def _number(record: dict[str, Any], key: str) -> float:
    value = record.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < _LONGEST_US:
        raise ValueError(f"{key} is {str(value)[:40]}, not a number from 0")
    return float(value)


def _word(value: Any) -> str:
    return value[:20] if isinstance(value, str) and value.isascii() and value.replace("_", "").isalnum() else ""
