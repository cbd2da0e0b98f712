"""The drawings of the report: the terms of the step, the pipeline, the memory of the stages; small SVGs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from planner.answers.views.report.sheet import COLOURS
from planner.answers.views.step import StepView
from planner.answers.views.words import gib, percent, seconds
from planner.plan.plan import Plan

WIDTH = 1000
MOST_ROWS = 64
"""Pipelines of more ranks show every n-th of them."""
COLUMNS = 500
"""Parts of the step that the pipeline is drawn in; each shows what the rank does most in it."""
_TERMS = ("weights", "gradients", "optimizer", "activations", "buffers")


def step_bar(terms: Sequence[tuple[str, float]]) -> str:
    """One bar of the whole step, cut into its terms."""
    total = sum(value for _, value in terms) or 1.0
    at, marks = 0.0, []
    for place, (name, value) in enumerate(terms):
        width = WIDTH * value / total
        marks.append(_block(at, 0, width, 28, place, f"{name}: {seconds(value)}, {percent(value / total)}"))
        at += width
    largest = ", ".join(f"{name} {percent(value / total)}" for name, value in terms[:3])
    return _figure(f"Of a step of {seconds(total)}: {largest}.", 28, marks, [name for name, _ in terms])


def pipeline(step: StepView) -> str:
    """Rows = pipeline ranks, from left to right the step; what is left empty is idle."""
    every = -(-step.num_ranks // MOST_ROWS)
    ranks = range(0, step.num_ranks, every)
    height = 14 if len(ranks) > 16 else 20
    marks = list[str]()
    for row, rank in enumerate(ranks):
        top = row * (height + 3)
        marks.append(f'<rect x="40" y="{top}" width="{WIDTH - 40}" height="{height}" fill="var(--idle)"/>')
        marks.append(f'<text x="34" y="{top + height - 5}" text-anchor="end">{rank}</text>')
        for first, end, kind in _runs(step, rank):
            width = (end - first) * (WIDTH - 40) / COLUMNS
            marks.append(_block(40 + first * (WIDTH - 40) / COLUMNS, top, width, height, kind, step.kinds[kind]))
    after = f" {seconds(step.after_ns / 1e9)} follow for the optimizer and the rest." if step.after_ns else ""
    shown = "" if every == 1 else f" Every {every}. rank is shown."
    sentence = (
        f"{step.num_ranks} pipeline ranks over {seconds(step.makespan_ns / 1e9)};"
        f" they are idle for {percent(step.bubble_fraction)} of it.{after}{shown}"
    )
    used = sorted(set(step.actions.kind))
    return _figure(sentence, len(ranks) * (height + 3), marks, [step.kinds[kind] for kind in used], used)


def memory_bars(plan: Plan) -> str:
    """One bar a stage, cut into its terms, with the limit."""
    scale = (WIDTH - 60) / max(plan.memory_limit_bytes, plan.peak_memory_bytes) / 1.04
    marks: list[str] = []
    for row, stage in enumerate(plan.stages):
        top, at = row * 22, 40.0
        marks.append(f'<text x="34" y="{top + 13}" text-anchor="end">{stage.stage}</text>')
        for place, term in enumerate(_TERMS):
            size = getattr(stage.peak_memory_bytes, term)
            marks.append(_block(at, top, size * scale, 18, place, f"stage {stage.stage}, {term}: {gib(size)}"))
            at += size * scale
    limit = 40 + plan.memory_limit_bytes * scale
    height = 22 * len(plan.stages)
    marks.append(f'<line x1="{limit:.1f}" x2="{limit:.1f}" y1="0" y2="{height}" stroke="var(--ink)" stroke-width="2"/>')
    marks.append(f'<text x="{limit - 4:.1f}" y="{height + 12}" text-anchor="end">{gib(plan.memory_limit_bytes)}</text>')
    worst = max(plan.stages, key=lambda stage: stage.peak_memory_bytes.total)
    sentence = (
        f"Stage {worst.stage} needs most: {gib(worst.peak_memory_bytes.total)} of the"
        f" {gib(plan.memory_limit_bytes)} that may be used (the line)."
    )
    return _figure(sentence, height + 16, marks, list(_TERMS))


def _runs(step: StepView, rank: int) -> Iterator[tuple[int, int, int]]:
    """(first column, column after the last, kind) of what the rank does most in each column; idle ones are left out."""
    mine = slice(step.actions.offsets[rank], step.actions.offsets[rank + 1])
    start, end = (np.array(values[mine]) for values in (step.actions.start_ns, step.actions.end_ns))
    edges = np.linspace(0, step.makespan_ns, COLUMNS + 1)
    kinds = np.array(step.actions.kind[mine])
    busy = np.zeros((len(step.kinds), COLUMNS))
    for kind in np.unique(kinds):
        # Busy time before a moment, at every edge: its differences are the time in each column.
        before = np.zeros(COLUMNS + 1)
        for first, last in zip(start[kinds == kind], end[kinds == kind], strict=True):
            before += np.clip(edges - first, 0, last - first)
        busy[kind] = np.diff(before)
    most = np.where(busy.sum(axis=0) * 2 >= np.diff(edges), busy.argmax(axis=0), -1)
    cuts = np.flatnonzero(np.diff(most)) + 1
    for first, last in zip([0, *cuts], [*cuts, COLUMNS], strict=True):
        if most[first] >= 0:
            yield int(first), int(last), int(most[first])


def _block(x: float, y: float, width: float, height: float, colour: int, title: str) -> str:
    if width <= 0:
        return ""
    place = f'x="{x:.1f}" y="{y}" width="{max(width, 0.3):.1f}" height="{height}"'
    return f'<rect {place} fill="var(--c{colour % COLOURS})"><title>{escape(title)}</title></rect>'


def _figure(
    sentence: str, height: int, marks: Sequence[str], names: Sequence[str], colours: Sequence[int] | None = None
) -> str:
    label = escape(sentence, quote=True)
    keys = "\n".join(
        '<li><svg viewBox="0 0 10 10" aria-hidden="true">'
        f'<rect width="10" height="10" fill="var(--c{colour % COLOURS})"/></svg>{escape(name)}</li>'
        for name, colour in zip(names, colours if colours is not None else range(len(names)), strict=True)
    )
    drawing = "".join(marks)
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">{drawing}</svg>'
        f'<ul class="legend">\n{keys}\n</ul><figcaption class="said">{label}</figcaption></figure>'
    )
