"""Observations and facts of a run: two observations a row, out-of-place and in-place.

``time`` is the mean over iterations, and by default also the mean over ranks (``-a`` chooses: 0 rank 0, 2 min, 3 max):
``detail["over_ranks"]`` says which where the command line does.  Launches are back to back unless ``-z`` (blocking)
or ``-G`` (CUDA graph) was given.  Rows of size 0 are counted and left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from profiles.importers.nccl_tests.columns import UNKNOWN, Columns
from profiles.importers.nccl_tests.group import Group, Listed
from profiles.importers.nccl_tests.header import Versions
from profiles.importers.nccl_tests.operation import Evidence, Named
from profiles.importers.nccl_tests.rows import Block, Row
from profiles.importers.nccl_tests.runs import Run
from profiles.importing.dtype_names import dtype_of
from profiles.importing.environments import environment_of
from profiles.importing.format import ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.observations.environment import Environment
from profiles.observations.records import CollectiveObservation, Launch, Scalar
from profiles.observations.timing import Timing

_OVER_RANKS = {0: "rank 0", 1: "mean", 2: "min", 3: "max"}
_NVIDIA = ("nvidia", "tesla", "geforce", "quadro", "a100", "h100", "v100")
_AMD = ("amd", "instinct", "radeon", "mi250", "mi300")


@dataclass(frozen=True, slots=True)
class Setting:
    """What is the same for all rows of one run."""

    named: Named
    group: Group
    launch: Launch
    iterations: int | None
    repeated: int
    """Operations in one iteration: aggregated ones, times launches of the graph."""
    detail: dict[str, Scalar]


def setting_of(run: Run, named: Named, group: Group) -> Setting:
    """Launch mode, repetitions and the switches that change what a time means."""
    switches = run.switches
    detail: dict[str, Scalar] = dict(named.detail)
    if "average" in switches and switches["average"] in _OVER_RANKS:
        detail["over_ranks"] = _OVER_RANKS[switches["average"]]
    if switches.get("aggregated_iterations", 1) > 1:
        detail["aggregated_operations"] = switches["aggregated_iterations"]
    if switches.get("buffer_registration"):
        detail["buffer_registration"] = switches["buffer_registration"]
    launch: Launch = "unknown"
    if switches.get("blocking"):
        launch = "blocking"
    elif switches.get("graph_launches"):
        launch = "graph"
    elif "warmup_iterations" in switches:
        launch = "back_to_back"
    repeated = switches.get("aggregated_iterations", 1) * max(1, switches.get("graph_launches", 0))
    return Setting(named, group, launch, switches.get("iterations"), repeated, detail)


def environment_of_run(
    run: Run, file: Versions, devices: Listed | None, group: Group, options: ReadOptions
) -> Environment:
    """Device, versions and machine of one run."""
    names = sorted({rank.name for rank in run.ranks if rank.name})
    reported = " / ".join(names)
    own = run.versions
    library = own.library or file.library or _library_of(reported)
    nodes, per_node = group.num_nodes, group.devices_per_node
    num_devices = group.size
    if devices is not None and devices.complete and group.size == len(devices.members):
        num_devices = devices.num_devices
        if devices.num_groups > 1:
            hosts = {rank.host for rank in run.ranks}
            nodes, per_node = len(hosts), num_devices // len(hosts) if num_devices % len(hosts) == 0 else None
    return environment_of(
        options,
        reported if len(names) == 1 else "",
        num_devices=num_devices,
        num_nodes=nodes,
        devices_per_node=per_node,
        runtime_version=own.runtime or file.runtime,
        communication_library=library,
        communication_library_version=own.library_version or file.library_version,
        transport=own.transport or file.transport,
        note=f"devices: {reported}" if len(names) > 1 else "",
    )


def add_rows(run: Run, setting: Setting, batch: Batch, imported: Imported) -> None:
    """Turn the rows of a run into observations of a batch."""
    columns = run.columns or UNKNOWN
    for row in run.rows:
        if row.line in run.contradictory:
            continue
        if row.size == 0:
            imported.skip("size 0")
            continue
        for block, in_place in ((row.out_of_place, False), (row.in_place, True)):
            if block is None:
                continue
            try:
                batch.collectives.append(_observation(row, block, in_place, columns, setting))
            except ValueError as error:
                imported.bad(row.line, f"{'in-place' if in_place else 'out-of-place'}: {error}")


def _observation(row: Row, block: Block, in_place: bool, columns: Columns, setting: Setting) -> CollectiveObservation:
    wrong, error, detail = _correctness(block, columns)
    unit_s = columns.unit_s
    spread = block.per_iteration
    timing = Timing(
        time_s=_seconds(block.time, unit_s),
        statistic="mean",
        num_samples=(row.iterations or setting.iterations or 0) * setting.repeated or None,
        min_s=_seconds(spread["i_min"], unit_s) if "i_min" in spread else None,
        max_s=_seconds(spread["i_max"], unit_s) if "i_max" in spread else None,
        std_s=_seconds(spread["i_std"], unit_s) if "i_std" in spread else None,
    )
    for percentile in ("p50", "p95", "p99"):
        if f"i_{percentile}" in spread:
            detail[f"{percentile}_s"] = _seconds(spread[f"i_{percentile}"], unit_s)
    if "i_cv" in spread or "cv" in spread:
        detail["variation_percent"] = spread.get("i_cv", spread.get("cv", 0.0))
    extras = {name.casefold(): value for name, value in row.extras.items()}
    channels = extras.get("nchannels", extras.get("#channels", extras.get("channels", "")))
    group = setting.group
    return CollectiveObservation(
        operation=setting.named.operation,
        size_bytes=row.size,
        group_size=group.size,
        timing=timing,
        dtype=dtype_of(row.dtype),
        num_nodes=group.num_nodes,
        devices_per_node=group.devices_per_node,
        stride=group.stride,
        concurrent_groups=group.concurrent_groups,
        in_place=in_place,
        reduction="" if row.redop == "none" else row.redop,
        root=row.root if row.root is not None and row.root >= 0 else None,
        launch=setting.launch,
        algorithm=extras.get("algo", ""),
        protocol=extras.get("proto", ""),
        num_channels=int(channels) if channels.isascii() and channels.isdigit() and len(channels) < 6 else None,
        num_wrong=wrong,
        detail={**setting.detail, **detail},
        ok=not error,
        error=error,
        row=row.line,
    )


def _correctness(block: Block, columns: Columns) -> tuple[int | None, str, dict[str, Scalar]]:
    """Wrong elements, the error text of a failed check, and the largest difference where that is printed instead."""
    if block.error == "N/A":
        return None, "", {}
    value = float(block.error)
    if not math.isfinite(value):
        return None, "the check of the result found a value that is no number", {}
    if columns.counts_wrong:
        return int(value), f"{int(value)} wrong elements" if value > 0 else "", {}
    return None, "", {"largest_difference": value}


def _seconds(value: float, unit_s: float) -> float:
    """The product rounded once: 12.9 us is the float 12.9e-6, which 12.9 * 1e-6 is not."""
    return float(Decimal(repr(value)) * Decimal(repr(unit_s)))


def _library_of(device: str) -> str:
    """Library (nccl, rccl) by the maker of the device; empty where its name does not tell."""
    plain = device.casefold()
    if any(word in plain for word in _AMD):
        return "rccl"
    return "nccl" if any(word in plain for word in _NVIDIA) else ""


def facts_of_run(run: Run, evidence: Evidence, named: Named, group: Group) -> dict[str, Scalar]:
    """How a run was understood: its collective, its ranks, its settings."""
    facts: dict[str, Scalar] = {"operation": named.operation, "operation_from": named.source}
    if group.declared is not None:
        facts["ranks_declared"] = group.declared
    if group.inferred is not None:
        facts["ranks_inferred"] = group.inferred
    if evidence.ratio is not None and evidence.agrees:
        facts["bandwidth_ratio"] = round((evidence.ratio.low + evidence.ratio.high) / 2, 6)
    for name in ("warmup_iterations", "iterations", "validation"):
        if name in run.switches:
            facts[name] = run.switches[name]
    return facts


def figures(runs: list[Run]) -> dict[str, Scalar]:
    """Rows read, sizes, greatest bandwidths and shortest times of some tables: what a reader compares with the file."""
    rows = [(row, (run.columns or UNKNOWN).unit_s) for run in runs for row in run.rows]
    facts: dict[str, Scalar] = {"num_rows_read": len(rows)}
    if not rows:
        return facts
    facts["first_size_bytes"], facts["last_size_bytes"] = rows[0][0].size, rows[-1][0].size
    for name, index in (("out_of_place", 0), ("in_place", 1)):
        blocks = [((row.out_of_place, row.in_place)[index], unit_s) for row, unit_s in rows]
        known = [(block, unit_s) for block, unit_s in blocks if block is not None]
        if known:
            facts[f"max_bus_bandwidth_{name}_bytes_per_s"] = max(block.busbw for block, _ in known) * 1e9
            facts[f"min_time_{name}_s"] = min(_seconds(block.time, unit_s) for block, unit_s in known)
    return facts
