"""The cases of a plan, their order, and those that cannot run here.

Order: value first (a model's own shapes, then the grid from coarse to fine), and within a value all kinds in turn, so
that a budget spent early still leaves some of everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from profiles.measure.case import Case
from profiles.measure.device import MeasuredDevice
from profiles.measure.grid import generic_grid, with_rows
from profiles.measure.matmul import fp8_dtypes
from profiles.measure.operators import KINDS
from profiles.measure.plan import MeasurePlan


@dataclass(slots=True)
class CaseList:
    """Cases to run; cases that fail for sure (one a kind and phase); how many are left out, by reason."""

    cases: list[Case] = field(default_factory=list)
    impossible: list[tuple[Case, str]] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)

    def leave_out(self, reason: str, count: int = 1) -> None:
        """Count cases that will not run."""
        self.left_out[reason] = self.left_out.get(reason, 0) + count


def cases_of(plan: MeasurePlan, device: MeasuredDevice) -> CaseList:
    """The cases of a plan on a device."""
    found = CaseList()
    usable_bytes = device.free_bytes() * plan.memory_part
    refused: set[tuple[str, str]] = set()
    for case in _ordered(plan, device):
        if case.dtype == "fp8" and fp8_dtypes(device) is None:
            if (case.operator, case.phase) in refused:
                found.leave_out(f"{case.operator}: fp8 is not supported by this device")
            else:
                refused.add((case.operator, case.phase))
                found.impossible.append((case, "fp8 is not supported by this device's matrix units"))
        elif case.memory_bytes > usable_bytes:
            found.leave_out(f"{case.operator}: larger than the free memory allows")
        else:
            found.cases.append(case)
    return found


def blocks_of(cases: Sequence[Case], block_size: int, usable_bytes: float) -> Iterator[list[Case]]:
    """Consecutive cases that fit into memory together."""
    block: list[Case] = []
    size = 0
    for case in cases:
        if block and (len(block) >= block_size or size + case.memory_bytes > usable_bytes):
            yield block
            block, size = [], 0
        block.append(case)
        size += case.memory_bytes
    if block:
        yield block


def _ordered(plan: MeasurePlan, device: MeasuredDevice) -> list[Case]:
    shapes = [*with_rows(plan.shapes, plan.grid), *generic_grid(plan.grid, host=device.is_host)]
    cases: dict[str, Case] = {}
    for shape in shapes:
        if plan.only and shape.operator not in plan.only:
            continue
        kind = KINDS[shape.operator]
        for dtype in _dtypes(plan.dtypes, kind.dtypes):
            for case in kind.cases(shape, dtype):
                cases.setdefault(repr(case.identity()), case)
    return sorted(cases.values(), key=lambda case: case.value)


def _dtypes(wanted: tuple[str, ...], possible: tuple[str, ...]) -> tuple[str, ...]:
    """The wanted ones that the kind knows; its first where none is wanted (an optimizer in fp32)."""
    if not possible:
        return wanted
    return tuple(dtype for dtype in wanted if dtype in possible) or possible[:1]
