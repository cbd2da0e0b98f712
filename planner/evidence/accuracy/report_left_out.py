"""Tables of sources that are left out whole (``planner.evidence.accuracy.left_out``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from planner.evidence.accuracy.report_table import ReportTable, against, percent

Data = Mapping[str, Any]


def left_out_tables(data: Data) -> Iterable[ReportTable]:
    """Sources left out whole: the targets, and every source."""
    found = data.get("left_out")
    if not found or data["by"] != "source":
        return
    lines = [line for line in found["headline"] if line["n"]]
    rows = [(line["what"], f"{line['n']:,}", *against(line, "target", "measured", "reached")) for line in lines]
    said = (
        "Sources of which no row chose any constant: what a source that nobody has seen gets. These figures come first;"
        " those of the next tables are of sources that partly helped to make the cost model. Rules that read a row's"
        " words (losses in parts, frozen fp32 weights, whole numbers of memory) were written with rows of torchtune,"
        " prime-rl and FlagPerf in sight: memory of sources yet unseen may be worse."
    )
    columns = ("what", ">n", ">target", ">measured", "")
    yield ReportTable("left-out", "On sources left out whole", said, columns, rows)
    columns_of_sources: tuple[str, ...] = (
        "source",
        "how",
        ">n",
        ">median",
        ">mean",
        ">bias",
        ">holds",
        ">groups",
        ">picks",
    )
    columns_of_sources += (">memory", ">median", ">OOM", ">balanced")
    said = (
        "never used: no row of it chose a constant. taken back: its other rows, predicted without what the source chose"
        " (`planner/evidence/accuracy/left_out.py`). holds: part of the measured times inside the stated intervals."
        " memory and OOM: rows with a peak, and those that ran out of memory."
    )
    rows_of_sources = [_left_out_row(group) for group in found["groups"]]
    yield ReportTable("left-out-sources", "Each source left out", said, columns_of_sources, rows_of_sources)


def _left_out_row(group: Data) -> tuple[str, ...]:
    ranked, died = group["num_groups"], group["oom_n"]
    return (
        group["group"],
        group["how"],
        f"{group['n']:,}",
        percent(group["median_ape"], decimals=1) if group["n"] else "-",
        percent(group["mape"], decimals=1) if group["n"] else "-",
        percent(group["bias"], signed=True) if group["n"] else "-",
        percent(group["interval_coverage"]) if group["n"] else "-",
        str(ranked),
        percent(group["good_picks"]) if ranked else "-",
        f"{group['memory_n']:,}",
        percent(group["memory_median_ape"], decimals=1) if group["memory_n"] else "-",
        f"{died:,}",
        percent(group["balanced_accuracy"], decimals=1) if died else "-",
    )
