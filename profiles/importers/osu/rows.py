"""The observation of one row of an OSU table."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from profiles.importers.osu.titles import Benchmark
from profiles.importing.collective_sizes import GROUP_SIZE_HINT, full_tensor_bytes
from profiles.importing.imported import Batch, Imported
from profiles.importing.number_cells import finite_number, whole_number
from profiles.observations.records import CollectiveObservation, LinkKind, LinkObservation, Scalar
from profiles.observations.timing import Timing

_MEGABYTE = 1e6
_NUMERIC = re.compile(r"[-+]?\.?\d|[-+]?(?:nan|inf)\b", re.IGNORECASE)
_BUFFER_NAMES = {"D": "device", "H": "host", "M": "managed"}


@dataclass(slots=True)
class Table:
    """One table while it is read: what its title, its launch command and its header said."""

    benchmark: Benchmark
    batch: Batch
    group_size: int | None
    num_nodes: int | None
    ranks_per_node: int | None
    buffers: str = ""
    dtype: str = ""
    concurrent_groups: int | None = None
    columns: list[str] = field(default_factory=list)
    detail: dict[str, Scalar] = field(default_factory=dict)


def looks_like_row(table: Table, cells: list[str]) -> bool:
    """Whether a line is meant as a row (a sound or a broken one), not a message of MPI between rows."""
    if not table.columns or not cells or not _NUMERIC.match(cells[0]):
        return False
    return len(cells) in (1, len(table.columns)) or _NUMERIC.match(cells[1]) is not None


def store_row(table: Table, line: int, cells: list[str], imported: Imported) -> None:
    """Add the observation of one row to the table's batch, or report why not."""
    if table.benchmark.measure is None:
        imported.skip(f"{table.benchmark.name} is not a measurement that is stored")
        return
    if len(cells) != len(table.columns):
        imported.bad(line, f"{len(cells)} columns, the header has {len(table.columns)}", "was the line cut off?")
        return
    try:
        values = _values(table.columns, cells)
        size_bytes = whole_number(cells[table.columns.index("size")]) if "size" in table.columns else 0
        if size_bytes < 0:
            raise ValueError(f"the size is {size_bytes}")
        if size_bytes == 0 and "size" in table.columns:
            imported.skip("size 0")
        elif table.benchmark.measure in ("bandwidth", "message_rate"):
            _store_link(table, line, size_bytes, values, imported)
        else:
            _store_collective(table, line, size_bytes, values, imported)
    except ValueError as error:
        imported.bad(line, str(error), "check the line against the original output")


def _values(columns: list[str], cells: list[str]) -> dict[str, float]:
    """Numbers by column; ``failed`` is 1 where validation did not pass."""
    values: dict[str, float] = {}
    for name, cell in zip(columns, cells, strict=True):
        if name == "validation":
            if cell.casefold() not in ("pass", "fail", "n/a", "-", "skipped"):
                raise ValueError(f"'{cell[:20]}' is not a result of validation")
            values["failed"] = float(cell.casefold() == "fail")
        elif name != "size":
            values[name] = finite_number(cell)
    return values


def _store_link(table: Table, line: int, size_bytes: int, values: dict[str, float], imported: Imported) -> None:
    bandwidth = values.get("bandwidth")
    if bandwidth is None:
        raise ValueError("the table has no column with the bandwidth")
    if bandwidth == 0:
        imported.skip("bandwidth printed as 0.00")
        return
    kind, source, target = _ends(table, imported)
    detail = {"benchmark": table.benchmark.name, **table.detail, **_buffer_detail(table)}
    failed = bool(values.get("failed"))
    table.batch.links.append(
        LinkObservation(
            kind,
            source,
            target,
            "both_ways" if table.benchmark.both_ways else "one_way",
            size_bytes,
            bandwidth * _MEGABYTE,
            statistic="mean",
            num_samples=_samples(values),
            method=f"osu {table.benchmark.name}",
            detail=detail,
            ok=not failed,
            error="validation failed" if failed else "",
            row=line,
        )
    )


