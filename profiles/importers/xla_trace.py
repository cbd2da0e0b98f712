"""XLA profiles as Chrome traces: ``*.trace.json.gz`` of JAX and TensorFlow, what the trace viewer shows.

Recognised by ``traceEvents`` with a process called ``/device:TPU:N``, ``/device:GPU:N`` or ``/host:CPU``.  The same
content as ``xplane.pb`` in another form: processes are planes, threads are lines, ``args`` are statistics.  ``dur`` is
microseconds; ``device_duration_ps`` is taken where it is there.  The exporter stops at a million events: then flagged.
Source: openxla/xprof trace viewer JSON; a trace recorded with JAX 0.10.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from profiles.errors import DocumentInvalid
from profiles.importers.xla_xplane.activities import (
    COPY_KINDS,
    STEP_NAME,
    Links,
    add_copy,
    module_name,
    store_links,
    store_modules,
    whole,
)
from profiles.importing.duration_statistics import Durations
from profiles.importing.environments import environment_of
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.json_document import decode_json
from profiles.importing.xla_operations import Operation, XlaOperations
from profiles.observations.records import IterationObservation
from profiles.observations.timing import Timing

if TYPE_CHECKING:
    from profiles.importing.source_file import Head, SourceFile

_DEVICE = re.compile(r"/device:(TPU|GPU):(\d{1,6})\b")
_MARK = re.compile(r'"name"\s*:\s*"/(?:device:(?:TPU|GPU):\d|host:CPU)')
_MOST_EVENTS = 1_000_000
_MAX_BYTES = 1 << 30
_WORK = re.compile(r"XLA Ops\b|Stream #")


@dataclass(slots=True)
class _Names:
    """Names of processes and threads."""

    processes: dict[object, str] = field(default_factory=dict)
    threads: dict[tuple[object, object], str] = field(default_factory=dict)


@dataclass(slots=True)
class _Found:
    """What has been collected."""

    operations: XlaOperations = field(default_factory=XlaOperations)
    host: XlaOperations = field(default_factory=XlaOperations)
    modules: dict[str, Durations] = field(default_factory=dict)
    links: Links = field(default_factory=dict)
    devices: set[int] = field(default_factory=set)


def matches(head: Head) -> bool:
    """Whether it is a Chrome trace whose processes are devices of XLA."""
    return head.text.lstrip().startswith("{") and '"traceEvents"' in head.text and bool(_MARK.search(head.text))


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """All devices of one host.  Raises DocumentInvalid for broken JSON and traces without operations."""
    file = files[0]
    document = decode_json(file, dict, _MAX_BYTES)
    events = document.get("traceEvents")
    if not isinstance(events, list):
        raise DocumentInvalid("'traceEvents' is not a list", where=file.where, hint="check that this is a trace")
    imported = Imported(tool="xla profiler")
    batch = Batch(environment_of(options))
    names, found = _names(events), _Found()
    for position, event in enumerate(events):
        if not isinstance(event, dict) or event.get("ph") != "X":
            continue
        try:
            _add(event, names, found, batch, imported)
        except (ValueError, TypeError, OverflowError) as error:
            imported.bad(f"#/traceEvents/{position}", str(error)[:200])
    _store(found, batch, imported)
    if len(events) >= _MOST_EVENTS:
        imported.flag("trace-cut", "the trace viewer exports a million events at most: later ones are missing")
    if not batch.num_observations:
        reason = imported.bad_rows[0].what if imported.bad_rows else "no device has operations"
        hint = "import the xplane.pb beside it, or profile steps that run on a device"
        raise DocumentInvalid(f"nothing to import: {reason}", where=file.where, hint=hint)
    if not batch.environment.device:
        imported.flag("device-unknown", "the trace does not name the device; give it with --set device=NAME")
    imported.batches = [batch]
    return imported


def _names(events: Sequence[Any]) -> _Names:
    names = _Names()
    for event in events:
        if not isinstance(event, dict) or event.get("ph") != "M":
            continue
        arguments = event.get("args")
        name = arguments.get("name") if isinstance(arguments, dict) else None
        if isinstance(name, str):
            if event.get("name") == "process_name":
                names.processes[_id(event.get("pid"))] = name[:200]
            elif event.get("name") == "thread_name":
                names.threads[_id(event.get("pid")), _id(event.get("tid"))] = name[:200]
    return names


def _add(event: dict[str, Any], names: _Names, found: _Found, batch: Batch, imported: Imported) -> None:
    process = names.processes.get(_id(event.get("pid")), "")
    thread = names.threads.get((_id(event.get("pid")), _id(event.get("tid"))), "")
    given = event.get("args")
    arguments: dict[str, Any] = given if isinstance(given, dict) else {}
    device = _DEVICE.match(process)
    if device is None:
        if process.startswith("/host:CPU") and "hlo_op" in arguments:
            found.host.add(_operation(event, arguments, kernel=False), _picoseconds(event, arguments), imported)
        return
    number = int(device.group(2))
    name = str(event.get("name", ""))
    if thread.startswith("XLA Modules"):
        picoseconds = _picoseconds(event, arguments)
        if picoseconds:
            found.modules.setdefault(module_name(name), Durations()).add(picoseconds)
    elif thread.startswith("Steps") and device.group(1) == "TPU":
        _add_step(name, _picoseconds(event, arguments), number, batch, imported)
    elif _WORK.match(thread) and not (device.group(1) == "GPU" and thread.startswith("XLA Ops")):
        found.devices.add(number)
        kind = COPY_KINDS.get(name)
        picoseconds = _picoseconds(event, arguments)
        if kind is not None:
            add_copy(kind, arguments, number, picoseconds, found.links, imported)
        else:
            operation = _operation(event, arguments, kernel=thread.startswith("Stream #"))
            found.operations.add(operation, picoseconds, imported)


def _operation(event: dict[str, Any], arguments: dict[str, Any], *, kernel: bool) -> Operation:
    name = str(event.get("name", "")).lstrip("%")
    if not name:
        raise ValueError("the event has no name")
    text = str(arguments.get("long_name", ""))
    return Operation(
        name=name[:2000],
        module=module_name(str(arguments.get("hlo_module", ""))),
        category=str(arguments.get("hlo_category", "")),
        text=text[:20_000] if text.startswith("%") else "",
        flops=_count(arguments, "flops", "model_flops"),
        bytes_accessed=_count(arguments, "bytes_accessed"),
        kernel=kernel,
        source=str(arguments.get("hlo_op", "")) if kernel else "",
    )


def _add_step(name: str, picoseconds: int, device: int, batch: Batch, imported: Imported) -> None:
    match = STEP_NAME.fullmatch(name)
    if match is None or picoseconds == 0:
        imported.skip("steps without a number or a duration")
        return
    timing = Timing(picoseconds / 1e12, statistic="single", num_samples=1)
    batch.iterations.append(IterationObservation(timing, iteration=int(match.group(1)), detail={"device": device}))


def _store(found: _Found, batch: Batch, imported: Imported) -> None:
    if not found.operations.groups and found.host.groups:
        imported.flag("host-operations", "no device has operations; those that ran on the CPU were read")
        found.operations = found.host
    found.operations.store(batch, imported)
    store_modules(found.modules, batch, imported)
    store_links(found.links, batch)
    if found.devices:
        batch.environment = batch.environment.model_copy(update={"num_devices": len(found.devices)})


def _picoseconds(event: dict[str, Any], arguments: dict[str, Any]) -> int:
    exact = arguments.get("device_duration_ps")
    if exact is not None:
        value = float(exact)
    elif isinstance(event.get("dur"), (int, float)):
        value = float(event["dur"]) * 1e6
    else:
        raise ValueError("the event has no duration")
    if not 0 <= value < 2**62:
        raise ValueError(f"the duration is {value}")
    return round(value)


def _count(arguments: dict[str, Any], *keys: str) -> int | None:
    for key in keys:
        value = arguments.get(key)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
            return whole(int(value))
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return whole(value)
    return None


def _id(value: object) -> object:
    return value if isinstance(value, (int, str, float)) else None


FORMAT = Format("xla-trace", "XLA profile (Chrome trace of JAX)", matches, read)
