"""A table of the report, and how percentages are written in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table with its name for links, its title, and one sentence on how to read it."""

    name: str
    title: str
    sentence: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def percent(value: float | None, *, signed: bool = False, decimals: int = 0) -> str:
    """A fraction as a percentage; a dash where there is none."""
    if value is None:
        return "-"
    return f"{100 * value:+.{decimals}f} %" if signed else f"{100 * value:.{decimals}f} %"


def decimal(value: float | None) -> str:
    """Two decimals; a dash where there is none."""
    return "-" if value is None else f"{value:.2f}"


def against(line: Mapping[str, Any], target: str, measured: str, reached: str) -> tuple[str, str, str]:
    """Target, measured value and verdict of a line of targets."""
    tau = "tau" in line["what"]
    value = decimal(line[measured]) if tau else percent(line[measured], decimals=1)
    if line[target] is None:
        return "", value, ""
    verdict = {True: "reached", False: "missed", None: ""}[line[reached]]
    return _range_words(*line[target], tau=tau), value, verdict


def _range_words(low: float, high: float, *, tau: bool) -> str:
    ends = [f"{each:g}" if tau else f"{100 * each:g} %" for each in (low, high)]
    if low == 0:
        return f"<= {ends[1]}"
    return f">= {ends[0]}" if high == 1 else f"{ends[0].removesuffix(' %')}-{ends[1]}"
