"""One measurement of a collective: an operation, a size and a launch over one group shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from profiles.measure.collective_calls import OPERATIONS, num_elements
from profiles.measure.collective_plan import CollectivePlan
from profiles.measure.group_shapes import GroupShape
from profiles.measure.kind import DTYPE_BYTES
from profiles.observations.records import CollectiveObservation, CollectiveOperation, Launch, Scalar
from profiles.observations.timing import Timing


@dataclass(frozen=True, slots=True)
class CollectiveCase:
    """One thing to time over one group shape."""

    operation: CollectiveOperation
    variant: str
    dtype: str
    elements: int
    shape: GroupShape
    siblings: bool
    launch: Launch

    @property
    def size_bytes(self) -> int:
        """Bytes of the logical tensor."""
        return self.elements * DTYPE_BYTES[self.dtype]

    def identity(self) -> dict[str, Scalar]:
        """What makes two cases the same measurement."""
        return {
            "operation": self.operation,
            "variant": self.variant,
            "dtype": self.dtype,
            "size_bytes": self.size_bytes,
            "size": self.shape.size,
            "stride": self.shape.stride,
            "siblings": self.siblings,
            "launch": self.launch,
        }


def collective_cases(plan: CollectivePlan, shape: GroupShape) -> Iterator[CollectiveCase]:
    """All cases of a shape, coarse sizes first."""
    for size in plan.ordered_sizes():
        for operation, variant in OPERATIONS:
            if plan.operations and operation not in plan.operations:
                continue
            if operation == "send_recv" and shape.size != 2:
                continue
            sums = operation in ("all_reduce", "reduce_scatter")
            for dtype in plan.dtypes if sums else plan.dtypes[:1]:
                elements = num_elements(size, dtype, shape.size)
                alone = CollectiveCase(operation, variant, dtype, elements, shape, False, "back_to_back")
                yield alone
                if shape.num_siblings > 1:
                    yield replace(alone, siblings=True)
                if size <= plan.blocking_up_to_bytes:
                    yield replace(alone, launch="blocking")


def collective_observation(case: CollectiveCase, timing: Timing | None, error: str) -> CollectiveObservation:
    """What is stored of a finished case."""
    shape = case.shape
    detail: dict[str, Scalar] = {"placement": shape.placement, "siblings": shape.num_siblings}
    if case.variant:
        detail["variant"] = case.variant
    sums = case.operation in ("all_reduce", "reduce_scatter")
    return CollectiveObservation(
        operation=case.operation,
        size_bytes=case.size_bytes,
        group_size=shape.size,
        timing=timing,
        dtype=case.dtype,
        num_nodes=shape.num_nodes,
        devices_per_node=shape.ranks_per_node,
        stride=shape.stride,
        concurrent_groups=shape.num_siblings if case.siblings else 1,
        in_place=case.operation in ("all_reduce", "broadcast"),
        reduction="sum" if sums else "",
        root=0 if case.operation == "broadcast" else None,
        launch=case.launch,
        detail=detail,
        ok=timing is not None,
        error=error,
    )
