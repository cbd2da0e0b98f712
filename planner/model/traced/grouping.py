"""Point-wise operations as one fused kernel would run them, and what is kept between such groups.

Operations that only feed each other are one group; all that a norm module runs is one.  A group reads what others made
and writes what others read.  What autograd keeps inside a group is left out, for a fused kernel makes it again: the
same accounting as in ``planner.model.operators``, to which back-ends add what their unfused kernels keep.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from planner.model.traced.records import ACTIVATIONS, Record, Trace

_ROTATION = 3
"""Fewest operations of a rotation of queries or keys: two products and their sum."""


@dataclass(slots=True)
class Group:
    """One operator of one segment at one length; sizes of the whole sequence."""

    op_class: str
    name: str
    segment: int
    read: int = 0
    written: int = 0
    saved: int = 0
    rows: int = 0
    depth: int = 0
    columns: int = 0
    experts: int = 0
    heads: tuple[int, int, int, int] = (0, 0, 0, 0)
    window: int | None = None
    causal: bool = True
    flops: int = 0
    parameters: list[int] = field(default_factory=list)
    learned: int = 0
    """Elements of those parameters that it meets first."""


@dataclass(slots=True)
class _Flow:
    """Who makes and who reads every value; a tensor that is written in place is another value after it."""

    inputs: list[dict[int, int]]
    outputs: list[int]
    saves: list[dict[int, int]]
    readers: dict[int, list[int]]
    maker: dict[int, int]


def grouped(trace: Trace, segments: Sequence[int], names: Sequence[str]) -> list[Group]:
    """The operators of a trace in order.

    ``segments``: of each record, 0 the entry, 1 ... the layers, the last the exit; ``names``: its path within.
    """
    flow, records = _flow(trace.records), trace.records
    cluster = _clusters(records, segments, flow)
    members: dict[int, list[int]] = defaultdict(list)
    for index, number in enumerate(cluster):
        members[number].append(index)
    order = sorted(members, key=lambda number: members[number][-1])
    found: dict[int, Group] = {}
    for number in order:
        made = _group(records, members[number], cluster, flow)
        if made is not None:
            made.segment, made.name = segments[members[number][-1]], names[members[number][-1]]
            found[number] = made
    _keep(found, cluster, segments, flow)
    return _merged([found[number] for number in order if number in found])


def _flow(records: Sequence[Record]) -> _Flow:
    flow = _Flow([], [], [], defaultdict(list), {})
    present: dict[int, int] = {}
    for index, record in enumerate(records):
        inputs = {present.setdefault(tensor, -tensor): size for tensor, size in record.inputs.items()}
        for value in inputs:
            flow.readers[value].append(index)
        before = {tensor: present[tensor] for tensor in record.inputs}
        present[record.output] = index + 1
        flow.maker[index + 1] = index
        flow.inputs.append(inputs)
        flow.outputs.append(index + 1)
        flow.saves.append({before.get(tensor, present.get(tensor, -1)): size for tensor, size in record.saves.items()})
    return flow


def _clusters(records: Sequence[Record], segments: Sequence[int], flow: _Flow) -> list[int]:
    """The number of each record's group: that of one of its records."""
    cluster = list(range(len(records)))
    for index in range(1, len(records)):  # what a norm module runs in one go
        if records[index].norm and records[index].norm == records[index - 1].norm:
            cluster[index] = cluster[index - 1]
    members = {index: [index] for index in range(len(records))}
    free = [index for index, each in enumerate(records) if each.kind == "pointwise" and not each.norm]
    joinable, changed = set(free), True
    while changed:
        changed = False
        for index in reversed(free):
            readers = flow.readers.get(flow.outputs[index], [])
            targets = {cluster[reader] for reader in readers}
            if len(targets) != 1 or cluster[index] in targets:
                continue
            if readers[0] in joinable and segments[readers[0]] == segments[index]:
                target = targets.pop()
                for each in members.pop(cluster[index]):
                    cluster[each] = target
                    members[target].append(each)
                changed = True
    return cluster


def _group(records: Sequence[Record], members: list[int], cluster: Sequence[int], flow: _Flow) -> Group | None:
    last = records[members[-1]]
    made = Group("", "", 0, parameters=[number for index in members for number in records[index].parameters])
    inside = {flow.outputs[index] for index in members}
    reads: dict[int, int] = {}
    for index in members:
        for value, size in flow.inputs[index].items():
            if value not in inside:
                # Two halves of one tensor are all of it; a tensor that is read twice is read once.
                maker = flow.maker.get(value)
                whole = records[maker].written if maker is not None else size
                reads[value] = min(reads.get(value, 0) + size, max(whole, size))
    own = cluster[members[0]]
    left = [
        index
        for index in members
        if any(cluster[reader] != own for reader in flow.readers.get(flow.outputs[index], []))
    ] or members[-1:]
    made.read, made.written = sum(reads.values()), sum(records[index].written for index in left)
    if last.kind == "pointwise":
        if not any(value > 0 for value in reads) and not made.parameters:
            return None  # made of nothing that a pass computed: positions, masks, constants
        made.op_class = _class_of(records, members, left, flow)
        return made
    made.op_class = "embedding" if last.kind == "lookup" else last.kind
    if last.kind == "lookup":
        made.read = last.written
    made.rows, made.depth, made.columns, made.experts = last.rows, last.depth, last.columns, last.experts
    made.heads, made.window, made.causal, made.flops = last.heads, last.window, last.causal, last.flops
    return made


def _class_of(records: Sequence[Record], members: list[int], left: list[int], flow: _Flow) -> str:
    operations = {records[index].operation for index in members}
    if records[members[-1]].norm:
        return "norm"
    readers = {records[reader].kind for index in left for reader in flow.readers.get(flow.outputs[index], [])}
    if readers == {"attention"} and len(members) >= _ROTATION:
        return "rope"
    if operations & ACTIVATIONS:
        return "activation"
    return "residual" if operations == {"add"} else "gate"


def _keep(found: dict[int, Group], cluster: Sequence[int], segments: Sequence[int], flow: _Flow) -> None:
    """Give each group what it keeps of what others made; a table that several layers read is kept by its maker."""
    for index, saves in enumerate(flow.saves):
        for value, size in saves.items():
            maker = flow.maker.get(value)
            if maker is None or cluster[maker] == cluster[index] or cluster[maker] not in found:
                continue
            layers = {segments[reader] for reader in flow.readers[value]}
            shared = segments[maker] == 0 and len(layers - {0}) > 1
            keeper = cluster[maker] if shared else cluster[index]
            if keeper in found:
                found[keeper].saved += size


def _merged(groups: list[Group]) -> list[Group]:
    """Rotations of queries and keys are one operator."""
    kept: list[Group] = []
    for each in groups:
        before = kept[-1] if kept else None
        if before is not None and each.op_class == before.op_class == "rope" and each.segment == before.segment:
            before.read, before.written = before.read + each.read, before.written + each.written
            before.saved += each.saved
        else:
            kept.append(each)
    return kept
