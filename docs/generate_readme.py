"""The measured figures of the README, and the page of all benchmarks.

From the newest run of every benchmark in ``benchmarks/results`` and the targets of ``docs/reference/accuracy.md``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.check_times import RESULTS as CHECKS
from benchmarks.check_times import TARGETS_S, TASKS
from benchmarks.table import quantity
from docs.generate import page, table
from docs.generate_profiles import is_prediction

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
ACCURACY = ROOT / "docs" / "reference" / "accuracy.md"
SHOWN_PLANS = ("llama-70b-64", "llama-405b-1k", "llama-405b-16k", "deepseek-v3-512", "deepseek-v3-2048")
SHOWN_TARGETS = (
    "left out whole, step time: median",
    "left out whole, stated 90 % interval holds",
    "left out whole, picks within 5 % of the best",
    "left out whole, memory: median",
    "left out whole, out of memory: balanced accuracy",
    "step time, untuned sweeps: median",
    "step time, tuned tables: median",
    "ranking: picks within 5 % of the best",
    "peak memory: mean",
    'out of memory: false "fits"',
)


def readme() -> str:
    """The README with its measured sections as they should be."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return _with(text, "figures", figures_section())


def _with(text: str, name: str, section: str) -> str:
    """The text with what stands between the two markers of a section replaced."""
    between = re.compile(rf"(<!-- {name}:begin -->\n).*?(<!-- {name}:end -->)", re.DOTALL)
    return between.sub(lambda match: f"{match[1]}{section}\n{match[2]}", text)


def figures_section() -> str:
    """Figures that matter, those that fall short too: cold plans, errors on rows of which nothing was chosen."""
    newest = _newest()
    plans = [(_linked(each["task"]), *_row(each)[1:3], _row(each)[4]) for each in map(newest.get, SHOWN_PLANS) if each]
    errors = [_target_row(words) for words in SHOWN_TARGETS]
    return table(("figure", ">target", ">measured", ""), [*plans, *(row for row in errors if row)])


def _linked(task: str) -> str:
    return f"`meshwright plan` from process start, {task.removeprefix('cold plan, ')}"


def _target_row(words: str) -> tuple[str, ...] | None:
    """A row of the accuracy page's table of targets, before calibration; None while there is no such page."""
    text = ACCURACY.read_text(encoding="utf-8") if ACCURACY.exists() else ""
    found = re.search(rf"^\| {re.escape(words)} \| ([^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|", text, re.MULTILINE)
    return None if found is None else (f"{words} ({found[1].strip()} runs or groups)", *found.groups()[1:])


def benchmarks_page() -> str:
    """The newest measurement of every benchmark, and on what it was measured."""
    measured = _newest()
    used = list({run["measured_at"]: run for _, run in _with_runs().values()}.values())
    return page(
        "Benchmarks",
        "`make bench` measures them; `benchmarks/results` keeps every run. A target is the issue's or a published"
        " figure's; what misses it says so.",
        table(("task", ">target", ">measured", ">CPU time", ""), [_row(each) for each in measured.values()]),
        _place(used),
        *checks_section(),
    )


def checks_section() -> list[str]:
    """How long the checks take, from the newest run of each; nothing while none is kept."""
    newest = {
        run["what"]: run for run in (json.loads(path.read_text("utf-8")) for path in sorted(CHECKS.glob("*.json")))
    }
    if not newest:
        return []
    rows = [_check_row(what, newest[what]) for what in TASKS if what in newest]
    return [
        "## Checks",
        "`python -m benchmarks.check_times` measures them; jobs run side by side, so that their times overlap.",
        table(("task", ">target", ">measured", ">CPU time", "jobs", "when and where", ""), rows),
    ]


def _check_row(what: str, run: dict[str, Any]) -> tuple[str, ...]:
    jobs = ", ".join(f"{name} {quantity(seconds, 's')}" for name, seconds in sorted(run["jobs_s"].items()))
    facts = run["machine"]
    place = (
        f"{run['measured_at'][:10]}, {facts['cores']} cores ({facts['processor']}), load {facts['load'][0]:.1f} before"
    )
    wall_s, target_s = run["wall_s"], TARGETS_S[what]
    return (
        TASKS[what],
        f"<= {quantity(target_s, 's')}",
        quantity(wall_s, "s"),
        quantity(run["cpu_s"], "s"),
        jobs,
        place,
        "reached" if wall_s <= target_s else "missed",
    )


def _newest() -> dict[str, dict[str, Any]]:
    """The newest measurement of every benchmark, by its name."""
    return {name: each for name, (each, _) in _with_runs().items()}


def _with_runs() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    newest: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for run in _runs():
        newest |= {each["name"]: (each, run) for each in run.get("measurements", ()) if not is_prediction(each)}
    return newest


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


def _machine(facts: dict[str, Any]) -> str:
    """Which cores of what: an older run had one for everything."""
    plans = facts.get("cores_of_cold_plans", 1)
    beside = ", cold plans two" if plans == 2 else ""
    return f"one core of {facts['cores']}{beside} ({facts['processor']})"


def _place(runs: list[dict[str, Any]]) -> str:
    """When and on what: all machines, all days, the range of loads."""
    days = sorted({run["measured_at"][:10] for run in runs})
    machines = sorted({_machine(run["machine"]) for run in runs})
    loads = sorted(run["machine"]["load"][0] for run in runs)
    return (
        f"Medians of {' and '.join(days)} on {' and '.join(machines)}, load {loads[0]:.1f} to {loads[-1]:.1f}. Where"
        " others use the machine too (load above 1), CPU time says more than wall time."
    )
