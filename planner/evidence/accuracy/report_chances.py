"""Tables of the report on stated chances: that a run fits, and that of two runs the faster one was told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.evidence.accuracy.report_table import ReportTable, percent
from planner.evidence.accuracy.telling_apart import NEAR, WANTED

Data = Mapping[str, Any]
PARTS = {"fitted": "fitted on", "judged": "judged on"}


def chance_tables(data: Data) -> list[ReportTable]:
    """Distributions, chance to fit of runs that ended, quantiles of runs that state a peak, pairs of runs, picks."""
    chances, apart, picked = data.get("fit_chances"), data.get("telling_apart"), data.get("recommended_picks")
    return [
        *([_ratios(chances), _reliability(chances), _levels(chances)] if chances else ()),
        *([_apart(apart)] if apart else ()),
        *([_picks(picked)] if picked else ()),
    ]


def _ratios(chances: Data) -> ReportTable:
    rows = [
        (
            name,
            *(f"{ratio[kind]:,}" for kind in ("sources", "exact", "finished", "out_of_memory")),
            f"{ratio['median']:.3f}",
            f"{ratio['quantile_95']:.3f}",
            f"{ratio['quantile_99']:.3f}",
        )
        for name, ratio in chances["ratios"].items()
    ]
    said = (
        "Measured over predicted peak memory of a further source, by the rows that fitted it: as wide as they differ."
        " pooled: a back-end without enough rows. Finished runs of a source that prints no peak and no run that died"
        " bound the median from above only. A search allows a peak of the device's memory over the 95 % quantile."
    )
    columns = ("whose runs", ">sources", ">peaks", ">finished", ">out of memory", ">median", ">95 %", ">99 %")
    return ReportTable("ratios", "Measured over predicted memory", said, columns, rows)


def _reliability(chances: Data) -> ReportTable:
    rows = [
        (
            PARTS[part],
            each["backend"],
            f"{percent(found['from'])} to {percent(found['to'])}",
            f"{found['n']:,}",
            percent(found["stated"], decimals=1),
            percent(found["fitted"], decimals=1),
        )
        for part in PARTS
        for each in chances[part]
        for found in each["bins"]
        if found["n"] and (each["backend"] == "all" or each["out_of_memory"])
    ]
    said = (
        "Stated chance that a run fits against the share that did, of runs that finished or ran out of memory without"
        " stating a peak; by back-end where some ran out of memory. Back-ends whose tables hold survivors only can say"
        " nothing of chances below one."
    )
    columns = ("part", "back-end", "stated chance", ">n", ">mean stated", ">fitted")
    return ReportTable("fit-chance", "Does it fit: stated chances", said, columns, rows)


def _levels(chances: Data) -> ReportTable:
    found = [(part, each) for part in PARTS for each in chances[part] if each["levels"]]
    levels = [level["level"] for level in found[0][1]["levels"]] if found else []
    rows = [
        (
            PARTS[part],
            each["backend"],
            each["ratio"],
            f"{each['num_exact']:,}",
            *(percent(level["below"]) for level in each["levels"]),
        )
        for part, each in found
    ]
    said = (
        "Of runs that state a peak, the share whose peak stays below the stated quantile; and whose distribution it is."
    )
    columns = ("part", "back-end", "distribution", ">n", *(f">{percent(level)}" for level in levels))
    return ReportTable("memory-quantiles", "Peaks below stated quantiles", said, columns, rows)


def _apart(apart: Data) -> ReportTable:
    rows = []
    for part, said in PARTS.items():
        for every, near in zip(apart["every"][part]["bins"], apart["near"][part]["bins"], strict=True):
            upper = "" if every["to"] is None else f" to {percent(every['to'])}"
            rows.append(
                (
                    said,
                    f"{percent(every['from'])}{upper}" if upper else f"over {percent(every['from'])}",
                    f"{every['pairs']:,}",
                    percent(every["right"]),
                    percent(every["curve"]),
                    f"{near['pairs']:,}",
                    percent(near["right"]),
                    percent(near["curve"]),
                )
            )
    bands = ", ".join(percent(apart[name]["band"], decimals=1) for name in ("every", "near"))
    said = (
        "Of two runs of one question, how often the one predicted to be faster is, by how much faster it is predicted:"
        f" all pairs, and those of runs predicted within {percent(NEAR - 1)} of the group's fastest (near). curve: one"
        f" parameter, fitted on the fit part; by it the order is right less than {percent(WANTED)} of the time below"
        f" {bands}."
    )
    columns = ("part", "predicted", ">pairs", ">right", ">curve", ">near: pairs", ">right", ">curve")
    return ReportTable("apart", "Telling two configurations apart", said, columns, rows)


def _picks(picked: Data) -> ReportTable:
    rows = [
        (
            said,
            f"{found['groups']:,}",
            f"{found['differ']:,}",
            percent(found["fastest_regret"], decimals=2),
            percent(found["recommended_regret"], decimals=2),
        )
        for part, said in PARTS.items()
        if (found := picked[part])["groups"]
    ]
    said = (
        "Part of the best measured speed that is lost in groups of runs that differ only in their strategy: by the run"
        " predicted to be fastest, and by the one that would be recommended among those predicted within"
        f" {percent(picked['band'])} of it; both of the runs that have the usual chance to fit. differ: groups in which"
        " they are two runs."
    )
    columns = ("part", ">groups", ">differ", ">fastest: regret", ">recommended: regret")
    return ReportTable("picks", "Recommended and fastest picks", said, columns, rows)
