"""How far predictions are from measured serving points: predicted rows, tables, the section of the accuracy page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner.serving.evidence.behaviours import BEHAVIOURS, generation
from planner.serving.evidence.judged import (
    QUANTITIES,
    TARGETS,
    ErrorLine,
    Judged,
    Picks,
    Quantity,
    error_lines,
    picks,
)
from planner.serving.evidence.mapped import mapped
from planner.serving.evidence.predicted import prepared
from planner.serving.evidence.truth import ServingRow
from planner.serving.evidence.unmapped import RowUnmapped

Likely = dict[Quantity, dict[str, tuple[float, float]]]
_VIEWS = {"all": "all", "kind": "kind of run", "engine": "engine", "device": "device", "release": "release"}
_FEWEST = 5
"""Points below which a release has no line of its own."""


@dataclass(frozen=True, slots=True)
class ServingReport:
    """Predicted rows of some files."""

    judged: list[Judged]
    unmapped: Counter[str]
    """Rows that were not predicted, by reason."""

    def part(self, *, fitted_on: bool) -> list[Judged]:
        """Points that factors were fitted on, or the others."""
        return [judged for judged in self.judged if judged.fitted_on == fitted_on]


def assess(rows: Sequence[ServingRow]) -> ServingReport:
    """Predict every row that can be predicted."""
    judged: list[Judged] = []
    unmapped: Counter[str] = Counter()
    for row in rows:
        try:
            point = mapped(row)
            behaviour = BEHAVIOURS[generation(point.engine, point.release)]
            judged.append(Judged(point, prepared(point, behaviour).predicted(behaviour)))
        except RowUnmapped as reason:
            unmapped[reason.what] += 1
    return ServingReport(judged, unmapped)


def stated_intervals() -> Likely:
    """The 90 % intervals that predictions state, by quantity and engine."""
    engines = {name: behaviour for name, behaviour in BEHAVIOURS.items() if " " not in name}
    return {
        "ttft": {name: behaviour.likely_ttft for name, behaviour in engines.items()},
        "tpot": {name: behaviour.likely_tpot for name, behaviour in engines.items()},
        "throughput": {name: behaviour.likely_throughput for name, behaviour in engines.items()},
    }


@dataclass(frozen=True, slots=True)
class ReportTable:
    """One table of the report."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def report_tables(report: ServingReport) -> list[ReportTable]:
    """All tables: errors of both parts, by view; picks; rows that were not predicted."""
    likely = stated_intervals()
    judged, fitted = report.part(fitted_on=False), report.part(fitted_on=True)
    tables = [
        _errors("Points that nothing was fitted on", error_lines(judged, likely, "all"), "all"),
        _errors("Points that factors were fitted on", error_lines(fitted, likely, "all"), "all"),
    ]
    for view, name in _VIEWS.items():
        if view != "all":
            lines = [line for line in error_lines(judged, likely, view) if line.count >= _FEWEST or view == "kind"]
            tables.append(_errors(f"Not fitted on, by {name}", lines, name))
    tables.append(_picks(picks(judged), picks(fitted)))
    reasons = [(reason, str(count)) for reason, count in report.unmapped.most_common(12)]
    tables.append(ReportTable("Rows that were not predicted", ("reason", "rows"), reasons))
    return tables


def _errors(title: str, lines: Iterable[ErrorLine], name: str) -> ReportTable:
    columns = (
        name,
        "quantity",
        "points",
        "median error",
        "aim",
        "mean error",
        "measured/predicted",
        "in 90 % interval",
    )
    order = {quantity: number for number, quantity in enumerate(QUANTITIES)}
    rows = [
        (
            line.name,
            line.quantity,
            str(line.count),
            _percent(line.median_error),
            _percent(TARGETS[line.quantity]),
            _percent(line.mean_error),
            f"{line.bias:.2f}",
            _percent(line.covered),
        )
        for line in sorted(lines, key=lambda line: (line.name, order[line.quantity]))
    ]
    return ReportTable(title, columns, rows)


def _picks(judged: Picks, fitted: Picks) -> ReportTable:
    columns = ("points", "questions", "pick within 5 % of the best", "aim", "mean loss", "blind pick", "fewest devices")
    rows = [
        (
            name,
            str(found.groups),
            _percent(found.near_best),
            "85 %",
            _percent(found.mean_loss),
            _percent(found.blind),
            _percent(found.fewest),
        )
        for name, found in (("not fitted on", judged), ("fitted on", fitted))
    ]
    return ReportTable("Picks: the layout of most tokens a second and device, among those measured", columns, rows)


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %" if part < 1 else f"{100 * part:.0f} %"


def markdown_section(report: ServingReport) -> str:
    """The serving section of the accuracy page."""
    predicted, fitted = len(report.judged), len(report.part(fitted_on=True))
    lines = [
        "## Serving",
        "",
        f"{predicted} measured points are predicted; {sum(report.unmapped.values())} are not, for the reasons below. "
        f"Few factors an engine (host time, kernel factors, waiting) were fitted on {fitted} of them, whole sweeps; "
        "the tables are of the others unless they say so. Throughput of points at a fixed number of requests in flight "
        "is what Little's law makes of their times.",
    ]
    for table in report_tables(report):
        lines += ["", f"### {table.title}", "", _row(table.columns), _row("---" for _ in table.columns)]
        lines += [_row(cells) for cells in table.rows]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
