"""The tables of the report: the same on a terminal, on the accuracy page and in the HTML report.

A column whose name starts with ``>`` holds numbers.  ``*`` after a baseline's error: we do not beat it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from planner.evidence.accuracy.report_chances import chance_tables
from planner.evidence.accuracy.report_left_out import left_out_tables
from planner.evidence.accuracy.report_optimism import optimism_tables
from planner.evidence.accuracy.report_table import ReportTable, against, decimal, percent
from planner.predict.uncertainty import PLAN_LEVEL
from planner.question.factors import factor_words

NOT_BEATEN = "*"
Data = Mapping[str, Any]


def report_tables(data: Data) -> list[ReportTable]:
    """All tables that have rows, the most important first."""
    groups = [group for group in data["groups"] if group["predicted"]]
    tables = [
        *left_out_tables(data),
        _headline(data),
        *optimism_tables(data),
        _time(data, groups),
        _ranking(data, groups),
        _memory(data, groups),
        _out_of_memory(data, groups),
        *chance_tables(data),
        _split(data),
        *(_calibration(data) if "calibration" in data else ()),
        _unmapped(data["unmapped"]),
    ]
    return [each for each in tables if each.rows]


def _headline(data: Data) -> ReportTable:
    calibrated = "calibration" in data
    columns: tuple[str, ...] = ("what", ">n", ">target", ">measured", "")
    if calibrated:
        columns += (">then: n", ">target", ">measured", "")
    rows = []
    for line in data["headline"]:
        if not line["n"]:
            continue
        cells = [line["what"], f"{line['n']:,}", *against(line, "target", "measured", "reached")]
        if calibrated:
            cells.append(f"{line['calibrated_n']:,}")
            cells += against(line, "calibrated_target", "calibrated", "calibrated_reached")
        rows.append(tuple(cells))
    part = f" after calibrating on {percent(data['calibration']['fraction'])} of each source" if calibrated else ""
    said = f"On rows of which no constant was chosen{'; then' + part if part else ''}."
    return ReportTable("targets", "Against the targets", said, columns, rows)


def _time(data: Data, groups: Sequence[Data]) -> ReportTable:
    levels = (f">{percent(PLAN_LEVEL)}", f">{percent(data['interval_level'])}")
    columns: tuple[str, ...] = (data["by"], ">n", ">mean", ">median", ">p90", ">bias", *levels)
    columns += (">MFU", ">median", ">own", ">lost")
    rows = [
        (
            group["group"],
            f"{group['n']:,}",
            percent(group["mape"]),
            percent(group["median_ape"]),
            percent(group["p90_ape"]),
            percent(group["bias"], signed=True),
            percent(group["plan_interval_coverage"]),
            percent(group["interval_coverage"]),
            _marked(group["mape"], group["baseline"], "mape"),
            _marked(group["median_ape"], group["baseline"], "median_ape"),
            _marked(group["mape"], group["baseline_within_source"], "mape"),
            str(group["unmapped"]),
        )
        for group in groups
        if group["n"]
    ]
    said = (
        f"Error of the predicted step time; what intervals stated at {percent(PLAN_LEVEL)} and"
        f" {percent(data['interval_level'])} hold; mean and median error of a"
        " constant utilization of the device (MFU), and mean error of that of the same source, device and precision"
        f" (own). {NOT_BEATEN}: not beaten by us. lost: rows without a prediction."
    )
    return ReportTable("step-time", "Step time", said, columns, rows)


def _marked(ours: float | None, baseline: Data, figure: str) -> str:
    theirs = baseline[figure]
    lost = ours is not None and theirs is not None and theirs <= ours
    return percent(theirs) + (f" {NOT_BEATEN}" if lost else "")


def _ranking(data: Data, groups: Sequence[Data]) -> ReportTable:
    columns = (data["by"], ">groups", ">tau median", ">tau mean", ">regret", ">top-3 regret", ">good picks")
    rows = [
        (
            group["group"],
            str(group["num_groups"]),
            decimal(group["median_kendall_tau"]),
            decimal(group["kendall_tau"]),
            percent(group["regret"], decimals=1),
            percent(group["top3_regret"], decimals=1),
            percent(group["good_picks"]),
        )
        for group in groups
        if group["num_groups"]
    ]
    said = (
        "Within groups of runs that differ only in their strategy: Kendall's tau, and the part of the best measured"
        " speed that our pick (the best of our three picks) loses; good picks lose at most 5 %."
    )
    return ReportTable("ranking", "Ranking", said, columns, rows)


def _memory(data: Data, groups: Sequence[Data]) -> ReportTable:
    rows = [
        (
            group["group"],
            f"{group['memory']['n']:,}",
            percent(group["memory"]["mape"], decimals=1),
            percent(group["memory"]["median_ape"], decimals=1),
            percent(group["memory"]["p90_ape"], decimals=1),
            percent(group["memory"]["bias"], signed=True, decimals=1),
        )
        for group in groups
        if group["memory"]["n"]
    ]
    columns = (data["by"], ">n", ">mean", ">median", ">p90", ">bias")
    said = "Error of the predicted memory, as each source means it (allocated, reserved, resident; which rank)."
    return ReportTable("memory", "Memory", said, columns, rows)


def _out_of_memory(data: Data, groups: Sequence[Data]) -> ReportTable:
    rows = [
        (
            group["group"],
            *(f"{group['oom'][name]:,}" for name in ("tp", "fn", "tn", "fp", "not_judged")),
            percent(group["oom"]["balanced_accuracy"], decimals=1),
            percent(group["oom"]["false_fits"], decimals=1) if group["oom"]["tp"] + group["oom"]["fn"] else "-",
        )
        for group in groups
    ]
    columns: tuple[str, ...] = (data["by"], ">died, foreseen", ">missed", ">ran, foreseen", ">false alarm")
    columns += (">unsaid", ">balanced", ">false fits")
    said = (
        "Runs that ran out of memory and runs that did not, and what we said of them before. unsaid: the verdict hangs"
        " on a recompute policy that the row does not state."
    )
    return ReportTable("out-of-memory", "Out of memory", said, columns, rows)


def _split(data: Data) -> ReportTable:
    """Sources of which a part chose constants: that part beside the rest."""
    judged = {group["group"]: group for group in data["groups"]}
    rows = []
    for fitted in data["fitted_groups"]:
        rest = judged[fitted["group"]]
        cells: list[str] = [fitted["group"]]
        for group in (fitted, rest):
            cells += [f"{group['n']:,}", percent(group["median_ape"]), percent(group["mape"])]
        for group in (fitted, rest):
            cells += [f"{group['memory']['n']:,}", percent(group["memory"]["mape"], decimals=1)]
        rows.append(tuple(cells))
    columns: tuple[str, ...] = (data["by"], ">fitted", ">median", ">mean", ">judged", ">median", ">mean")
    columns += (">memory: fitted", ">mean", ">judged", ">mean")
    said = (
        "Errors on rows of which constants of the cost model were chosen, beside those of the rows that judge:"
        " a large difference would mean constants that fit their own rows only."
    )
    return ReportTable("fitted-or-judged", "Fitted on, judged on", said, columns, rows)


def _calibration(data: Data) -> Iterable[ReportTable]:
    groups = [group for group in data["calibration"]["groups"] if group["num_fitted"]]
    part = percent(data["calibration"]["fraction"])
    level = percent(data["interval_level"])
    time_rows, memory_rows = [], []
    for group in groups:
        figures = [group["uncalibrated"], *group["stages"].values()]
        if figures[0]["n"]:
            cells = [group["group"], str(group["num_fitted"]), f"{figures[0]['n']:,}"]
            cells += [percent(each["median_ape"], decimals=1) for each in figures]
            cells += [percent(each["mape"], decimals=1) for each in figures]
            time_rows.append(
                (*cells, percent(figures[0]["interval_coverage"]), percent(figures[-1]["interval_coverage"]))
            )
        if figures[0]["memory"]["n"]:
            memory = [each["memory"] for each in figures]
            cells = [group["group"], str(group["num_fitted"]), f"{memory[0]['n']:,}"]
            cells += [percent(each["median_ape"], decimals=1) for each in memory]
            memory_rows.append((*cells, *(percent(each["mape"], decimals=1) for each in memory)))
    stages = (">median", ">factors", ">residual", ">mean", ">factors", ">residual")
    said = (
        f"Calibrated on about {part} of each source (whole ranking groups), judged on rows that neither calibrated nor"
        " chose a constant. Error before, with bounded factors of each back-end and device, and with a small model"
        " of what these leave (residual)."
    )
    inside = f" Last: what the {level} intervals hold before and after."
    first = (data["by"], ">used", ">n", *stages)
    yield ReportTable("calibrated", "Step time, calibrated", said + inside, (*first, f">{level}", ">after"), time_rows)
    yield ReportTable("calibrated-memory", "Memory, calibrated", said, first, memory_rows)


def factors_table(data: Data) -> ReportTable:
    """The factors themselves, and where the second stage is in use."""
    residual = {
        (each["source"], each["framework"], each["quantity"]): each for each in data["calibration"]["residual_models"]
    }
    rows = []
    for each in data["calibration"]["factors"]:
        words = ", ".join(factor_words(name, value) for name, value in each["factors"].items())
        second = [
            quantity for quantity in ("time", "memory") if (each["source"], each["framework"], quantity) in residual
        ]
        cells = (each["source"], each["framework"], each["device"], str(each["num_rows"]))
        rows.append((*cells, words or "none helps", ", ".join(second) or "-"))
    columns = ("source", "back-end", "device", ">rows", "factors", "residual model")
    return ReportTable("factors", "The factors", "What the calibrating rows gave.", columns, rows)


def _unmapped(unmapped: Data) -> ReportTable:
    rows = [
        (reason, str(count), ", ".join(name for name, found in unmapped["by_group"].items() if reason in found))
        for reason, count in unmapped["reasons"].items()
    ]
    said = f"{unmapped['n']:,} rows lack something or contradict themselves; they enter no average."
    return ReportTable("unmapped", "Rows without a prediction", said, ("reason", ">rows", "where"), rows)
