"""All figures of a profile on one page with its tables; no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from profiles.html_page import PageTable, bullets, table_markup, whole_page
from profiles.plots.gallery import FigureFile
from profiles.plots.table_words import file_stem

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 76rem; margin: 2rem auto;
       padding: 0 1rem; }
table { border-collapse: collapse; font-size: .9rem; margin: .5rem 0 1.5rem; }
.wide { overflow-x: auto; }
caption { text-align: left; font-weight: bold; padding: .3rem 0; }
th, td { padding: .2rem .7rem .2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid #d9d9d9; }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1rem 0 2rem; }
figure img { max-width: 100%; height: auto; }
figcaption { max-width: 60rem; color: #404040; }
code { background: #f2f2f2; padding: 0 .25rem; }
a { color: #0058a3; }
"""


def gallery_page(
    title: str, facts: Sequence[str], tables: Iterable[PageTable], notes: Sequence[str], figures: Sequence[FigureFile]
) -> str:
    """The whole page: facts, tables, notes (what is missing), a list of the figures, the figures by section."""
    sections = list(dict.fromkeys(figure.section for figure in figures))
    parts = [
        f"<h1>{escape(title)}</h1>",
        *(f"<p>{escape(fact)}</p>" for fact in facts),
        *(table_markup(each) for each in tables if each.rows),
    ]
    if notes:
        parts += ["<h2>What is missing for training plans</h2>", bullets(escape(note) for note in notes)]
    if figures:
        parts += ["<h2>Figures</h2>", _contents(sections, figures)]
    for section in sections:
        parts.append(f'<h2 id="{_anchor(section)}">{escape(section)}</h2>')
        parts += [_figure(figure) for figure in figures if figure.section == section]
    return whole_page(title, _STYLE, parts)


def _contents(sections: Sequence[str], figures: Sequence[FigureFile]) -> str:
    lines = []
    for section in sections:
        links = ", ".join(
            f'<a href="#{_anchor(figure.file_name)}">{escape(figure.title.removeprefix(section).lstrip(": "))}</a>'
            for figure in figures
            if figure.section == section
        )
        lines.append(f'<a href="#{_anchor(section)}">{escape(section)}</a>: {links}')
    return bullets(lines)


def _figure(figure: FigureFile) -> str:
    caption, source = escape(figure.caption), escape(figure.file_name, quote=True)
    return (
        f'<figure id="{_anchor(figure.file_name)}"><a href="{source}"><img src="{source}" loading="lazy"'
        f' alt="{escape(figure.caption, quote=True)}"></a><figcaption>{caption}</figcaption></figure>'
    )


def _anchor(name: str) -> str:
    return "f-" + file_stem(name)
