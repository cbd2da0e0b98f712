"""The report as tables, Markdown, HTML and figures: they say what the data say, alike every time."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

from planner.evidence.accuracy.fitted_rows import FittedRows
from planner.evidence.accuracy.headline import TARGETS
from planner.evidence.accuracy.html_page import LIGHT_AND_DARK, html_page, inline_svg
from planner.evidence.accuracy.markdown import accuracy_page
from planner.evidence.accuracy.plots.gallery import DRAWINGS, compact_svg, drawn_files
from planner.evidence.accuracy.plots.shown import MOST_PANELS, OTHERS, panels_of, thinned
from planner.evidence.accuracy.report import assess, report_data
from planner.evidence.accuracy.report_table import ReportTable
from planner.evidence.accuracy.report_tables import NOT_BEATEN, report_tables
from tests.accuracy_rows import rows_of

LARGEST_SVG_BYTES = 300_000


def changes() -> list[dict[str, str]]:
    """Two sources, one with memory and a run that died; one row that cannot be predicted."""
    rows = [
        {
            "id": f"{source}-{batch}-{tp}",
            "source": f"github:{source}/x",
            "gbs": str(32 * batch),
            "tp": str(tp),
            "step_time_s": repr(0.9 * batch + 0.1 * tp),
            "peak_mem_gib": "40" if source == "first" else "",
        }
        for source in ("first", "second")
        for batch in range(1, 7)
        for tp in (2, 4)
    ]
    died = {"id": "died", "source": "github:first/x", "step_time_s": "", "notes": "OOM", "mbs": "8", "gbs": "256"}
    return [*rows, died, {"id": "lost", "source": "github:second/x", "gbs": ""}]


def report(*, calibrated: bool = True) -> dict[str, Any]:
    fitted = FittedRows({f"first-{batch}-{tp}": "" for batch in (1, 2) for tp in (2, 4)})
    return report_data(assess(rows_of(*changes()), {}, 0.3 if calibrated else None, fitted), "source")


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    return report()


def table(data: dict[str, Any], name: str) -> ReportTable:
    return next(each for each in report_tables(data) if each.name == name)


def test_data_are_plain_and_alike_every_time(data: dict[str, Any]) -> None:
    assert json.dumps(data, allow_nan=False) == json.dumps(report(), allow_nan=False)
    assert data["interval_level"] == 0.9
    assert {row["interval_level"] for row in data["rows"]} == {0.9}


def test_every_row_is_fitted_calibrating_or_judging(data: dict[str, Any]) -> None:
    judged = [row for row in data["rows"] if not row["fitted"]]
    held = [row for row in judged if row["held_out"]]
    assert data["groups"][-1]["predicted"] == len(judged) == 21
    assert data["calibration"]["groups"][-1]["calibrated"]["predicted"] == len(held)
    assert {row["id"] for row in data["rows"] if row["fitted"]} == {f"first-{b}-{t}" for b in (1, 2) for t in (2, 4)}


def test_all_tables_are_rectangular_and_have_one_sentence_each(data: dict[str, Any]) -> None:
    names = [each.name for each in report_tables(data)]
    assert names == [
        *("left-out", "left-out-sources", "targets", "step-time", "ranking", "memory", "out-of-memory"),
        *("ratios", "fit-chance", "memory-quantiles", "apart", "picks", "fitted-or-judged", "calibrated"),
        *("calibrated-memory", "unmapped"),
    ]
    for each in report_tables(data):
        assert {len(row) for row in each.rows} == {len(each.columns)}
        assert each.sentence


def test_a_baseline_that_is_not_beaten_is_marked(data: dict[str, Any]) -> None:
    shown = table(data, "step-time")
    place = shown.columns.index(">MFU")
    for row, group in zip(shown.rows, data["groups"], strict=True):
        assert row[place].endswith(NOT_BEATEN) == (group["baseline"]["mape"] <= group["mape"])
    assert any(NOT_BEATEN in cell for row in shown.rows for cell in row), "these made-up times need no cost model"


def test_targets_say_reached_or_missed_by_their_range(data: dict[str, Any]) -> None:
    assert len(data["headline"]) == len(TARGETS)
    for line in data["headline"]:
        if line["measured"] is None:
            assert line["reached"] is None
        else:
            assert line["reached"] == (line["target"][0] <= line["measured"] <= line["target"][1])
    said = {row[0]: row for row in table(data, "targets").rows}
    assert "step time, untuned sweeps: median" not in said, "no row of such a source"
    assert said["step time, tuned tables: median"][4] in ("reached", "missed")


def test_false_fits_are_not_diluted_by_sources_that_print_survivors_alone() -> None:
    died = {"source": "github:tells/x", "step_time_s": "", "notes": "OOM"}
    rows = rows_of(died, {"source": "github:tells/x"}, *({"source": "github:survivors/x", "tp": tp} for tp in "248"))
    found = report_data(assess(rows, {}), "source")
    assert all(row["fits"] for row in found["rows"]), "the one that died is foreseen to fit"
    (line,) = (line for line in found["headline"] if line["what"] == 'out of memory: false "fits"')
    assert (line["n"], line["measured"], line["reached"]) == (1, 0.5, False)
    assert found["groups"][-1]["oom"]["false_fits"] == 0.2


def test_the_page_holds_every_table_and_figure(data: dict[str, Any]) -> None:
    figures = [each for each, _ in drawn_files(data, "svg")]
    page = accuracy_page(data, figures, "accuracy")
    for each in report_tables(data):
        assert f"\n## {each.title}\n" in page
    for figure in figures:
        assert f"](accuracy/{figure.file_name})" in page
        assert f"*{figure.caption}*" in page
    assert "chosen with 4 of these rows" in page
    assert "Nothing was fitted on these rows" in accuracy_page({**data, "num_fitted": 0})
    assert "![" not in accuracy_page(data)


def test_figures_have_the_same_bytes_every_time_and_are_small(data: dict[str, Any]) -> None:
    first, second = ([(each.file_name, content) for each, content in drawn_files(data, "svg")] for _ in range(2))
    assert first == second
    assert [name for name, _ in first] == [
        *("step-time.svg", "errors.svg", "coverage.svg", "regret.svg", "memory.svg", "step-time-calibrated.svg")
    ]
    assert len(first) == len(DRAWINGS)
    for _, content in first:
        assert len(content) < LARGEST_SVG_BYTES
        root = ElementTree.fromstring(content)
        assert root.attrib["role"] == "img"
        assert b"<dc:date>" not in content


def test_figures_without_calibration_and_without_memory() -> None:
    plain = report(calibrated=False)
    names = [each.file_name for each, _ in drawn_files(plain, "svg")]
    assert names == ["step-time.svg", "errors.svg", "coverage.svg", "regret.svg", "memory.svg"]
    alone = report_data(assess(rows_of({}), {}), "source")
    assert [each.file_name for each, _ in drawn_files(alone, "png")] == ["step-time.png", "errors.png", "coverage.png"]
    died = report_data(assess(rows_of({"step_time_s": "", "notes": "OOM"}), {}, 0.5), "source")
    assert list(drawn_files(died, "svg")) == []


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in ("href", "src", "xlink:href"):
                self.links.append(value or "")


def test_the_html_report_is_one_file_with_unique_ids_and_both_colour_schemes(data: dict[str, Any]) -> None:
    figures = [(each, content.decode()) for each, content in drawn_files(data, "svg")]
    text = html_page(data, figures)
    assert text == html_page(data, figures)
    page = _Page()
    page.feed(text)
    assert len(page.ids) == len(set(page.ids))
    assert all(link.startswith("#") for link in page.links), "nothing from elsewhere"
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert not {"script", "img", "link", "iframe"} & set(page.tags)
    assert (page.tags.count("svg"), page.tags.count("figcaption")) == (len(figures), len(figures))
    assert page.tags.count("table") == len(report_tables(data)) + 1
    assert "@media (prefers-color-scheme: dark)" in text
    drawings = "\n".join(re.findall(r"<svg .*?</svg>", text, re.DOTALL))
    for name, (light, dark) in LIGHT_AND_DARK.items():
        assert text.count(f"--{name}: {light};") == text.count(f"--{name}: {dark};") == 1
        assert light not in drawings.lower()
    for each, _ in figures:
        stem = each.file_name.removesuffix(".svg")
        assert f'aria-labelledby="{stem}-title {stem}-desc"' in text


def test_names_from_the_file_cannot_break_out_of_a_page() -> None:
    evil = "<script>alert(1)</script>|*x*"
    rows = rows_of({"source": evil}, {"source": evil, "tp": "4"}, {"source": evil, "device": f"{evil} 80GB"})
    found = report_data(assess(rows, {}), "source")
    figures = [(each, content.decode()) for each, content in drawn_files(found, "svg")]
    assert "<script" not in html_page(found, figures)
    assert "|*x*" not in accuracy_page(found)
    assert "<script" not in accuracy_page(found)


def test_inlined_drawings_do_not_share_ids() -> None:
    svg = '<?xml?><!DOCTYPE x><svg aria-labelledby="title desc"><title id="title"/><g id="a" style="fill: #FFFFFF"/>'
    svg += '<use href="#a"/><g clip-path="url(#a)"/></svg>'
    text = inline_svg(svg, "one")
    assert text == (
        '<svg aria-labelledby="one-title one-desc"><title id="one-title"/><g id="one-a" style="fill: var(--paper)"/>'
        '<use href="#one-a"/><g clip-path="url(#one-a)"/></svg>'
    )


def test_compact_drawings_keep_their_shapes() -> None:
    uses = ('<use x="1.23456" y="2" style="fill: #000"/>', '<use x="3" y="4" style="fill: #000"/>')
    svg = "\n".join(('<g clip-path="url(#c)">', *uses, "</g>"))
    assert compact_svg(svg) == (
        '<g clip-path="url(#c)" style="fill: #000">\n<use x="1.23" y="2"/>\n<use x="3" y="4"/>\n</g>'
    )
    mixed = svg.replace("#000", "#111", 1)
    assert compact_svg(mixed).count("style=") == 2
    assert compact_svg('<text>1.23456</text><path d="M 1.23456 2.5 L -3.14159 4"/>') == (
        '<text>1.23456</text><path d="M 1.23 2.5 L -3.14 4"/>'
    )


def test_small_groups_share_a_panel() -> None:
    rows = [{"group": f"g{number}"} for number in range(10) for _ in range(10 - number)]
    panels = panels_of(rows)
    assert list(panels) == [*(f"g{number}" for number in range(MOST_PANELS - 1)), OTHERS]
    assert sum(len(own) for own in panels.values()) == len(rows)
    assert list(panels_of(rows[:19])) == ["g0", "g1"]
    assert list(panels_of([{"group": "a"}] * 5 + [{"group": "b"}], 3)) == ["a", OTHERS]


def test_markers_that_cover_each_other_are_drawn_once() -> None:
    import numpy as np

    x = np.array([1.0, 1.0001, 5.0])
    assert thinned(x, x, 0.5, 10.0).tolist() == [0, 2]
