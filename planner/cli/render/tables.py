"""The style of tables, one for all: no frames, right-aligned numbers, dim headings."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from planner.cli.output import can_encode

Cell = str | Text
WIDEST = 10_000
"""Columns to measure a table in, as if nothing had to be folded."""


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Table:
    """A table; a column whose name starts with ``>`` is right-aligned, with ``|`` it is a picture and never cut."""
    style = box.SIMPLE_HEAD if can_encode("─", sys.stdout) else box.ASCII2
    made = Table(
        title=title or None, title_justify="left", title_style="bold", box=style, pad_edge=False, show_edge=False
    )
    for index, column in enumerate(columns):
        name = column.lstrip(">|")
        right, picture = column.startswith(">"), column.startswith("|")
        widest = max((len(row[index]) for row in rows), default=0) if right or picture else 0
        made.add_column(
            name,
            justify="right" if right else "left",
            no_wrap=right or picture,
            overflow="fold",
            header_style="dim",
            min_width=max(widest, len(name)),
        )
    for row in rows:
        made.add_row(*row)
    return made


@dataclass(frozen=True, slots=True)
class WideOrNarrow:
    """Two forms of a table; the wide one where nothing of it must be folded."""

    wide: Table
    narrow: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The form that fits (Rich calls this)."""
        needed = Measurement.get(console, options.update_width(WIDEST), self.wide).maximum
        yield self.wide if needed <= options.max_width else self.narrow


def facts(rows: Sequence[tuple[str, str]]) -> Table:
    """Names and values below each other, without headings."""
    made = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 2))
    made.add_column(style="dim", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in rows:
        made.add_row(name, value)
    return made


def bullets(lines: Sequence[str]) -> Table:
    """Sentences below each other; a long one continues under its own text."""
    made = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 1))
    made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    for line in lines:
        made.add_row("•" if can_encode("•", sys.stdout) else "-", line)
    return made


def heading(text: str) -> Text:
    """A section title with a blank line above."""
    return Text(f"\n{text}", style="bold")
