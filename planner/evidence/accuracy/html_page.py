"""The accuracy report as one HTML file: tables and drawings inside, no scripts, nothing from elsewhere.

Colours follow the reader's light or dark setting: the drawings' colours become CSS variables.  Each drawing has a title
and a sentence for screen readers, and stands beside the table that says the same in numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from planner.evidence.accuracy.figure import FigureFile
from planner.evidence.accuracy.report_table import ReportTable, percent
from planner.evidence.accuracy.report_tables import NOT_BEATEN, factors_table, report_tables
from planner.version import __version__
from profiles.html_page import PageTable, bullets, table_markup, whole_page
from profiles.plots import style

LIGHT_AND_DARK = {
    "paper": ("#ffffff", "#15171b"),
    "ink": (style.INK, "#e9e9e6"),
    "grey": (style.GREY, "#a9adb3"),
    "pale": (style.PALE, "#3a3e45"),
    "blue": (style.BLUE, "#62b5ea"),
    "orange": (style.ORANGE, "#ff9650"),
    "green": (style.GREEN, "#45c79f"),
    "purple": (style.PURPLE, "#e09cc6"),
    "yellow": (style.YELLOW, "#e3ba48"),
    "sky": (style.SKY, "#8fcaf0"),
}
SHEET = """
:root { color-scheme: light dark; LIGHT }
@media (prefers-color-scheme: dark) { :root { DARK } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 76rem;
       margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; margin: .5rem 0 1rem; }
th, td { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--pale); }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tbody tr:last-child td, tbody tr:last-child th { border-bottom-color: var(--ink); }
th[scope=row] { font-weight: normal; }
figure { margin: 1rem 0 2rem; }
figure svg { max-width: 100%; height: auto; }
figcaption, .said { max-width: 60rem; color: var(--grey); }
a { color: var(--blue); }
"""
PROLOGUE = re.compile(r"^.*?(?=<svg )", re.DOTALL)
METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
IDENTITY = re.compile(r'\bid="([^"]+)"')


def html_page(data: Mapping[str, Any], figures: Sequence[tuple[FigureFile, str]]) -> str:
    """The whole page; ``figures``: each with its SVG."""
    tables = report_tables(data)
    parts = [
        f"<h1>Accuracy of predictions on {len(data['rows']):,} measured runs</h1>",
        *_facts(data),
        _contents(tables),
    ]
    for table in tables:
        parts.append(f'<h2 id="{table.name}">{escape(table.title)}</h2>\n<p class="said">{escape(table.sentence)}</p>')
        parts.append(_table(table))
        if table.name == "calibrated":
            parts.append(f"<h3>{escape(factors_table(data).title)}</h3>\n{_table(factors_table(data))}")
        parts += [_figure(each, svg) for each, svg in figures if each.table == table.name]
    return whole_page("Accuracy on measured runs", _sheet(), parts)


def _facts(data: Mapping[str, Any]) -> list[str]:
    chosen = (
        f"Constants of the cost model were chosen with {data['num_fitted']:,} of the rows: figures are of the"
        f" {data['num_judged']:,} others where nothing else is said."
        if data["num_fitted"]
        else "No constant of the cost model was chosen with any of these rows."
    )
    return [
        f"<p>Meshwright {escape(__version__)}. Predictions from datasheets; error = |predicted / measured - 1|, bias ="
        f" geometric mean of predicted / measured, minus 1. {escape(chosen)} Intervals are stated at"
        f" {percent(data['interval_level'])}. {escape(NOT_BEATEN)} marks a constant utilization that is not beaten.</p>"
    ]


def _contents(tables: Sequence[ReportTable]) -> str:
    links = bullets(f'<a href="#{table.name}">{escape(table.title)}</a>' for table in tables)
    return f'<nav aria-label="Contents">{links}</nav>'


def _table(table: ReportTable) -> str:
    return table_markup(PageTable(table.title, table.columns, table.rows), caption=False, row_heads=True)


def _figure(figure: FigureFile, svg: str) -> str:
    drawing = inline_svg(svg, figure.file_name.removesuffix(".svg"))
    return f"<figure>{drawing}<figcaption>{escape(figure.caption)}</figcaption></figure>"


def inline_svg(svg: str, name: str) -> str:
    """An SVG that stands inside a page: ids of its own, no prologue, colours that follow the page."""
    text = METADATA.sub("", PROLOGUE.sub("", svg, count=1))
    for identity in set(IDENTITY.findall(text)):
        own = f"{name}-{identity}"
        text = text.replace(f'id="{identity}"', f'id="{own}"').replace(f"url(#{identity})", f"url(#{own})")
        text = text.replace(f'href="#{identity}"', f'href="#{own}"')
    text = text.replace('aria-labelledby="title desc"', f'aria-labelledby="{name}-title {name}-desc"')
    for variable, (light, _) in LIGHT_AND_DARK.items():
        text = re.sub(rf"{light}\b", f"var(--{variable})", text, flags=re.IGNORECASE)
    return text.strip()


def _sheet() -> str:
    light, dark = ("".join(f"--{name}: {pair[place]}; " for name, pair in LIGHT_AND_DARK.items()) for place in (0, 1))
    return SHEET.replace("LIGHT", light, 1).replace("DARK", dark, 1)
