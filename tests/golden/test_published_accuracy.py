"""The built-in report says what this release predicts: UPDATE_GOLDEN=1 rewrites it, and the difference is reviewed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from planner.evidence.accuracy.report_document import published_report
from planner.evidence.accuracy.report_groups import report_groups
from tests.command_line import REPOSITORY, run_here

REPORT = REPOSITORY / "planner" / "evidence" / "accuracy" / "published_report.json"
ROWS = Path("benchmarks") / "published" / "training_runs.csv"
LARGEST_BYTES = 300_000


def near(value: Any) -> Any:
    """The same to nine digits: the last ones may differ from machine to machine."""
    if isinstance(value, dict):
        return {key: near(each) for key, each in value.items()}
    if isinstance(value, list):
        return [near(each) for each in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def test_the_report_is_what_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    ran = run_here("accuracy", str(ROWS), "-o", "json", "--quiet")
    assert ran.exit_code == 0, ran.stderr
    if os.environ.get("UPDATE_GOLDEN"):
        REPORT.write_text(ran.stdout, encoding="utf-8")
    assert near(ran.json()) == near(json.loads(REPORT.read_text(encoding="utf-8"))), (
        "`make accuracy` writes it again; then look at the difference"
    )
    assert REPORT.stat().st_size < LARGEST_BYTES


def test_figures_by_group_are_those_that_the_command_computes() -> None:
    report = published_report()
    names = ("group", "n", "mape", "median_ape", "p90_ape", "bias", "interval_coverage")
    theirs = [{name: group[name] for name in names} for group in report.groups]
    assert near(report_groups(report)["source"]) == near(theirs)
    assert {each["group"] for each in report_groups(report)["device"]} == {"A100-SXM-80GB", "H100-SXM-80GB", "all"}
