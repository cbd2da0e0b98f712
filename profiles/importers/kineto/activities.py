"""What a rank did in each of its steps: computing by operator class, collectives with their groups, copies.

The other readers of this package sum up operators for profiles; this one keeps the times, so that it can be told what
hid behind what.  On a device an activity is a kernel or a copy.  On a CPU, where the operators themselves compute, it
is the outermost ``aten::`` call of a thread, and collectives are gloo's annotations, which name no group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Literal

import msgspec

from profiles.importers.kineto.archive import trace_texts
from profiles.importers.kineto.call_tree import Call, CallTree, optimizer_name
from profiles.importers.kineto.collectives import CollectiveCall, GroupKey, collective_call, is_collective
from profiles.importers.kineto.events import Arguments, documents
from profiles.importers.kineto.machine import machine_of
from profiles.importers.kineto.rank_trace import EventReader, launcher_of
from profiles.importers.kineto.steps import Step
from profiles.importing.collective_names import operation_of
from profiles.importing.imported import Imported
from profiles.importing.kernel_names import collective_operation, kernel_class
from profiles.importing.source_file import SourceFile
from profiles.importing.torch_dtypes import torch_element_bytes
from profiles.importing.torch_operators import operator_rule, point_wise

NO_GROUP = GroupKey((), "", None)
OPTIMIZER = "optimizer"
_HOST_COLLECTIVE = re.compile(r"^gloo:(\w{1,40})$")


@dataclass(frozen=True, slots=True)
class Activity:
    """One kernel, copy or collective; times in ns on the rank's own clock.

    ``name``: the operator class (``matmul``), or the operation of a collective.  ``size_bytes``: what the rank sends.
    """

    kind: Literal["compute", "communication", "copy"]
    name: str
    start_ns: int
    end_ns: int
    row: int
    group: GroupKey = NO_GROUP
    size_bytes: int = 0


@dataclass(slots=True)
class RankActivities:
    """The trace of one rank: its steps (the first one left out, where there are others) and what it did.

    No activities: only the host was recorded of a run on devices.
    """

    file_name: str
    rank: int | None
    world_size: int | None
    device: str
    on_host: bool
    steps: list[Step]
    activities: list[Activity] = field(default_factory=list)


def read_activities(file: SourceFile) -> Iterator[RankActivities]:
    """One for each trace in the file.  Raises DocumentInvalid for a broken file."""
    imported = Imported(tool="pytorch-profiler")
    for name, where, content in trace_texts(file):
        for document in documents(where, content, imported):
            machine = machine_of(document, name)
            reader = EventReader(document, imported, "")
            for row, event in enumerate(document.events):
                reader.take(event, row)
            document.events = []
            reader.tree.nest()
            steps = reader.steps.finish()
            on_host = not reader.kernels and not reader.copies
            # Host calls that launched kernels which were not recorded say nothing about computing.
            seen_devices = bool(document.device_properties) and machine.backend != "gloo"
            recorded = not on_host or not (reader.launches or seen_devices)
            found = _on_host(reader.tree) if on_host else _on_device(reader)
            yield RankActivities(
                file_name=file.name,
                rank=machine.rank,
                world_size=machine.world_size,
                device=machine.devices[0] if machine.devices else "",
                on_host=on_host,
                steps=steps[1:] if len(steps) > 1 else steps,
                activities=sorted(found, key=lambda each: each.start_ns) if recorded else [],
            )


def _on_device(reader: EventReader) -> Iterator[Activity]:
    tree = reader.tree
    for event, start, end, row in reader.kernels:
        name = event.name if isinstance(event.name, str) else "kernel"
        launcher = launcher_of(event, reader)
        if is_collective(name, event.args):
            call = tree.calls[launcher].arguments if launcher >= 0 else None
            found = collective_call(name, event.args, call, (start, end), row)
            yield _collective(name, found, event.args or call, (start, end), row)
        else:
            in_optimizer = launcher >= 0 and tree.context(tree.ancestors(launcher)).optimizer >= 0
            yield Activity("compute", OPTIMIZER if in_optimizer else kernel_class(name), start, end, row)
    for _, start, end, row in reader.copies:
        yield Activity("copy", "copy", start, end, row)


def _collective(
    name: str, found: CollectiveCall | str, arguments: Arguments | None, times: tuple[int, int], row: int
) -> Activity:
    """A communication kernel; one without PyTorch's metadata is known by its name alone."""
    if isinstance(found, str):
        return Activity("communication", collective_operation(name), *times, row)
    sent = arguments.in_elements if arguments is not None else None
    element = torch_element_bytes(arguments.dtype) if arguments is not None else None
    size = found.size_bytes
    if isinstance(sent, int) and element is not None and found.operation == "all_to_all":
        size = sent * element
    return Activity("communication", found.operation, *times, row, found.group, size)


def _on_host(tree: CallTree) -> Iterator[Activity]:
    order = sorted(range(len(tree.calls)), key=lambda at: (tree.calls[at].start_ns, -tree.calls[at].end_ns))
    counted, of_optimizer = set[int](), set[int]()
    for index in order:
        call = tree.calls[index]
        if call.parent in of_optimizer or optimizer_name(call.name) is not None:
            of_optimizer.add(index)
        if call.is_annotation:
            if match := _HOST_COLLECTIVE.match(call.name):
                operation = operation_of(match.group(1)) or "unknown"
                times = (call.start_ns, call.end_ns)
                yield Activity("communication", operation, *times, call.row, size_bytes=_sent_bytes(call))
            continue
        if call.parent in counted:
            counted.add(index)
        elif call.name.startswith("aten::"):
            counted.add(index)
            name = OPTIMIZER if index in of_optimizer else _class_of(call.name)
            yield Activity("compute", name, call.start_ns, call.end_ns, call.row)


def _class_of(name: str) -> str:
    rule = operator_rule(name)
    if rule is not None:
        return rule.operator
    return "elementwise" if point_wise(name) else "other"


def _sent_bytes(call: Call) -> int:
    """Bytes of the input tensors; 0 where the annotation does not say."""
    if call.arguments is None:
        return 0
    try:
        dims = msgspec.json.decode(bytes(call.arguments.dims))
        types = msgspec.json.decode(bytes(call.arguments.types))
        return sum(prod(each) * (torch_element_bytes(kind) or 0) for each, kind in zip(dims, types, strict=True))
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, ValueError):
        return 0
