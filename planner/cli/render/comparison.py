"""A comparison for people: two columns and the change; a tornado chart for sensitivities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rich.text import Text

from planner.answers.diff import FieldChange, PlanDiff, StageChange, TermChange
from planner.answers.sensitivity import LeverSummary, Sensitivity, SensitivityPoint
from planner.answers.views.words import gib, percent, seconds, short_id
from planner.cli.render.tables import heading, table
from planner.cli.render.words import symbol
from planner.predict.step_terms import NOTHING, term_words
from planner.strategy.fields import told_fields, value_words

if TYPE_CHECKING:
    from rich.console import RenderableType

WHOLE_DOCUMENTS = {"/model": "name", "/cluster": "name", "/profile": "name"}
"""Parts of a problem that have a name: where the names differ, the names say it all."""
TORNADO_HALF_WIDTH = 20


def diff_report(diff: PlanDiff) -> Iterator[RenderableType]:
    """Everything that differs between two plans."""
    yield Text(diff.summary, style="bold")
    if diff.identical:
        return
    names = (f"a {short_id(diff.a)}", f"b {short_id(diff.b)}")
    if diff.problem:
        yield heading("Question")
        yield table("", ("field", *names), _problem_rows(diff.problem))
    if diff.strategy:
        yield heading("Strategy")
        yield table(
            "", ("field", *names), [(each.field, value_words(each.a), value_words(each.b)) for each in diff.strategy]
        )
    yield heading("Time by term")
    yield seconds_table((*diff.breakdown_s, diff.step_time_s), names)
    yield heading("Memory of the worst device by term")
    yield bytes_table(diff.peak_memory_bytes, names)
    if diff.stages:
        yield heading("Stages that differ")
        yield table(
            "", (">stage", "layers", "recompute", "offload", "peak"), [_stage_row(each) for each in diff.stages]
        )


def _problem_rows(changes: Sequence[FieldChange]) -> list[tuple[str, str, str]]:
    """One line a field, but one line for a model or cluster with another name; ``-o json`` holds every field."""
    rows: list[tuple[str, str, str]] = []
    for part, run in groupby(changes, key=lambda each: "/" + each.field.split("/")[1]):
        mine = list(run)
        named = next((each for each in mine if each.field == f"{part}/{WHOLE_DOCUMENTS.get(part)}"), None)
        if named is None:
            rows += [(each.field, value_words(each.a), value_words(each.b)) for each in mine]
            continue
        rest = len(mine) - 1
        field = f"{part} ({rest} more fields differ, see -o json)" if rest else part
        rows.append((field, value_words(named.a), value_words(named.b)))
    return rows


def seconds_table(terms: Sequence[TermChange], names: tuple[str, str]) -> RenderableType:
    """Terms in seconds, both sides and the change; without those that take no time on either."""
    least_s = NOTHING * max((max(each.a, each.b) for each in terms), default=0.0)
    rows = [
        (_time_words(each.term), seconds(each.a), seconds(each.b), _signed(seconds(each.change), each.change))
        for each in terms
        if max(each.a, each.b) > least_s
    ]
    return table("", ("term", f">{names[0]}", f">{names[1]}", ">change"), rows)


def bytes_table(terms: Sequence[TermChange], names: tuple[str, str]) -> RenderableType:
    """Terms in GiB, both sides and the change."""
    rows = [
        (each.term, gib(each.a), gib(each.b), _signed(gib(each.change), each.change))
        for each in terms
        if each.a or each.b
    ]
    return table("", ("term", f">{names[0]}", f">{names[1]}", ">change"), rows)


def sensitivity_report(result: Sensitivity) -> Iterator[RenderableType]:
    """Tornado of time a token, then every case."""
    yield Text(result.summary, style="bold")
    yield heading(f"Time a token, plan {short_id(result.plan_id)}")
    scale = max((max(-row.lowest, row.highest) for row in result.tornado), default=0.0)
    columns = ("input", ">fastest", "|", ">slowest", "plan stays best")
    yield table("", columns, [_tornado_row(row, scale) for row in result.tornado])
    yield heading("Every case")
    cases = ("input", ">change", ">plan's step", ">time a token", ">best step", ">regret", "best differs in")
    yield table("", cases, [_point_row(point) for point in result.points])


def _tornado_row(row: LeverSummary, scale: float) -> tuple[str, str, str, str, str]:
    def cells(value: float) -> int:
        return round(abs(value) / scale * TORNADO_HALF_WIDTH) if scale else 0

    block = symbol("█", "#")
    left = (block * cells(row.lowest)).rjust(TORNADO_HALF_WIDTH)
    right = (block * cells(row.highest)).ljust(TORNADO_HALF_WIDTH)
    stays = "" if row.stays_best is None else "yes" if row.stays_best else "no"
    picture = f"{left}{symbol('│', '|')}{right}"
    return (
        row.lever.replace("_", " "),
        percent(row.lowest, signed=True),
        picture,
        percent(row.highest, signed=True),
        stays,
    )


def _point_row(point: SensitivityPoint) -> tuple[str, ...]:
    changes = point.best_strategy_changes
    differs = None if changes is None else told_fields(changes)
    return (
        point.lever.replace("_", " "),
        percent(point.change, signed=True),
        seconds(point.step_time_s) if point.step_time_s is not None else "",
        percent(point.time_per_token_change, signed=True) if point.time_per_token_change is not None else "",
        seconds(point.best_step_time_s) if point.best_step_time_s is not None else "",
        percent(point.regret) if point.regret is not None else "",
        _verdict(point, differs),
    )


def _verdict(point: SensitivityPoint, differs: tuple[str, ...] | None) -> str:
    if not point.fits and not point.reason:
        does_not_fit = "the plan's strategy does not fit"
        return f"{does_not_fit}; best differs in {', '.join(differs)}" if differs else does_not_fit
    return point.reason or ", ".join(differs or ())


def _stage_row(each: StageChange) -> tuple[str, str, str, str, str]:
    peaks = tuple(gib(value) if value is not None else "none" for value in each.peak_memory_bytes)
    return (
        str(each.stage),
        _change(each.layers),
        _change(each.recompute),
        _change(each.offload),
        _change(peaks),
    )


def _change(pair: tuple[object, ...]) -> str:
    a, b = pair
    return value_words(a) if a == b else f"{value_words(a)} -> {value_words(b)}"


def _time_words(term: str) -> str:
    return "whole step" if term == "step_time_s" else term_words(term)


def _signed(text: str, change: float) -> str:
    return f"+{text}" if change > 0 else text
