"""The trace of one rank: its events sorted into operators, copies, collectives, steps and device use.

After this only sums and the collectives of the rank stay in memory, so that many ranks can be read one by one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from math import prod

import msgspec

from profiles.importers.kineto.call_tree import CallTree, Thread, thread_of
from profiles.importers.kineto.collectives import CollectiveCall, GroupKey, collective_call, is_collective
from profiles.importers.kineto.copies import Copies
from profiles.importers.kineto.events import Document, Event
from profiles.importers.kineto.operators import OperatorSamples, OperatorTimes
from profiles.importers.kineto.steps import Step, Steps
from profiles.importers.kineto.timeline import DeviceUse, Timeline
from profiles.importing.imported import Imported
from profiles.importing.torch_dtypes import torch_dtype, torch_element_bytes

_HOST_OPERATORS = frozenset(["cpu_op", "Operator", "operator"])
_KERNELS = frozenset(["kernel", "Kernel", "concurrent_kernel"])
_COPIES = frozenset(["gpu_memcpy", "Memcpy", "memcpy"])
_MEMSETS = frozenset(["gpu_memset", "Memset", "memset"])
_MAX_BAD = 1000
_HOST_COLLECTIVE = re.compile(r"^gloo:(all_reduce|allreduce|broadcast|reduce_scatter|reduce)$")
_STEP_NAME = "ProfilerStep"
_OTHER_DEVICES = ("mtia_", "hpu_", "privateuse1_", "glow_")
"""Categories of devices whose kernels are not read: their host calls are no operator times either."""
_BEFORE_KINETO = {"CPU functions": "cpu_op", "CUDA functions": "kernel"}


@dataclass(slots=True)
class RankTrace:
    """One rank's findings that cannot be summed up before all ranks are read."""

    rank: int | None
    collectives: list[CollectiveCall] = field(default_factory=list)
    host_collectives: list[CollectiveCall] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    use: DeviceUse | None = None
    num_events: int = 0
    num_kernels: int = 0
    num_attributed: int = 0
    kernels_missing: bool = False
    has_shapes: bool = False
    has_operators: bool = False
    on_host: bool = False
    overhead_fraction: float = 0.0
    kernels_of_device: Counter[int] = field(default_factory=Counter)
    first_ns: int | None = None


class EventReader:
    """State while the events of one document pass by."""

    def __init__(self, document: Document, imported: Imported, prefix: str) -> None:
        self.base_ns = document.base_time_ns if _is_whole(document.base_time_ns) else 0
        self.imported = imported
        self.prefix = prefix
        self.tree = CallTree()
        self.steps = Steps()
        self.timeline = Timeline()
        self.kernels: list[tuple[Event, int, int, int]] = []
        self.copies: list[tuple[Event, int, int, int]] = []
        self.runtime: dict[object, tuple[Thread, int]] = {}
        self.launches = 0
        self.is_hip = False
        self.bad = 0
        self.first_ns: int | None = None
        self.last_ns = 0
        self.has_shapes = False

    def take(self, event: Event, row: int) -> None:
        """Sort one event in."""
        category = event.cat
        if event.ph in ("i", "I"):
            if event.name == "[memory]" and _is_number(event.ts):
                self.steps.add_memory(event.args, self._ns(event.ts))
            return
        if event.ph != "X":
            return
        if not isinstance(category, str):
            category = _BEFORE_KINETO.get(str(event.pid), "")
        sort = _SORT.get(category)
        if sort is None:
            self.launches += category.startswith(_OTHER_DEVICES)
            if not category.endswith(("_runtime", "_driver")) and category != "Runtime":
                return
            sort = "runtime"
        times = self._times(event, row)
        if times is not None:
            self._sort(event, sort, times, row)

    def _sort(self, event: Event, sort: str, times: tuple[int, int], row: int) -> None:
        start, end = times
        if sort == "overhead":
            self.timeline.overhead_ns += end - start
            return
        self.first_ns = start if self.first_ns is None or start < self.first_ns else self.first_ns
        self.last_ns = max(self.last_ns, end)
        if sort == "host":
            is_annotation = event.cat == "user_annotation" or str(event.name).startswith(_STEP_NAME)
            self.tree.add(event, start, end, row, is_annotation)
            if is_annotation:
                self.steps.add(str(event.name), start, end, row)
            elif event.args is not None and (len(bytes(event.args.dims)) > 2 or len(bytes(event.args.dims_old)) > 2):
                self.has_shapes = True
        elif sort == "kernel":
            self.kernels.append((event, start, end, row))
        elif sort == "copy":
            self.copies.append((event, start, end, row))
        elif sort == "memset":
            self.timeline.add("copy", start, end)
            self.imported.skip("memsets")
        else:
            self.launches += "Launch" in str(event.name)
            self.is_hip = self.is_hip or str(event.name).startswith("hip")
            correlation = event.args.correlation if event.args is not None else None
            if isinstance(correlation, (int, str)):
                self.runtime[correlation] = (thread_of(event), start)

    def _times(self, event: Event, row: int) -> tuple[int, int] | None:
        """Start and end in ns; a bad row where they are no times."""
        if not (_is_number(event.ts) and _is_number(event.dur)) or event.ts < 0 or event.dur < 0:
            self.bad += 1
            if self.bad <= _MAX_BAD:
                self.imported.bad(
                    f"{self.prefix}traceEvents/{row}",
                    f"ts is {event.ts!r:.40}, dur is {event.dur!r:.40}: not a time from 0",
                    "leave the event out",
                )
            return None
        start = self._ns(event.ts)
        return start, start + round(event.dur * 1000)

    def _ns(self, microseconds: float) -> int:
        return self.base_ns + round(microseconds * 1000)


