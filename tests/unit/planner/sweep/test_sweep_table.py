"""Lines of a sweep: the same columns for each, in the order of the grid, with a price and without."""

from __future__ import annotations

import csv
import io
import json

import pytest

from planner.answers.sweep.answer import Answer, missing, planned, refused, without_plan
from planner.answers.sweep.table import csv_text, line, lines, summary
from planner.answers.sweep.task import Outcome
from planner.cli.output import render_text
from planner.cli.render.sweep import sweep_report
from planner.search.find import find_plan
from tests.sweep_cells import QUICK, cells_of, small_question


def sample() -> list[Answer]:
    """A planned, a refused, a missing and an infeasible cell, not in order."""
    cells = cells_of(small_question(models=("llama-3.2-1b",), device_counts=(8, 12, 16, 24)))
    problem = cells[0].problem
    assert problem is not None
    plan = find_plan(problem, QUICK)
    nothing = Outcome("key", "infeasible", what="nothing fits, at all", hint="more; devices", binding="device memory")
    return [
        without_plan(cells[3], nothing),
        missing(cells[2]),
        refused(cells[1]),
        planned(cells[0], plan, source="searched", wall_s=0.5),
    ]


def test_lines_are_in_the_order_of_the_grid_with_equal_columns() -> None:
    rows = lines(sample())
    assert [row["num_devices"] for row in rows] == [8, 12, 16, 24]
    assert [row["outcome"] for row in rows] == ["planned", "refused", "missing", "infeasible"]
    assert len({tuple(row) for row in rows}) == 1
    json.dumps(rows, allow_nan=False)


def test_the_summary_counts_every_cell_once() -> None:
    counted = summary(lines(sample()))
    assert counted["cells"] == 4
    assert sum(counted[kind] for kind in counted if kind not in {"cells", "stored"}) == 4
    assert (counted["planned"], counted["refused"], counted["missing"], counted["stored"]) == (1, 1, 1, 0)


def test_cost_follows_from_price_devices_and_rate() -> None:
    answer = sample()[3]
    row = line(answer, 3.6)
    assert row["cost_per_step"] == pytest.approx(8 * row["step_time_s"] * 3.6 / 3600)
    tokens = 64 * 2048
    assert row["cost_per_million_tokens"] == pytest.approx(row["cost_per_step"] / tokens * 1e6)
    assert line(answer)["cost_per_step"] is None


def test_csv_is_read_back() -> None:
    rows = lines(sample(), 2.0)
    back = list(csv.DictReader(io.StringIO(csv_text(rows))))
    assert [list(each) for each in back] == [list(row) for row in rows]
    assert float(back[0]["step_time_s"]) == rows[0]["step_time_s"]
    assert json.loads(back[0]["strategy"]) == rows[0]["strategy"]
    assert back[3]["reason"] == "nothing fits, at all"
    assert [each["fits"] for each in back] == ["true", "", "", "false"]


def test_people_see_every_cell_and_every_reason() -> None:
    rows = lines(sample())
    text = render_text(sweep_report({"cells": rows, "summary": {**summary(lines(sample())), "wall_s": 1.25}}))
    assert "every cell: model llama-3.2-1b, cluster dgx-h100, sequence 2,048, batch 64" in text
    assert "nothing fits, at all; hint: more; devices" in text
    assert "not reached: the sweep ended before" in text
    assert "4 cells: 1 planned, 1 infeasible, 1 refused, 1 missing; 1.25 s" in text
    assert f"batch 64, back-end {rows[0]['backend']}" in text
    assert rows[0]["plan_id"][:12] in text
    assert "cost" not in text
    priced = lines(sample(), 2.0)
    assert "cost" in render_text(
        sweep_report({"cells": priced, "summary": {**summary(lines(sample())), "wall_s": 1.0}})
    )


def test_plans_of_several_back_ends_name_theirs() -> None:
    (planned_row, refused_row, *_) = lines(sample())
    other = {**planned_row, "num_devices": 32, "backend": "torchtitan", "release": "0.2.2"}
    rows = [{**planned_row, "backend": "megatron", "release": "0.19.2"}, refused_row, other]
    text = render_text(sweep_report({"cells": rows, "summary": {**summary(rows), "wall_s": 1.0}}))
    head, *_ = (each.split() for each in text.splitlines() if "MFU" in each)
    assert head[:3] == ["devices", "fits", "back-end"]
    names = [words[2] for words in (each.split() for each in text.splitlines()) if words[1:2] == ["yes"]]
    assert names == ["megatron", "torchtitan==0.2.2"]
    assert "every cell: model llama-3.2-1b, cluster dgx-h100, sequence 2,048, batch 64\n" in text
