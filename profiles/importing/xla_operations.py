"""XLA operation times: events of a device, reduced to observations by module and instruction.

Blocking collectives whose size is printed in the instruction become collective observations (in situ: their time
includes waiting for the other devices); the start and done halves of asynchronous ones stay operators.  Instructions
that contain others (``while``, ``conditional``, ``call``) are passed over, so that nothing is counted twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from profiles.importing import hlo_text
from profiles.importing.duration_statistics import Durations
from profiles.importing.imported import Batch, Imported
from profiles.importing.kernel_names import collective_operation, kernel_class
from profiles.observations.records import CollectiveObservation, OperatorObservation, Scalar

PICOSECONDS_PER_S = 1e12
_MAX_GROUPS = 500_000
_LONGEST_NAME = 200
_LONGEST_TEXT = 300
_POINTWISE_NAMES = ("loop_", "wrapped_", "broadcast_", "add_", "multiply_")
_CONTAINERS = ("while", "conditional", "call")
_MOVES = ("copy", "data formatting", "infeed", "outfeed", "host send", "host recv", "bitcast", "transpose", "slice")
_POINTWISE = ("loop fusion", "non-fusion elementwise", "elementwise", "broadcast", "pad", "concatenate", "iota")


@dataclass(frozen=True, slots=True)
class Operation:
    """One instruction (or kernel) as the profiler describes it; ``kernel`` True = ``name`` is a device kernel's."""

    name: str
    module: str = ""
    category: str = ""
    text: str = ""
    flops: int | None = None
    bytes_accessed: int | None = None
    kernel: bool = False
    source: str = ""


@dataclass(slots=True)
class XlaOperations:
    """Durations by operation."""

    groups: dict[Operation, Durations] = field(default_factory=dict)

    def add(self, operation: Operation, picoseconds: int, imported: Imported) -> None:
        """Add one event; events without a duration are left out."""
        if picoseconds <= 0:
            imported.skip("events without a duration")
        elif _kind(operation) in _CONTAINERS:
            imported.skip("instructions that contain others")
        elif operation in self.groups:
            self.groups[operation].add(picoseconds)
        elif len(self.groups) < _MAX_GROUPS:
            self.groups[operation] = Durations((picoseconds,))
        else:
            imported.skip(f"operations beyond {_MAX_GROUPS:,} different ones")

    def store(self, batch: Batch, imported: Imported) -> None:
        """Add the observations."""
        waiting = 0
        for operation, durations in self.groups.items():
            found = hlo_text.collective(operation.text) if operation.text else None
            if found is not None:
                batch.collectives.append(_collective(operation, found, durations))
                waiting += len(durations)
                continue
            batch.operators.append(_operator(operation, durations))
            waiting += len(durations) if batch.operators[-1].operator == "collective" else 0
        if waiting:
            imported.flag("waiting-included", f"times of {waiting} communication events include waiting for others")


def operator_class(operation: Operation) -> str:
    """Operator class by category, instruction and name.

    A TPU runs every product as a convolution: it is one only where the instruction has a window.
    """
    category, kind = operation.category.casefold(), _kind(operation)
    if "convolution" in category or kind in ("convolution", "dot"):
        return "convolution" if "window={size=" in operation.text else "matmul"
    by_name = kernel_class(operation.name)
    if by_name not in ("kernel", "other", "elementwise", "copy"):
        return by_name
    if category.startswith(_MOVES) or kind in _MOVES:
        return "copy"
    if category.startswith(_POINTWISE) or operation.name.startswith(_POINTWISE_NAMES):
        return "elementwise"
    if by_name == "kernel" and operation.text:
        by_name = kernel_class(operation.text[:_LONGEST_TEXT]) if kind == "custom-call" else "other"
    return by_name


def _kind(operation: Operation) -> str:
    return hlo_text.opcode(operation.text) or operation.name.lstrip("%").split(".", 1)[0]


def _operator(operation: Operation, durations: Durations) -> OperatorObservation:
    kind = operator_class(operation)
    detail: dict[str, Scalar] = {}
    for label, value in (("module", operation.module), ("category", operation.category), ("hlo_op", operation.source)):
        if value:
            detail[label] = value[:_LONGEST_NAME]
    if operation.text:
        detail["instruction"] = operation.text[:_LONGEST_TEXT]
    if operation.flops:
        detail["flops"] = operation.flops
    if operation.bytes_accessed:
        detail["accessed_bytes"] = operation.bytes_accessed
    if kind == "collective":
        detail["operation"] = collective_operation(operation.name)
    return OperatorObservation(
        operator=kind,
        name=operation.name[:_LONGEST_NAME],
        timing=durations.timing(PICOSECONDS_PER_S),
        dtype=hlo_text.output_dtype(operation.text),
        shape=hlo_text.product_shape(operation.text),
        detail=detail,
    )


def _collective(operation: Operation, found: hlo_text.HloCollective, durations: Durations) -> CollectiveObservation:
    detail: dict[str, Scalar] = {"name": operation.name[:_LONGEST_NAME]}
    if operation.module:
        detail["module"] = operation.module[:_LONGEST_NAME]
    return CollectiveObservation(
        operation=found.operation,
        size_bytes=found.size_bytes,
        group_size=found.group_size,
        timing=durations.timing(PICOSECONDS_PER_S),
        dtype=found.dtype,
        launch="in_situ",
        detail=detail,
    )
