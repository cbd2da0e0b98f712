"""Which measured figures does the README show?

The newest of every benchmark, from ``benchmarks/results``; the errors of looked-up times, from the newest run of them;
the targets and step times of ``docs/reference/accuracy.md``, once that page is there.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.table import quantity
from docs.generate import table
from docs.generate_profiles import SUMMARY_HEAD, is_prediction, newest_prediction_run, summary_rows

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
ACCURACY = ROOT / "docs" / "reference" / "accuracy.md"
SHOWN_FIGURE = re.compile(r"^!\[([^\]]*)\]\(([^)]*errors\.svg)\)$", re.MULTILINE)


def readme() -> str:
    """The README with its measured sections as they should be."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    sections = {"profiles": profile_section, "benchmarks": benchmark_section, "accuracy": accuracy_section}
    for name, section in sections.items():
        text = _with(text, name, section())
    return text


def _with(text: str, name: str, section: str) -> str:
    """The text with what stands between the two markers of a section replaced."""
    between = re.compile(rf"(<!-- {name}:begin -->\n).*?(<!-- {name}:end -->)", re.DOTALL)
    return between.sub(lambda match: f"{match[1]}{section}\n{match[2]}", text)


def accuracy_section() -> str:
    """Targets and step times of the accuracy page, a figure, a link to the rest; empty while there is no such page."""
    page = ACCURACY.read_text(encoding="utf-8") if ACCURACY.exists() else ""
    parts = [found for title in ("Against the targets", "Step time") if (found := _section(page, title))]
    if not parts:
        return ""
    figures = [f"![{words}](docs/reference/{path})" for words, path in SHOWN_FIGURE.findall(page)]
    link = (
        "Memory, ranking, calibration, what the columns mean, and what was left out:"
        " [accuracy](docs/reference/accuracy.md); `make accuracy` makes all of it again."
    )
    return "\n\n".join([*parts, *figures[:1], link])


def _section(page: str, title: str) -> str:
    """What a section says before its figures: a sentence and a table."""
    found = re.search(rf"^## {title}$\s+(.*?)(?=^## |^!\[|\Z)", page, re.MULTILINE | re.DOTALL)
    return "" if found is None else f"**{title}.** {found[1].strip()}"


def profile_section() -> str:
    """Errors of times that were looked up where nothing was measured."""
    run = newest_prediction_run(RESULTS)
    if run is None:
        return "No run is kept; `python -m benchmarks --only prediction --write` makes one."
    return table(SUMMARY_HEAD[:6], [row[:6] for row in summary_rows(run)])


def benchmark_section() -> str:
    """A table of the newest measurement of every benchmark, and on what it was measured."""
    newest: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for run in _runs():
        newest |= {each["name"]: (each, run) for each in run.get("measurements", ()) if not is_prediction(each)}
    rows = [_row(each) for each, _ in newest.values()]
    used = list({run["measured_at"]: run for _, run in newest.values()}.values())
    return table(("task", ">target", ">measured", ">CPU time", ""), rows) + "\n\n" + _place(used)


def _runs() -> list[dict[str, Any]]:
    """All runs, oldest first."""
    files = sorted(RESULTS.glob("*.json"))
    return [run for file in files for run in json.loads(file.read_text(encoding="utf-8"))["runs"]]


def _row(each: dict[str, Any]) -> tuple[str, ...]:
    sign = ">=" if each["larger_is_better"] else "<="
    middle = sorted(each["cpu_s"])[len(each["cpu_s"]) // 2] if each["cpu_s"] else None
    return (
        each["task"],
        f"{sign} {quantity(each['target'], each['unit'])}",
        quantity(each["measured"], each["unit"]),
        "" if middle is None else quantity(middle, "s"),
        "reached" if each["reached"] else "missed",
    )


def _place(runs: list[dict[str, Any]]) -> str:
    """When and on what: all machines, all days, the range of loads."""
    days = sorted({run["measured_at"][:10] for run in runs})
    machines = sorted({f"one core of {run['machine']['cores']} ({run['machine']['processor']})" for run in runs})
    loads = sorted(run["machine"]["load"][0] for run in runs)
    return (
        f"Medians of {' and '.join(days)} on {' and '.join(machines)}, load {loads[0]:.1f} to {loads[-1]:.1f}. Where"
        " others use the machine too (load above 1), CPU time says more than wall time."
    )