_SORT: dict[str, str] = {
    **dict.fromkeys((*_HOST_OPERATORS, "user_annotation"), "host"),
    **dict.fromkeys(_KERNELS, "kernel"),
    **dict.fromkeys(_COPIES, "copy"),
    **dict.fromkeys(_MEMSETS, "memset"),
    "overhead": "overhead",
}


def read_rank(
    document: Document, samples: OperatorSamples, copies: Copies, imported: Imported, rank: int | None, host_run: bool
) -> RankTrace:
    """Everything of one trace.  ``host_run``: the user says that it ran on the CPU although devices were present."""
    result = RankTrace(rank, num_events=len(document.events))
    reader = EventReader(document, imported, f"rank {rank}: " if rank else "")
    for row, event in enumerate(document.events):
        reader.take(event, row)
    document.events = []
    reader.tree.nest()
    times = OperatorTimes(reader.tree, samples)
    _read_kernels(reader, times, result, imported)
    _read_copies(reader, copies, imported)
    result.num_kernels = len(reader.kernels)
    result.has_operators = any(not call.is_annotation for call in reader.tree.calls)
    if not reader.kernels and not reader.copies:
        has_device = bool(document.device_properties) and not host_run
        result.kernels_missing = reader.launches > 0 or has_device
        result.on_host = not result.kernels_missing
        if result.on_host:
            times.add_host_calls()
            result.host_collectives = _host_collectives(reader.tree)
    times.finish()
    result.steps = reader.steps.finish()
    result.use = reader.timeline.use()
    result.has_shapes = reader.has_shapes
    result.first_ns = reader.first_ns
    whole = reader.last_ns - reader.first_ns if reader.first_ns is not None else 0
    result.overhead_fraction = reader.timeline.overhead_ns / whole if whole > 0 else 0.0
    return result


def _read_kernels(reader: EventReader, times: OperatorTimes, result: RankTrace, imported: Imported) -> None:
    tree = reader.tree
    for event, start, end, row in reader.kernels:
        name = event.name if isinstance(event.name, str) else "kernel"
        arguments = event.args
        launcher = launcher_of(event, reader)
        device = _device_of(event)
        if device is not None:
            result.kernels_of_device[device] += 1
        if is_collective(name, arguments):
            reader.timeline.add("communication", start, end)
            call = tree.calls[launcher].arguments if launcher >= 0 else None
            found = collective_call(name, arguments, call, (start, end), row)
            if isinstance(found, str):
                imported.skip(found)
            elif end > start:
                # HIP counts its grid in threads or in blocks, by the call that launched: no number of channels.
                result.collectives.append(replace(found, num_channels=None) if reader.is_hip else found)
            continue
        reader.timeline.add("compute", start, end)
        result.num_attributed += launcher >= 0
        if end > start:
            times.add_kernel(name, launcher, end - start, row)
        else:
            imported.skip("kernels that took no time")


def _read_copies(reader: EventReader, copies: Copies, imported: Imported) -> None:
    for event, start, end, row in reader.copies:
        reader.timeline.add("copy", start, end)
        refused = copies.add(str(event.name), event.args, _device_of(event), end - start, row)
        if refused is not None:
            imported.skip(refused)


def _device_of(event: Event) -> int | None:
    """Number of the device; the first ROCm traces have it as the process only."""
    device = event.args.device if event.args is not None else None
    device = event.pid if device is None else device
    return device if isinstance(device, int) and not isinstance(device, bool) and 0 <= device < 4096 else None


def launcher_of(event: Event, reader: EventReader) -> int:
    """The host call that launched a kernel; -1 if the trace does not tell."""
    arguments = event.args
    if arguments is None:
        return -1
    link = arguments.link
    if isinstance(link, (int, str)) and link in reader.tree.by_link:
        return reader.tree.by_link[link]
    runtime = reader.runtime.get(arguments.correlation) if isinstance(arguments.correlation, (int, str)) else None
    return reader.tree.enclosing(*runtime) if runtime is not None else -1


def _host_collectives(tree: CallTree) -> list[CollectiveCall]:
    """Collectives of the gloo backend: annotations with the dimensions of their tensor; the group is not told."""
    found = []
    for call in tree.calls:
        match = _HOST_COLLECTIVE.match(call.name) if call.is_annotation else None
        if match is None or call.arguments is None or call.end_ns <= call.start_ns:
            continue
        try:
            dims = msgspec.json.decode(bytes(call.arguments.dims))
            types = msgspec.json.decode(bytes(call.arguments.types))
            element = torch_element_bytes(types[0])
            size = prod(dims[0]) * (element or 0)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError, IndexError, KeyError):
            continue
        if not isinstance(size, int) or not 0 < size < 2**62:
            continue
        name = match.group(1).replace("allreduce", "all_reduce")
        found.append(
            CollectiveCall(
                operation=name,  # type: ignore[arg-type]
                size_bytes=size,
                dtype=torch_dtype(types[0]),
                group=GroupKey((), "", None),
                uneven=False,
                sequence=None,
                peers=None,
                num_channels=None,
                start_ns=call.start_ns,
                end_ns=call.end_ns,
                row=call.row,
                called=call.name,
            )
        )
    return found


def _is_number(value: object) -> bool:
    return (
        isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and abs(value) < 4e15
    )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 4 * 10**18
