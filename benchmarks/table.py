"""The measurements as a table in Markdown, so that it can go into the README as it is."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from benchmarks.measurement import Measurement

HEAD = ("task", "target", "measured", "ratio", "CPU time", "samples", "")


def markdown_table(measurements: Sequence[Measurement]) -> str:
    """One line a measurement: medians, measured over target, and whether the target is reached."""
    rows = [
        (
            each.task,
            f"{'>=' if each.larger_is_better else '<='} {quantity(each.target, each.unit)}",
            quantity(each.measured, each.unit),
            f"{each.ratio:.2f}",
            quantity(median(each.cpu_s), "s") if each.cpu_s else "",
            str(len(each.samples)),
            "reached" if each.reached else "missed",
        )
        for each in measurements
    ]
    lines = [HEAD, ("---", *("---:",) * (len(HEAD) - 2), "---"), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def quantity(value: float, unit: str) -> str:
    """``1.24 s``, ``158 MB``, ``1,240,000 /s``, ``2.3 %``."""
    if unit == "fraction":
        return f"{value:.1%}"
    if unit == "bytes":
        return f"{value / 1e6:.0f} MB"
    return f"{value:.3g} s" if unit == "s" else f"{value:,.0f} /s"


def machine_line(facts: dict[str, Any]) -> str:
    """The machine in one line."""
    load = facts["load"][0]
    return (
        f"{facts['processor']}, core {facts['core_used']} of {facts['cores']}"
        f" (cold plans: {facts['cores_of_cold_plans']} cores), load {load:.1f},"
        f" Python {facts['python']}, NumPy {facts['numpy']}, {facts['meshwright']}"
    )
