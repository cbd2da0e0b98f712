"""Speeds of copies and fills: link observations for each direction, kind of memory and size."""

from __future__ import annotations

from typing import Any

from profiles.importers.nsys_sqlite.machine import Machine
from profiles.importing.duration_statistics import Durations
from profiles.importing.foreign_database import Database
from profiles.importing.imported import Imported
from profiles.observations.records import LinkKind, LinkObservation, Scalar

_COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
_FILLS = "CUPTI_ACTIVITY_KIND_MEMSET"
_MAX_SIZES = 20_000
_NANOSECONDS_PER_S = 1e9

_KINDS: dict[int, LinkKind] = {
    1: "host_to_device", 2: "device_to_host", 8: "device_memory", 9: "host_memory", 10: "device_to_device",
    11: "host_to_device", 12: "device_to_host", 13: "device_memory",
}  # fmt: skip
"""CUPTI's CUpti_ActivityMemcpyKind; those with arrays (3 to 7) say nothing about a link and are left out."""
_UNIFIED = (11, 12, 13)
_MEMORY = {0: "pageable", 1: "pinned", 2: "device", 3: "array", 4: "managed", 5: "device static", 6: "managed static"}

_Key = tuple[int, int, int, int, int, int | None, int | None, int]


def read_copies(database: Database, machine: Machine, imported: Imported) -> None:
    """Add the copies and the fills."""
    if database.has(_COPIES, "start", "end", "bytes", "copyKind"):
        _read(database, machine, imported, _COPIES, _copy_columns(database))
    if database.has(_FILLS, "start", "end", "bytes"):
        memory = _column(database, _FILLS, "memKind")
        _read(database, machine, imported, _FILLS, f"-1, NULL, NULL, NULL, {memory}")


def _copy_columns(database: Database) -> str:
    names = ("copyKind", "srcDeviceId", "dstDeviceId", "srcKind", "dstKind")
    return ", ".join(_column(database, _COPIES, name) for name in names)


def _column(database: Database, table: str, name: str) -> str:
    return name if database.has(table, name) else "NULL"


def _read(database: Database, machine: Machine, imported: Imported, table: str, columns: str) -> None:
    device, process = _column(database, table, "deviceId"), _column(database, table, "globalPid")
    groups: dict[_Key, Durations] = {}
    wrong = 0
    for row in database.rows(f"SELECT {process}, {device}, {columns}, bytes, end - start FROM {table}"):
        key = _key(machine, row)
        if key is None:
            wrong += 1
        elif key[2] != -1 and key[2] not in _KINDS:
            imported.skip("copies from or to arrays, or of unknown kind")
        elif key not in groups and len(groups) >= _MAX_SIZES:
            imported.skip(f"copies beyond {_MAX_SIZES:,} distinct sizes")
        elif key[7] == 0 or row[8] == 0:
            imported.skip("copies of no bytes or in no time")
        else:
            groups.setdefault(key, Durations()).add(row[8])
    if wrong:
        imported.bad(table, f"{wrong} rows end before they start, or hold no numbers")
    for key, durations in sorted(groups.items(), key=lambda item: (item[0][0], item[0][2], item[0][1], item[0][7])):
        machine.batches[key[0]].links.append(_observation(key, durations))


def _key(machine: Machine, row: tuple[Any, ...]) -> _Key | None:
    """(batch, device, kind, source, target, memory of source, memory of target, bytes); None for a broken row."""
    process, device, kind, source, target, source_memory, target_memory, size, duration = row
    if not (isinstance(kind, int) and isinstance(size, int) and isinstance(duration, int)):
        return None
    if duration < 0 or size < 0:
        return None
    ordinal = device if isinstance(device, int) else 0
    owner = (process >> 24) & 0xFFFFFF if isinstance(process, int) else -1
    return (
        machine.index(owner, ordinal),
        ordinal,
        kind,
        source if isinstance(source, int) else ordinal,
        target if isinstance(target, int) else ordinal,
        source_memory if isinstance(source_memory, int) else None,
        target_memory if isinstance(target_memory, int) else None,
        size,
    )


def _observation(key: _Key, durations: Durations) -> LinkObservation:
    _, _, kind, source, target, source_memory, target_memory, size = key
    link: LinkKind = "device_memory" if kind == -1 else _KINDS[kind]
    timing = durations.timing(_NANOSECONDS_PER_S)
    detail: dict[str, Scalar] = {"time_s": timing.time_s}
    for end, memory in (("source_memory", source_memory), ("target_memory", target_memory)):
        if memory in _MEMORY:
            detail[end] = _MEMORY[memory]
    if kind in _UNIFIED:
        detail["unified"] = True
    for name, value in (("min_s", timing.min_s), ("max_s", timing.max_s)):
        if value is not None:
            detail[name] = value
    return LinkObservation(
        kind=link,
        source={"host_to_device": "host:0", "host_memory": "host:0"}.get(link, f"device:{source}"),
        target={"device_to_host": "host:0", "host_memory": "host:0"}.get(link, f"device:{target}"),
        direction="one_way",
        size_bytes=size,
        bandwidth_bytes_per_s=size / timing.time_s,
        statistic=timing.statistic,
        num_samples=timing.num_samples,
        method="memset" if kind == -1 else "memcpy",
        detail=detail,
    )
