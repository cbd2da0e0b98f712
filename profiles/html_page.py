"""Pages of one HTML file: a head with its own style sheet, tables and lists; no scripts, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table of a page; a column whose name starts with ``>`` is right-aligned."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]


def whole_page(title: str, sheet: str, parts: Iterable[str]) -> str:
    """The file: ``parts`` are the markup of its body, ``sheet`` is its style."""
    viewport = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    head = f'<meta charset="utf-8">{viewport}<title>{escape(title)}</title><style>{sheet}</style>'
    body = "\n".join(parts)
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body><main>\n{body}\n</main></body></html>\n'


def table_markup(table: PageTable, *, caption: bool = True, row_heads: bool = False) -> str:
    """The table in a region that scrolls sideways; ``row_heads``: whether the first cell of a row names the row."""
    kinds = [' class="number"' if column.startswith(">") else "" for column in table.columns]
    head = "".join(
        f'<th scope="col"{kind}>{escape(name.lstrip(">|"))}</th>'
        for name, kind in zip(table.columns, kinds, strict=True)
    )
    rows = "\n".join(f"<tr>{_cells(row, kinds, row_heads)}</tr>" for row in table.rows)
    label = escape(table.title, quote=True)
    return (
        f'<div class="wide" role="region" aria-label="{label}" tabindex="0"><table>'
        f"{f'<caption>{label}</caption>' if caption else ''}<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def _cells(row: Sequence[str], kinds: Sequence[str], row_heads: bool) -> str:
    cells = [f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(row, kinds, strict=True)]
    if row_heads:
        cells[0] = f'<th scope="row">{escape(row[0])}</th>'
    return "".join(cells)


def bullets(lines: Iterable[str]) -> str:
    """A list whose lines are markup."""
    return "<ul>\n" + "\n".join(f"<li>{line}</li>" for line in lines) + "\n</ul>"
