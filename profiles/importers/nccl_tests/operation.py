"""The collective that a run measured: its rows never name it.

Asked in this order: the tool's own ``Collective test starting`` line; the user (``--set operation=``); the command
line above the table; the file name; the table itself.  The last three are guesses, so they must fit the table:

    bus / algorithm bandwidth   above 1: all_reduce;  below 1: all_gather, reduce_scatter, all_to_all, gather, scatter
    a root                      broadcast, reduce, gather, scatter
    a reduction                 all_reduce, reduce_scatter, reduce (and send_recv, which prints one without using it)

all_gather and all_to_all print the same since 2.13: such a table is refused when nothing names it.
"""

from __future__ import annotations

from dataclasses import dataclass

from profiles.importers.nccl_tests.runs import Run
from profiles.importing.collective_names import exact_name, operation_of, operation_within
from profiles.importing.ranks_of_bandwidth import RatioBounds, common_bounds
from profiles.observations.records import CollectiveOperation

_ROOTED = ("broadcast", "reduce", "gather", "scatter")
_REDUCING = ("all_reduce", "reduce_scatter", "reduce", "send_recv")
_MOVING = ("all_gather", "all_to_all", "broadcast", "gather", "scatter", "send_recv")
_BELOW_ONE = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")
_EVERY: tuple[CollectiveOperation, ...] = (
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv", "broadcast", "reduce", "gather", "scatter",
)  # fmt: skip
_ENOUGH_BANDWIDTH = 0.5


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a table tells about its collective; None = nothing."""

    ratio: RatioBounds | None
    agrees: bool
    """Whether one ratio fits all rows."""
    reduction: bool | None
    root: bool | None
    redop_column: bool
    bus_twice: bool
    """Whether both columns hold the bus bandwidth, as only collectives with a ratio below one ever printed them."""
    parts: int | None
    """Size over counted elements, where it is the same in all rows."""


@dataclass(frozen=True, slots=True)
class Named:
    """An operation, the variant's own name for ``detail``, and where the name comes from."""

    operation: CollectiveOperation
    detail: dict[str, str]
    source: str


def evidence_of(run: Run) -> Evidence:
    """What the rows of a run tell together."""
    rows = [row for row in run.rows if row.size > 0 and row.line not in run.contradictory]
    blocks = [block for row in rows for block in row.blocks]
    ratio, agrees = common_bounds(block.bounds for block in blocks if block.bounds is not None)
    if run.bus_twice:
        ratio = None
    if ratio is not None and ratio.bandwidth < _ENOUGH_BANDWIDTH and ratio.high - ratio.low > 0.5:
        ratio = None
    redops = {row.redop for row in rows}
    reduction = None if redops <= {""} else bool(redops - {"none", ""})
    root = any(row.root is not None and row.root >= 0 for row in rows) if rows else None
    parts = {row.parts for row in rows}
    columns = run.columns
    same = parts.pop() if len(parts) == 1 else None
    return Evidence(ratio, agrees, reduction, root, columns is None or columns.has_redop, run.bus_twice, same)


def fits(operation: CollectiveOperation, evidence: Evidence) -> bool:
    """Whether the table can be one of this collective."""
    if evidence.root is not None and evidence.root != (operation in _ROOTED):
        return False
    if evidence.reduction is not None and operation not in (_REDUCING if evidence.reduction else _MOVING):
        return False
    if evidence.bus_twice:
        return operation in _BELOW_ONE
    ratio = evidence.ratio
    if ratio is None or not evidence.agrees:
        return True
    if operation in _BELOW_ONE:
        return ratio.low < 1
    if operation == "all_reduce":
        # One rank has nothing to send: its bus bandwidth is zero.
        return ratio.high >= 1 or ratio.low == 0
    return ratio.low <= 1 <= ratio.high


def named_operation(run: Run, evidence: Evidence, file_name: str, given: str | None) -> Named | None:
    """The operation of a run; None where it can not be told.  Raises ValueError for a given name that is none."""
    if run.test:
        operation = operation_of(run.test)
        if operation is None:
            return Named("unknown", exact_name(run.test) or {"variant": run.test[:40]}, "test program")
        return Named(operation, exact_name(run.test), "test program")
    if given is not None:
        operation = operation_of(given)
        if operation is None:
            raise ValueError(given)
        return Named(operation, exact_name(given), "user")
    if run.command:
        operation = operation_of(run.command)
        if operation is not None and fits(operation, evidence):
            return Named(operation, exact_name(run.command), "command line")
    operation = operation_within(file_name)
    if operation is not None and fits(operation, evidence):
        return Named(operation, {}, "file name")
    operation = _by_table(run, evidence)
    return Named(operation, {}, "bandwidths") if operation is not None else None


def _by_table(run: Run, evidence: Evidence) -> CollectiveOperation | None:
    """The only operation that the table allows."""
    ratio = evidence.ratio
    possible = [operation for operation in _EVERY if fits(operation, evidence)]
    if not evidence.bus_twice:
        if ratio is None or not evidence.agrees or ratio.bandwidth < _ENOUGH_BANDWIDTH:
            return None
        possible = [operation for operation in possible if _shows(operation, ratio, len(run.ranks))]
    if evidence.reduction is None and set(possible) >= {"all_gather", "all_to_all"}:
        # Before 2.13 all_gather has no column redop, all_to_all has one and leaves it blank.
        possible = ["all_to_all" if evidence.redop_column else "all_gather"]
    return possible[0] if len(possible) == 1 else None


def _shows(operation: CollectiveOperation, ratio: RatioBounds, num_listed: int) -> bool:
    """Whether a ratio of bandwidths is this operation's on any number of ranks that the device list leaves."""
    if ratio.low > 1:
        return operation == "all_reduce"
    if ratio.high < 1:
        return operation in _BELOW_ONE
    return operation not in _BELOW_ONE and not (operation == "all_reduce" and num_listed > 2)