def _store_collective(table: Table, line: int, size_bytes: int, values: dict[str, float], imported: Imported) -> None:
    time_us = values.get("latency", values.get("pure"))
    if time_us is None:
        raise ValueError("the table has no column with a latency")
    if time_us == 0:
        imported.skip("time printed as 0.00")
        return
    full = full_tensor_bytes(table.benchmark.operation, size_bytes, table.group_size)
    if full is None:
        imported.skip("the group size is not known")
        return
    if "group-size-unknown" not in {flag.code for flag in imported.flags} and table.group_size is None:
        imported.flag("group-size-unknown", f"the number of ranks is not in the file; {GROUP_SIZE_HINT}")
    failed = bool(values.get("failed"))
    table.batch.collectives.append(
        CollectiveObservation(
            table.benchmark.operation,
            full,
            table.group_size,
            _timing(time_us, values),
            dtype=table.dtype,
            num_nodes=table.num_nodes,
            devices_per_node=table.ranks_per_node,
            concurrent_groups=table.concurrent_groups,
            launch="blocking" if table.benchmark.blocking else "unknown",
            detail=_collective_detail(table, size_bytes, full, values),
            ok=not failed,
            error="validation failed" if failed else "",
            row=line,
        )
    )


def _timing(time_us: float, values: dict[str, float]) -> Timing:
    low, high = values.get("minimum", values.get("min_pure")), values.get("maximum", values.get("max_pure"))
    return Timing(
        time_us / 1e6, "mean", _samples(values), min_s=None if low is None else low / 1e6,
        max_s=None if high is None else high / 1e6, p90_s=values["p90_Lat"] / 1e6 if "p90_Lat" in values else None,
    )  # fmt: skip


def _samples(values: dict[str, float]) -> int | None:
    count = values.get("iterations")
    if count is None:
        return None
    if count < 1 or count != int(count):
        raise ValueError(f"{count:g} iterations")
    return int(count)


def _collective_detail(table: Table, printed: int, full: int, values: dict[str, float]) -> dict[str, Scalar]:
    detail: dict[str, Scalar] = {"benchmark": table.benchmark.name, **table.detail, **_buffer_detail(table)}
    if printed != full:
        detail["printed_size_bytes"] = printed
    if "minimum" in values or "min_pure" in values:
        detail["spread_over"] = "ranks"
    if "overlap" in values:
        detail["overlap_percent"] = values["overlap"]
    for name in ("overall", "compute"):
        if name in values:
            detail[f"{name}_s"] = values[name] / 1e6
    for name in ("p50_Lat", "p99_Lat"):
        if name in values:
            detail[f"{name[:3]}_s"] = values[name] / 1e6
    return detail


def _buffer_detail(table: Table) -> dict[str, Scalar]:
    """Where the buffers are: the two letters on the command line, else what the title implies."""
    if table.buffers:
        first, second = table.buffers.split()
        return {"send_buffer": _BUFFER_NAMES[first], "receive_buffer": _BUFFER_NAMES[second]}
    return {"accelerator": table.benchmark.accelerator.casefold()} if table.benchmark.accelerator else {}


def _ends(table: Table, imported: Imported) -> tuple[LinkKind, str, str]:
    """Two ranks on one node share its memory or its device links; otherwise they cross the network."""
    if table.num_nodes == 1:
        on_device = table.buffers.startswith("D") or (not table.buffers and bool(table.benchmark.accelerator))
        return ("device_to_device", "device:0", "device:1") if on_device else ("host_memory", "host:0", "host:0")
    if table.num_nodes is None and "placement-unknown" not in {flag.code for flag in imported.flags}:
        imported.flag("placement-unknown", "whether the ranks shared a node is not in the file: --set num_nodes=1 or 2")
    return "network", "node:0", "node:1"
