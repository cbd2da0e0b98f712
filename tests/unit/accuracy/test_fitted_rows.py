"""Rows that chose constants judge nothing: how they are named, and that the committed list follows its rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.fitting_rows import PERCENT, fitting_rows_text, may_fit
from planner.cli.commands.accuracy import read_truth_files
from planner.errors import DocumentInvalid
from planner.evidence.accuracy.fitted_rows import (
    COMMITTED,
    committed_fitted_rows,
    fitted_rows_text,
    read_fitted_rows,
    row_digest,
)
from planner.evidence.accuracy.report import assess, report_data
from tests.accuracy_rows import SHARED, rows_of

PUBLISHED = Path(__file__).parents[3] / "benchmarks" / "published" / "training_runs.csv"


def test_a_list_holds_its_rows_and_no_other_row_of_the_same_name() -> None:
    (row,) = rows_of({"id": "same"})
    (other,) = rows_of({"id": "same", "step_time_s": "9"})
    known = read_fitted_rows(fitted_rows_text([row], "said"), "list")
    assert known.holds(row)
    assert not known.holds(other), "an equal id in another file must not hide a row from the judges"
    assert row_digest(row) != row_digest(other)


def test_a_bare_id_means_every_row_of_that_name() -> None:
    known = read_fitted_rows("\ufeff# mine\r\n\r\nrun-1\r\n", "list")
    assert [known.holds(row) for row in rows_of({}, {}, {})] == [False, True, False]


@pytest.mark.parametrize("line", ["run\tnothexad", "run\t1234", "\t12345678", "run\t12345678\tmore"])
def test_other_lines_are_refused_with_their_number(line: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        read_fitted_rows(f"# said\n{line}\n", "list")
    assert caught.value.where == "list:2"


def test_line_numbers_and_file_order_do_not_matter() -> None:
    first, second = rows_of({"id": "a"}, {"id": "b"})
    turned = rows_of({"id": "b"}, {"id": "a"})
    assert [row_digest(first), row_digest(second)] == [row_digest(turned[1]), row_digest(turned[0])]


def test_groups_stay_together_and_judges_never_fit() -> None:
    rows = rows_of(
        *({"id": f"{batch}-{tp}", "gbs": str(batch), "tp": str(tp)} for batch in range(1, 200) for tp in (1, 2))
    )
    chosen: dict[str, set[bool]] = {row.id.split("-")[0]: set() for row in rows}
    for row in rows:
        chosen[row.id.split("-")[0]].add(may_fit(row, {}))
    assert all(len(found) == 1 for found in chosen.values())
    share = sum(may_fit(row, {}) for row in rows) / len(rows)
    assert abs(share - PERCENT / 100) < 0.12
    (judge,) = rows_of({"source": "arXiv:2205.05198 Table 5"})
    assert not any(may_fit(judge, {judge.id: f"group {number}"}) for number in range(50))


def test_the_committed_list_is_what_its_rule_gives() -> None:
    names = ("training_dev", "oom_dev", "training_dev_2", "oom_dev_2")
    files = [SHARED / f"{name}.csv" for name in names]
    if not all(file.is_file() for file in files):
        pytest.skip(f"the measured runs are not in {SHARED}")
    assert COMMITTED.read_text(encoding="utf-8") == fitting_rows_text(*read_truth_files([*files, PUBLISHED]))


def test_no_row_of_an_unknown_file_is_in_the_committed_list() -> None:
    known = committed_fitted_rows()
    assert known.digests
    assert all(known.digests.values()), "a bare id would hide rows of other files"
    assert not any(known.holds(row) for row in rows_of(*({"id": name} for name in list(known.digests)[:20])))


def test_fitted_rows_stand_apart_in_every_figure() -> None:
    rows = rows_of({"tp": "1"}, {"tp": "2"}, {"tp": "4"}, {"tp": "8"})
    known = read_fitted_rows("run-0\nrun-3\n", "list")
    data = report_data(assess(rows, {}, None, known), "source")
    assert [row["fitted"] for row in data["rows"]] == [True, False, False, True]
    assert (data["num_fitted"], data["num_judged"]) == (2, 2)
    assert [group["n"] for group in data["groups"]] == [2, 2]
    assert [group["n"] for group in data["fitted_groups"]] == [2, 2]
    assert [each["num_runs"] for each in data["ranking_groups"]] == [2]
    alone = report_data(assess(rows[1:3], {}), "source")
    assert alone["groups"][0]["mape"] == data["groups"][0]["mape"]
    assert alone["fitted_groups"] == []
