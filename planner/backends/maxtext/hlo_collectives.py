"""The collectives in a compiled HLO module: operation, mesh axes, elements, how often; only text is read.

XLA's CPU compiler writes a reduce-scatter as an all-reduce whose every use takes a slice of it; that is told apart
here, because TPU and GPU compilers fuse the two.  Elements follow the usual convention: all-reduce the tensor,
all-gather its output, reduce-scatter its input, all-to-all what a device holds.

A collective that is there twice for the same operation of the program, with the same operands and group, counts once;
``repeated`` says how many such twins there are: XLA 0.10 writes one group in two notations, and its elimination of
common expressions then misses that they are one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

_OPERATIONS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
_LINE = re.compile(r"^\s*(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([a-z][\w\-]*)\((.*)$")
_ARRAY = re.compile(r"[a-z]\w*\[([\d,]*)\]")
_NAME = re.compile(r"%([\w.\-]+)")
_MESH = re.compile(r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\(\[([\d,]+)\](?:T\(([\d,]+)\))?\))? \{([^}]*)\}")
_IOTA = re.compile(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_LISTS = re.compile(r"replica_groups=\{(\{[\d,{}]*\})\}")
_PASSES = ("bitcast", "copy", "convert", "transpose", "reshape", "get-tuple-element", "tuple")


class Instruction:
    """One line of a computation."""

    def __init__(self, name: str, shape: str, operation: str, rest: str) -> None:
        self.name, self.shape, self.operation, self.rest = name, shape, operation, rest
        self.operands = _NAME.findall(rest.partition(")")[0])
        called = re.search(r"calls=%?([\w.\-]+)", rest)
        self.called = called[1] if called else ""

    def arrays(self) -> list[int]:
        """Elements of each array of the result."""
        return [math.prod(int(size) for size in dims.split(",") if size) for dims in _ARRAY.findall(self.shape)]


def collectives(text: str, axes: dict[str, int]) -> list[dict[str, Any]]:
    """``{"operation", "axes", "group_size", "elements", "calls"}`` for every kind, elements of all calls together."""
    computations = _computations(text)
    elements: Counter[tuple[str, tuple[str, ...]]] = Counter()
    calls: Counter[tuple[str, tuple[str, ...]]] = Counter()
    repeated: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for body in computations.values():
        seen: set[tuple[Any, ...]] = set()
        for each in body.values():
            operation = each.operation.removesuffix("-start")
            if operation not in _OPERATIONS:
                continue
            along = _axes(each.rest, axes)
            twin = (operation, along, each.shape, tuple(each.operands), _origin(each.rest))
            if twin in seen:
                repeated[operation.replace("-", "_"), along] += 1
                continue
            seen.add(twin)
            for index, size in enumerate(each.arrays()):
                sliced = operation == "all-reduce" and _only_sliced(each, index, body, computations)
                key = ("reduce_scatter" if sliced else operation.replace("-", "_"), along)
                elements[key] += size
                calls[key] += 1
    return [
        {
            "operation": operation,
            "axes": list(along),
            "group_size": math.prod(axes[axis] for axis in along),
            "elements": elements[operation, along],
            "arrays": calls[operation, along],
            "repeated": repeated[operation, along],
        }
        for operation, along in sorted(elements)
    ]


def _origin(rest: str) -> str:
    """The operation of the program that an instruction comes from."""
    found = re.search(r'op_name="([^"]*)"', rest)
    return found[1] if found else ""


def _computations(text: str) -> dict[str, dict[str, Instruction]]:
    found: dict[str, dict[str, Instruction]] = {}
    name = ""
    for line in text.splitlines():
        header = re.match(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$", line)
        if header and " = " not in line:
            name = header[1]
            found[name] = {}
        elif name and (match := _LINE.match(line)):
            found[name][match[1]] = Instruction(*match.groups())
    return found


def _only_sliced(
    source: Instruction, index: int, body: dict[str, Instruction], computations: dict[str, dict[str, Instruction]]
) -> bool:
    """Whether every use of one result of ``source`` takes a slice of it."""
    several = source.shape.startswith("(")
    users: list[Instruction] = [each for each in body.values() if source.name in each.operands]
    if several:
        users = [
            each
            for each in users
            if each.operation != "get-tuple-element" or re.search(rf"index={index}\b", each.rest) is not None
        ]
    return bool(users) and all(_slices(source, user, body, computations) for user in users)


def _slices(
    source: Instruction,
    user: Instruction,
    body: dict[str, Instruction],
    computations: dict[str, dict[str, Instruction]],
) -> bool:
    if user.operation == "dynamic-slice":
        return bool(user.operands) and user.operands[0] == str(source.name)
    if user.operation in _PASSES:
        return _only_sliced(user, 0, body, computations)
    inside = computations.get(user.called, {})
    if user.operation != "fusion" or not inside:
        return False
    positions = [position for position, name in enumerate(user.operands) if name == source.name]
    parameters = [
        each
        for each in inside.values()
        if each.operation == "parameter" and int(each.rest.partition(")")[0]) in positions
    ]
    return bool(parameters) and all(_only_sliced(each, 0, inside, computations) for each in parameters)


def _axes(rest: str, axes: dict[str, int]) -> tuple[str, ...]:
    """Mesh axes along which the members of the first group differ."""
    members = _first_group(rest, math.prod(axes.values()))
    places = [_coordinates(member, axes) for member in members]
    return tuple(axis for axis in axes if len({place[axis] for place in places}) > 1)


def _coordinates(device: int, axes: dict[str, int]) -> dict[str, int]:
    place = {}
    for axis, size in reversed(axes.items()):
        device, place[axis] = divmod(device, size)
    return place


def _first_group(rest: str, world: int) -> list[int]:
    """Devices of the first group, in any of XLA's three ways to write groups."""
    if match := _MESH.search(rest):
        sizes = [tuple(part.split("=")) for part in match[1].split(",")]
        members = _mesh_group([(name, int(size)) for name, size in sizes], set(match[4].split(",")))
        if not match[2]:
            return members
        devices = _iota(match[2], match[3])
        return [devices[member] for member in members]
    if match := _IOTA.search(rest):
        shape = [int(size) for size in match[1].split(",")]
        return _iota(match[2], match[3])[: shape[-1]]
    if match := _LISTS.search(rest):
        return [int(member) for member in match[1].strip("{}").partition("}")[0].split(",")]
    if pairs := re.search(r"source_target_pairs=\{\{(\d+),(\d+)\}", rest):
        return [int(pairs[1]), int(pairs[2])]
    return list(range(world))


def _mesh_group(sizes: list[tuple[str, int]], wanted: set[str]) -> list[int]:
    members, stride = [0], 1
    for name, size in reversed(sizes):
        if name in wanted:
            members = [member + stride * step for step in range(size) for member in members]
        stride *= size
    return members


def _iota(sizes: str, transposed: str | None) -> list[int]:
    """``arange(prod(sizes)).reshape(sizes).transpose(transposed).ravel()``."""
    dims = [int(size) for size in sizes.split(",")]
    order = [int(axis) for axis in transposed.split(",")] if transposed else list(range(len(dims)))
    strides = [math.prod(dims[axis + 1 :]) for axis in range(len(dims))]
    values = [0]
    for axis in order:
        values = [value + strides[axis] * step for value in values for step in range(dims[axis])]
    return values
