"""The figures of the report: drawn and written one after the other, the same bytes for the same report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from planner.evidence.accuracy.figure import FigureFile
from planner.evidence.accuracy.plots.coverage import draw_coverage
from planner.evidence.accuracy.plots.distribution import draw_errors
from planner.evidence.accuracy.plots.picks import draw_regret
from planner.evidence.accuracy.plots.scatter import draw_calibrated, draw_memory, draw_step_times
from profiles.plots.figure_file import FigureFormat, png_bytes, svg_text
from profiles.plots.style import Drawn, house_style

Data = Mapping[str, Any]
DRAWINGS: tuple[tuple[str, Callable[[Data], Drawn | None]], ...] = (
    ("step-time", draw_step_times),
    ("step-time", draw_errors),
    ("step-time", draw_coverage),
    ("ranking", draw_regret),
    ("memory", draw_memory),
    ("calibrated", draw_calibrated),
)
"""Each with the table beside which it stands."""
NUMBERS = re.compile(r'(?<=[ "MLHVC])(-?\d+\.\d{2})\d+')
MARKERS = re.compile(r'(<g clip-path="[^"]*")>((?:\s*<use [^>]*/>)+)')
STYLE = re.compile(r' style="([^"]*)"')
ATTRIBUTES = re.compile(r'\b(?:d|x|y|points)="[^"]*"')


def figures(data: Data) -> Iterator[tuple[str, Drawn]]:
    """Name of the table, and the figure; call inside ``house_style`` and write each before the next."""
    for table, draw in DRAWINGS:
        drawn = draw(data)
        if drawn is not None:
            yield table, drawn


def drawn_files(data: Data, figure_format: FigureFormat) -> Iterator[tuple[FigureFile, bytes]]:
    """Every figure with the bytes of its file."""
    with house_style():
        for table, drawn in figures(data):
            content = compact_svg(svg_text(drawn)).encode() if figure_format == "svg" else png_bytes(drawn)
            yield FigureFile(table, drawn.title, drawn.caption, f"{drawn.name}.{figure_format}"), content


def compact_svg(text: str) -> str:
    """Coordinates with two decimals, the style of equal markers said once: a third of the size, and no eye sees it."""
    shorter = MARKERS.sub(_one_style, ATTRIBUTES.sub(lambda match: NUMBERS.sub(r"\1", match[0]), text))
    return "\n".join(line.rstrip() for line in shorter.split("\n"))


def _one_style(match: re.Match[str]) -> str:
    styles = set(STYLE.findall(match[2]))
    if len(styles) != 1:
        return match[0]
    return f'{match[1]} style="{styles.pop()}">{STYLE.sub("", match[2])}'
