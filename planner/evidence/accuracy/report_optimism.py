"""Tables of our own picks beside tuned runs (``planner.evidence.accuracy.optimism``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from planner.evidence.accuracy.optimism import BELIEVABLE, views
from planner.evidence.accuracy.report_table import ReportTable, decimal, percent

Data = Mapping[str, Any]
TARGET = 0.8


def optimism_tables(data: Data) -> Iterable[ReportTable]:
    """Picks by source, and every pick that promises more than a tenth."""
    found = data.get("optimism")
    if not found:
        return
    low, high = BELIEVABLE
    rows = [_source_row(name, members) for name, members in _by_source(found["questions"]).items()]
    rows.append(_source_row("all", found["questions"]))
    said = (
        "For each question whose tuned runs are published: the predicted time of the plan that we would propose over"
        f" the best measured time (optimism), and the predicted time of that best run itself over what it took (run)."
        f" believable: between {low:g} and {high:g}; the target is {percent(TARGET)} of the questions.  Where all runs"
        " of a source state the same recompute, it was not tuned and the pick does the same; free: one that need not."
    )
    columns = ("source", ">questions", ">no plan", ">run", ">optimism", ">below", ">believable", ">above", ">free")
    yield ReportTable("optimism", "Our picks beside tuned runs", said, columns, rows)
    yield _views(found["questions"])
    low_ones = [each for each in found["questions"] if each["optimism"] is not None and each["optimism"] < low]
    low_ones.sort(key=lambda each: each["optimism"])
    yield _causes(low_ones)
    said = (
        f"Questions of which our pick is predicted below {low:g} of the best measured time, and what it does otherwise."
        " as planned: the run's own strategy under the software of the pick, over what was measured. untried: what the"
        " pick does and no run of the source ever did."
    )
    yield ReportTable(
        "optimism-below",
        "Picks that promise more than was reached",
        said,
        ("question", "source", ">runs", ">run", ">as planned", ">optimism", "cause", "untried", "what the pick does"),
        [
            (
                each["question"],
                each["source"],
                str(each["num_runs"]),
                decimal(each["predicted"]),
                decimal(each["as_planned"]) if each.get("as_planned") else "-",
                decimal(each["optimism"]),
                each.get("cause", ""),
                each.get("untried", ""),
                each["differs"],
            )
            for each in low_ones
        ],
    )


def _views(questions: list[Data]) -> ReportTable:
    """The measure beside what it is made of."""
    said = (
        "The first row is the measure of the target. A pick that copied the best run would have the optimism of the"
        " fifth; the last leaves out what the cost model gets wrong of that run: it is what another strategy promises."
        " Untried: a stage of ZeRO, a recompute, a schedule or a kind of parallelism that no run of the source has,"
        " where all of them state theirs; no published time can say whether such a promise holds."
    )
    rows = [(what, *_shares(ratios)) for what, ratios in views(questions).items()]
    columns = ("what", ">n", ">median", ">below", ">believable", ">above")
    return ReportTable("optimism-views", "What stands behind the measure", said, columns, rows)


def _shares(ratios: Iterable[float]) -> tuple[str, ...]:
    """Count, median, and the parts below, inside and above what is believable."""
    low, high = BELIEVABLE
    answered = sorted(ratios)
    if not answered:
        return ("0", "-", "-", "-", "-")
    counts = [
        sum(each < low for each in answered),
        sum(low <= each <= high for each in answered),
        sum(each > high for each in answered),
    ]
    median = decimal(answered[len(answered) // 2])
    return (str(len(answered)), median, *(percent(count / len(answered)) for count in counts))


CAUSES = {
    "cost model": "the run itself is predicted too fast",
    "software": "the pick's back-end is other software than the run's",
    "strategy": "the pick does what none of the published runs did",
    "not stated": "the same, in fields that the source leaves blank of its runs",
}


def _causes(low_ones: list[Data]) -> ReportTable:
    """How many low picks have which cause."""
    counts = {name: sum(each.get("cause") == name for each in low_ones) for name in CAUSES}
    return ReportTable(
        "optimism-causes",
        "Why picks promise more",
        "Optimism is the product of three factors: the cost model on the best measured run, other software, another"
        " strategy. The least of them is the cause.",
        ("cause", "what it is", ">questions"),
        [(name, CAUSES[name], str(count)) for name, count in counts.items()],
    )


def _by_source(questions: Iterable[Data]) -> dict[str, list[Data]]:
    members: dict[str, list[Data]] = {}
    for each in questions:
        members.setdefault(each["source"], []).append(each)
    return members


def _source_row(name: str, questions: list[Data]) -> tuple[str, ...]:
    low, high = BELIEVABLE
    runs = sorted(each["predicted"] for each in questions)
    answered, *shares = _shares(each["optimism"] for each in questions if each["optimism"] is not None)
    no_plan = str(len(questions) - int(answered))
    free = [each["free"] for each in questions if each["free"] is not None]
    within = percent(sum(low <= each <= high for each in free) / len(free)) if free else "-"
    return (name, str(len(questions)), no_plan, decimal(runs[len(runs) // 2]), *shares, within)
