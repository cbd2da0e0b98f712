"""A sweep for people: a line a cell, the reasons of those without a plan, and a count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType

from planner.answers.views.words import count, gib, money, percent, seconds, short_id
from planner.cli.render.back_ends import software_name
from planner.cli.render.tables import bullets, heading, table

WORDS = {
    "planned": "yes",
    "infeasible": "no",
    "undecided": "undecided",
    "refused": "refused",
    "failed": "failed",
    "missing": "missing",
}
"""Outcome -> what stands under "fits"."""
AXES = {
    "model": "model",
    "cluster": "cluster",
    "num_devices": ">devices",
    "sequence_length": ">sequence",
    "global_batch_size": ">batch",
}
"""Axis -> head of its column."""


def sweep_report(data: Mapping[str, Any]) -> Iterator[RenderableType]:
    """The table of ``data`` (``cells`` and ``summary``), then reasons.  What all cells share stands above it."""
    cells: list[dict[str, Any]] = data["cells"]
    varying = [name for name in AXES if len({cell[name] for cell in cells}) > 1]
    priced = any(cell["cost_per_million_tokens"] is not None for cell in cells)
    shared = [f"{AXES[name].lstrip('>|')} {_size(cells[0][name])}" for name in AXES if name not in varying]
    used = {_backend(cell) for cell in cells if cell["plan_id"] is not None}
    shared += [f"back-end {name}" for name in used if len(used) == 1]
    if shared:
        yield f"every cell: {', '.join(shared)}"
    head = (
        *(AXES[name] for name in varying),
        "|fits",
        *(["back-end"] if len(used) > 1 else []),
        *(">step", ">tokens/s", ">a device", ">MFU", ">memory"),
        *([">cost/Mtok"] if priced else []),
        *("|proof", "|plan"),
    )
    rows = [
        (*(_size(cell[name]) for name in varying), *_figures(cell, priced, each_its_own=len(used) > 1))
        for cell in cells
    ]
    yield table("", head, rows)
    reasons = _reasons(cells)
    if reasons:
        yield heading("Without a plan")
        yield bullets(reasons)
    yield f"\n{_count(data['summary'])}"


def _size(value: str | int) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def _backend(cell: Mapping[str, Any]) -> str:
    return software_name(cell["backend"] or "", cell["release"] or "")


def _figures(cell: Mapping[str, Any], priced: bool, *, each_its_own: bool) -> tuple[str, ...]:
    """What stands behind the axes; ``each_its_own``: the plans are of several back-ends."""
    fits = WORDS[cell["outcome"]]
    if cell["plan_id"] is None:
        return (fits, *[""] * (7 + priced + each_its_own))
    cost = cell["cost_per_million_tokens"]
    return (
        fits,
        *([_backend(cell)] if each_its_own else []),
        seconds(cell["step_time_s"]),
        count(cell["tokens_per_s"]),
        count(cell["tokens_per_s_per_device"]),
        percent(cell["model_flops_utilization"]),
        gib(cell["peak_memory_bytes"]),
        *([money(cost) if cost is not None else ""] if priced else []),
        "optimal" if cell["status"] == "optimal" else f"gap {percent(cell['gap'])}",
        short_id(cell["plan_id"]),
    )


def _reasons(cells: list[dict[str, Any]]) -> list[str]:
    """One line a reason, with the cells that share it."""
    shared: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        if cell["reason"] is not None:
            where = (
                f"{cell['model']} on {cell['num_devices']:,} x {cell['cluster']}"
                f" ({cell['global_batch_size']:,} x {cell['sequence_length']:,})"
            )
            shared.setdefault((cell["reason"], cell["hint"] or ""), []).append(where)
    lines = []
    for (reason, hint), places in shared.items():
        named = places[0] if len(places) == 1 else f"{places[0]} and {len(places) - 1:,} more"
        lines.append(f"{named}: {reason}" + (f"; hint: {hint}" if hint else ""))
    return lines


def _count(summary: Mapping[str, Any]) -> str:
    kinds = [f"{summary[kind]:,} {kind}" for kind in WORDS if summary[kind]]
    known = f" ({summary['stored']:,} known before)" if summary["stored"] else ""
    return f"{summary['cells']:,} cells: {', '.join(kinds)}{known}; {seconds(summary['wall_s'])}"
