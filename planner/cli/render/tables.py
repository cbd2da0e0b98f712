"""What does a table look like?  One style for all: no frames, right-aligned numbers, dim headings."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from planner.cli.output import can_encode

Cell = str | Text


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Table:
    """A table; a column name that starts with ``>`` is right-aligned, one that ends with ``…`` may be cut."""
    style = box.SIMPLE_HEAD if can_encode("─", sys.stdout) else box.ASCII2
    made = Table(
        title=title or None, title_justify="left", title_style="bold", box=style, pad_edge=False, show_edge=False
    )
    for column in columns:
        right = column.startswith(">")
        name = column.removeprefix(">")
        made.add_column(
            name.removesuffix("…"),
            justify="right" if right else "left",
            no_wrap=right,
            overflow="fold",
            header_style="dim",
        )
    for row in rows:
        made.add_row(*row)
    return made


def facts(rows: Sequence[tuple[str, str]]) -> Table:
    """Names and values below each other, without headings."""
    made = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 2))
    made.add_column(style="dim", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in rows:
        made.add_row(name, value)
    return made


def heading(text: str) -> Text:
    """A section title with a blank line above."""
    return Text(f"\n{text}", style="bold")
