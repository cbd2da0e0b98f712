"""The activities of each device: operations, copies, modules and steps of the planes of one XSpace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from profiles.importers.xla_xplane.space import Described, Event, Line, Plane, Stat
from profiles.importing.copy_links import copy_link
from profiles.importing.duration_statistics import Durations
from profiles.importing.imported import Batch, Imported
from profiles.importing.xla_operations import PICOSECONDS_PER_S, Operation, XlaOperations
from profiles.observations.records import IterationObservation, LinkKind, OperatorObservation
from profiles.observations.timing import Timing

_MAX_EVENTS = 50_000_000
COPY_KINDS: dict[str, LinkKind] = {
    "MemcpyH2D": "host_to_device", "MemcpyD2H": "device_to_host", "MemcpyD2D": "device_memory",
    "MemcpyP2P": "device_to_device", "MemcpyH2H": "host_memory",
}  # fmt: skip
_SIZE = re.compile(r"\bsize:(\d{1,18})\b")
_MODULE_ID = re.compile(r"\(\d+\)\Z")
STEP_NAME = re.compile(r"(?:\D*\s)?(\d{1,15})")
_LONGEST_NAME = 200

Links = dict[tuple[LinkKind, int, int], Durations]


def read_planes(planes: Sequence[Plane], batch: Batch, imported: Imported) -> None:
    """Add everything that ran on devices, or on the host where there are none.  Raises WireError."""
    operations = XlaOperations()
    modules: dict[str, Durations] = {}
    links: Links = {}
    devices = [plane for plane in planes if plane.device is not None]
    for plane in devices:
        kind, number = plane.device or ("", 0)
        for line in plane.lines:
            if line.name == "XLA Modules":
                _read_modules(plane, line, modules)
            elif line.name == "Steps" and kind == "TPU":
                _read_steps(plane, line, number, len(devices), batch, imported)
        for line in _operation_lines(plane):
            _read_line(plane, line, operations, links, imported, number, host=False)
    if not operations.groups:
        _read_hosts(planes, operations, links, imported)
    operations.store(batch, imported)
    store_modules(modules, batch, imported)
    store_links(links, batch)


def _read_hosts(planes: Sequence[Plane], operations: XlaOperations, links: Links, imported: Imported) -> None:
    for plane in planes:
        if plane.name.startswith("/host:CPU"):
            for line in plane.lines:
                _read_line(plane, line, operations, links, imported, 0, host=True)
    if operations.groups:
        imported.flag("host-operations", "no device has operations; those that ran on the CPU were read")


def _operation_lines(plane: Plane) -> list[Line]:
    """Lines with the work itself: instructions of a TPU, streams of a GPU."""
    streams = [line for line in plane.lines if line.name.startswith("Stream #")]
    return streams or [line for line in plane.lines if line.name == "XLA Ops"]


def _events(line: Line, imported: Imported) -> Iterator[tuple[Event, int]]:
    for position, event in enumerate(line.events()):
        if position >= _MAX_EVENTS:
            imported.skip(f"events beyond {_MAX_EVENTS:,} on one line")
            return
        if event.duration_ps is None:
            imported.skip("aggregated events, which have no duration of their own")
        elif not 0 <= event.duration_ps < 2**62:
            imported.bad(f"line {line.name[:40]!r}, event {position}", "the duration is negative or absurd")
        else:
            yield event, event.duration_ps


def _read_line(
    plane: Plane, line: Line, operations: XlaOperations, links: Links, imported: Imported, device: int, *, host: bool
) -> None:
    kinds: dict[int, Described] = {}
    for event, duration_ps in _events(line, imported):
        if event.kind not in kinds:
            kinds[event.kind] = plane.described(event.kind)
        described = kinds[event.kind]
        stats = plane.named(event.stats)
        copy = COPY_KINDS.get(described.name)
        if copy is not None:
            add_copy(copy, stats, device, duration_ps, links, imported)
            continue
        if host and "hlo_op" not in stats:
            continue
        operation = _operation(described, stats, kernel=line.name.startswith("Stream #"))
        if operation.name:
            operations.add(operation, duration_ps, imported)
        else:
            imported.skip("events without a name")


def _operation(described: Described, stats: dict[str, Stat], *, kernel: bool) -> Operation:
    both = {**described.stats, **stats}
    is_text = described.name.startswith("%") and " = " in described.name
    hlo = str(both.get("hlo_op", ""))
    name = (described.display_name or hlo) if is_text else described.name
    if is_text and not name:
        name = described.name.partition(" = ")[0]
    return Operation(
        name=name.lstrip("%"),
        module=module_name(str(both.get("hlo_module", ""))),
        category=str(both.get("hlo_category", "")),
        text=described.name if is_text else str(both.get("long_name", "")),
        flops=whole(both.get("flops")),
        bytes_accessed=whole(both.get("bytes_accessed")),
        kernel=kernel,
        source=hlo if kernel else "",
    )


def add_copy(
    kind: LinkKind, stats: dict[str, Stat], device: int, duration_ps: int, links: Links, imported: Imported
) -> None:
    """Add one copy whose size stands in ``memcpy_details``."""
    match = _SIZE.search(str(stats.get("memcpy_details", "")))
    if match is None or int(match.group(1)) == 0 or duration_ps == 0:
        imported.skip("copies without a size or a duration")
        return
    links.setdefault((kind, device, int(match.group(1))), Durations()).add(duration_ps)


def _read_modules(plane: Plane, line: Line, modules: dict[str, Durations]) -> None:
    for event in line.events():
        if event.duration_ps is not None and 0 < event.duration_ps < 2**62:
            name = module_name(plane.described(event.kind).name)
            modules.setdefault(name, Durations()).add(event.duration_ps)


def _read_steps(plane: Plane, line: Line, device: int, num_devices: int, batch: Batch, imported: Imported) -> None:
    for event, duration_ps in _events(line, imported):
        match = STEP_NAME.fullmatch(plane.described(event.kind).name)
        if match is None or duration_ps == 0:
            imported.skip("steps without a number or a duration")
            continue
        batch.iterations.append(
            IterationObservation(
                timing=Timing(duration_ps / PICOSECONDS_PER_S, statistic="single", num_samples=1),
                iteration=int(match.group(1)),
                num_devices=num_devices,
                detail={"device": device},
            )
        )


def store_modules(modules: dict[str, Durations], batch: Batch, imported: Imported) -> None:
    """Add one observation for each compiled program."""
    for name, durations in modules.items():
        if name:
            timing = durations.timing(PICOSECONDS_PER_S)
            batch.operators.append(OperatorObservation("module", name[:_LONGEST_NAME], timing))
        else:
            imported.skip("modules without a name", len(durations))


def store_links(links: Links, batch: Batch) -> None:
    """Add one observation for each direction, device and size."""
    for (kind, device, size), durations in links.items():
        source = "host:0" if kind in ("host_to_device", "host_memory") else f"device:{device}"
        target = "host:0" if kind in ("device_to_host", "host_memory") else f"device:{device}"
        batch.links.append(copy_link(kind, (source, target), size, durations.timing(PICOSECONDS_PER_S)))


def module_name(text: str) -> str:
    """``jit_train_step(1234567)`` is ``jit_train_step``: the number differs from run to run."""
    return _MODULE_ID.sub("", text)


def whole(value: Stat | None) -> int | None:
    """A positive whole number; None for anything else."""
    if isinstance(value, float):
        value = int(value) if 0 <= value < 2**62 else None
    return value if isinstance(value, int) and 0 < value < 2**62 else None
