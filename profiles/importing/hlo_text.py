"""One HLO instruction: its operation, sizes and groups, from the text that XLA prints.

``%all-reduce.2 = bf16[1024,512]{1,0:T(8,128)} all-reduce(...), replica_groups={{0,1},{2,3}}``.  Groups are written as
lists of lists or as ``[2,4]<=[8]`` (two groups of four).  Newer text leaves out the shapes of operands: then a product
has no known inner size and no shape is given.
Source: openxla/xla docs (HLO text), xla/hlo/parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from profiles.importing.dtype_names import dtype_of
from profiles.observations.records import CollectiveOperation

_BITS = {
    "pred": 8, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "f8e4m3": 8, "f8e4m3fn": 8, "f8e5m2": 8, "f8e4m3b11fnuz": 8,
    "f8e4m3fnuz": 8, "f8e5m2fnuz": 8, "s16": 16, "u16": 16, "f16": 16, "bf16": 16, "s32": 32, "u32": 32, "f32": 32,
    "s64": 64, "u64": 64, "f64": 64, "c64": 64, "c128": 128,
}  # fmt: skip
_SHAPE = re.compile(r"\b([a-z]+\d*(?:e\dm\d\w*)?)\[([\d,<= ]*)\]")
_OPCODE = re.compile(r"[\s)}\]]([a-z][a-z0-9-]*)\(")
_LISTED = re.compile(r"replica_groups=\{\{([\d,\s]*)\}")
_COUNTED = re.compile(r"replica_groups=\[(\d+),(\d+)\]<=")
_CONTRACTED = re.compile(r"(lhs|rhs)_contracting_dims=\{(\d+)\}")
_LONGEST = 20_000
_MAX_SIZE = 2**61
_COLLECTIVES: dict[str, CollectiveOperation] = {
    "all-reduce": "all_reduce", "all-gather": "all_gather", "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all", "ragged-all-to-all": "all_to_all", "collective-permute": "send_recv",
    "collective-broadcast": "broadcast",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class HloCollective:
    """One collective: sizes are the full logical tensor on one rank; ``group_size`` None = all devices or unknown."""

    operation: CollectiveOperation
    size_bytes: int
    group_size: int | None
    dtype: str


def opcode(instruction: str) -> str:
    """``all-reduce``, ``fusion``, ``dot``, ...; empty for a text that is no instruction."""
    _, equals, rest = instruction[:_LONGEST].partition(" = ")
    match = _OPCODE.search(f" {rest}") if equals else None
    return match.group(1) if match else ""


def collective(instruction: str) -> HloCollective | None:
    """The collective that a blocking instruction performs; None for others, and where its size is not printed."""
    operation = _COLLECTIVES.get(opcode(instruction))
    shapes = _output_shapes(instruction)
    if operation is None or not shapes:
        return None
    size_bytes = sum(_BITS[dtype] * prod(sizes) // 8 for dtype, sizes in shapes)
    group_size = _group_size(instruction)
    if operation == "reduce_scatter":
        if group_size is None:
            return None
        size_bytes *= group_size
    if operation == "send_recv":
        group_size = 2
    if not 0 < size_bytes < _MAX_SIZE:
        return None
    return HloCollective(operation, size_bytes, group_size, dtype_of(shapes[0][0]))


def output_dtype(instruction: str) -> str:
    """Number format of the (first) result; empty where it is not printed."""
    shapes = _output_shapes(instruction)
    return dtype_of(shapes[0][0]) if shapes else ""


def product_shape(instruction: str) -> dict[str, int]:
    """m, n, k of a ``dot`` of two matrices whose operands are printed with their shapes; else empty."""
    if opcode(instruction) != "dot":
        return {}
    made = _output_shapes(instruction)
    operands = _shapes(instruction[:_LONGEST].partition(" dot(")[2].partition(")")[0])
    contracted = {side: int(axis) for side, axis in _CONTRACTED.findall(instruction[:_LONGEST])}
    if len(made) != 1 or len(operands) != 2 or set(contracted) != {"lhs", "rhs"}:
        return {}
    (_, left), (_, right) = operands
    rows_columns = made[0][1]
    if len(left) != 2 or len(right) != 2 or len(rows_columns) != 2 or max(contracted.values()) > 1:
        return {}
    inner = left[contracted["lhs"]]
    return {"m": rows_columns[0], "n": rows_columns[1], "k": inner} if inner == right[contracted["rhs"]] else {}


def _group_size(instruction: str) -> int | None:
    counted = _COUNTED.search(instruction[:_LONGEST])
    if counted:
        size = int(counted.group(2)[:9])
    else:
        listed = _LISTED.search(instruction[:_LONGEST])
        size = len([rank for rank in listed.group(1).split(",") if rank.strip()]) if listed else 0
    return size if 1 <= size < 2**31 else None


def _output_shapes(instruction: str) -> list[tuple[str, list[int]]]:
    _, equals, rest = instruction[:_LONGEST].partition(" = ")
    match = _OPCODE.search(f" {rest}") if equals else None
    return _shapes(rest[: match.start()]) if match else []


def _shapes(part: str) -> list[tuple[str, list[int]]]:
    found = []
    for dtype, sizes in _SHAPE.findall(part):
        dims = [size for size in re.split(r"[,<= ]+", sizes) if size]
        if dtype in _BITS and all(len(size) < 16 for size in dims):
            found.append((dtype, [int(size) for size in dims]))
    return found
