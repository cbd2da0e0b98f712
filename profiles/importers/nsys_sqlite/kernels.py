"""Kernel times by name and NVTX range: one pass over the kernels in order of their launches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from profiles.importers.nsys_sqlite.machine import Machine
from profiles.importers.nsys_sqlite.ranges import NVTX, RangeLabel, RangeSweep
from profiles.importing.duration_statistics import Durations
from profiles.importing.foreign_database import Database
from profiles.importing.imported import Imported
from profiles.importing.kernel_names import collective_operation, kernel_class
from profiles.importing.redaction import Redactor
from profiles.observations.records import OperatorObservation, Scalar

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
_LAUNCHES = "CUPTI_ACTIVITY_KIND_RUNTIME"
_MAX_KERNELS = 100_000_000
_MAX_GROUPS = 200_000
_NANOSECONDS_PER_S = 1e9
_LONGEST_NAME = 400
_PROCESS_SHIFT = 24
_PROCESS_MASK = (1 << 24) - 1

_Key = tuple[int, int, RangeLabel | None]


def read_kernels(database: Database, machine: Machine, imported: Imported) -> None:
    """Add one observation for each device name, kernel name and innermost range."""
    if not database.has(KERNELS, "start", "end"):
        return
    name = next((each for each in ("demangledName", "shortName", "name") if database.has(KERNELS, each)), None)
    if name is None:
        imported.bad(KERNELS, "the table has no column with the name of a kernel")
        return
    count = int(database.value(f"SELECT count(*) FROM {KERNELS}") or 0)
    if count > _MAX_KERNELS:
        raise database.damaged(ValueError(f"{count:,} kernels; at most {_MAX_KERNELS:,} are read"))
    redactor = Redactor()
    groups = _grouped(database, machine, imported, redactor, name)
    names = _kernel_names(database, {key[1] for key in groups})
    for (batch, name_id, label), durations in sorted(groups.items(), key=lambda item: -len(item[1])):
        full = names.get(name_id, "")
        if not full:
            imported.bad(KERNELS, f"{len(durations)} kernels have a name id that StringIds does not hold")
            continue
        try:
            machine.batches[batch].operators.append(_observation(redactor.clean(full), label, durations))
        except ValueError as error:
            imported.bad(KERNELS, f"{full[:80]}: {error}")
    _flag_collectives(machine, imported)


def _observation(name: str, label: RangeLabel | None, durations: Durations) -> OperatorObservation:
    kind = kernel_class(name)
    detail: dict[str, Scalar] = {}
    if label is not None:
        detail["nvtx_range"] = label.label
        if label.sizes:
            detail["input_sizes"] = label.sizes
    if kind == "collective":
        detail["operation"] = collective_operation(name)
    return OperatorObservation(
        operator=kind,
        name=name[:_LONGEST_NAME],
        timing=durations.timing(_NANOSECONDS_PER_S),
        phase=label.phase if label is not None else "unknown",
        detail=detail,
    )


def _grouped(
    database: Database, machine: Machine, imported: Imported, redactor: Redactor, name: str
) -> dict[_Key, Durations]:
    groups: dict[_Key, Durations] = {}
    sweep = RangeSweep(database, redactor)
    wrong = unattributed = 0
    for thread, launched_at, name_id, device, process, duration in _launches(database, imported, name):
        if not (isinstance(duration, int) and isinstance(name_id, int)) or duration < 0:
            wrong += 1
            continue
        label = sweep.at(thread, launched_at) if isinstance(thread, int) and isinstance(launched_at, int) else None
        unattributed += label is None
        owner = (process >> _PROCESS_SHIFT) & _PROCESS_MASK if isinstance(process, int) else -1
        key = (machine.index(owner, device if isinstance(device, int) else 0), name_id, label)
        if key not in groups and len(groups) >= _MAX_GROUPS:
            imported.skip(f"kernels beyond {_MAX_GROUPS:,} pairs of name and range")
            continue
        groups.setdefault(key, Durations()).add(duration)
    if wrong:
        imported.bad(KERNELS, f"{wrong} kernels end before they start, or hold no numbers")
    if database.has(NVTX) and unattributed:
        imported.facts["kernels_outside_ranges"] = unattributed
    return groups


def _launches(database: Database, imported: Imported, name: str) -> Iterator[tuple[Any, ...]]:
    """(thread, time of launch, name id, device, process, duration) of every kernel, by thread and time of launch."""
    device = "k.deviceId" if database.has(KERNELS, "deviceId") else "0"
    process = "k.globalPid" if database.has(KERNELS, "globalPid") else "NULL"
    usual = f"k.{name}, {device}, {process}, k.end - k.start"
    linked = database.has(KERNELS, "correlationId") and database.has(_LAUNCHES, "correlationId", "globalTid", "start")
    if not linked:
        if database.has(NVTX):
            imported.flag("no-launches", "without the calls that launched them, kernels belong to no NVTX range")
        return database.rows(f"SELECT NULL, NULL, {usual} FROM {KERNELS} k")
    same_process, by_process = "", ""
    if process != "NULL":
        # Correlation ids count from one in every process.
        same_process = f"AND l.process = k.globalPid >> {_PROCESS_SHIFT}"
        by_process = f", globalTid >> {_PROCESS_SHIFT}"
    return database.rows(
        f"WITH l AS (SELECT correlationId, globalTid, globalTid >> {_PROCESS_SHIFT} AS process, max(start) AS start "
        f"FROM {_LAUNCHES} WHERE correlationId IN (SELECT correlationId FROM {KERNELS}) "
        f"GROUP BY correlationId{by_process}) "
        f"SELECT l.globalTid, l.start, {usual} FROM {KERNELS} k "
        f"LEFT JOIN l ON l.correlationId = k.correlationId {same_process} ORDER BY l.globalTid, l.start"
    )


def _kernel_names(database: Database, wanted: set[int]) -> dict[int, str]:
    if not database.has("StringIds", "id", "value"):
        return {}
    found: dict[int, str] = {}
    for name_id in wanted:
        row = next(database.rows("SELECT substr(value, 1, 4096) FROM StringIds WHERE id = ? LIMIT 1", (name_id,)), None)
        if row is not None and isinstance(row[0], str):
            found[name_id] = row[0]
    return found


def _flag_collectives(machine: Machine, imported: Imported) -> None:
    kernels = sum(
        each.timing.num_samples or 0
        for batch in machine.batches
        for each in batch.operators
        if each.operator == "collective" and each.timing is not None
    )
    if kernels:
        imported.flag(
            "waiting-included",
            f"{kernels} communication kernels: their time includes waiting for the last rank, and their size is not "
            "recorded; they are stored as kernels, not as collectives",
        )
