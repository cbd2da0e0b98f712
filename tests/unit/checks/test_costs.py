"""Which dear tests a quick run takes."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from tests import sampling
from tests.checks.costs import BUDGET_S, DEAR_S, FILE_BUDGET_S, costs_s, function_and_case, left_out, table_of


class Case:
    """What pytest collects, as far as the choice reads it."""

    def __init__(self, nodeid: str, *, budget: float | None = None, **params: object) -> None:
        self.nodeid = nodeid
        self.callspec = SimpleNamespace(params=params)
        self._budget = budget

    def get_closest_marker(self, name: str) -> object | None:
        return SimpleNamespace(args=(self._budget,)) if name == "budget" and self._budget is not None else None


def cases(number: int, **given: Any) -> list[Case]:
    return [Case(f"f.py::test[{place}]", **given) for place in range(number)]


def taken(items: list[Case], costs: Mapping[str, float]) -> list[str]:
    gone = left_out(items, {"f.py::test": costs})
    return [item.nodeid for item in items if item.nodeid not in gone]


def test_as_many_cases_as_fit_are_taken() -> None:
    assert len(taken(cases(20), {"": 0.5})) == int(BUDGET_S / 0.5)
    assert len(taken(cases(20, budget=10.0), {"": 1.0})) == 10
    assert len(taken(cases(2), {"": 1.0})) == 2


def test_the_functions_of_a_file_share_its_seconds() -> None:
    items = [Case(f"f.py::test_{function}[{case}]") for function in range(12) for case in range(20)]
    table = {f"f.py::test_{function}": {"": 0.1} for function in range(12)}
    assert len(items) - len(left_out(items, table)) == 12 * int(FILE_BUDGET_S / 12 / 0.1)
    marked = [Case(f"f.py::marked[{case}]", budget=9.0) for case in range(20)]
    gone = left_out([*items, *marked], table | {"f.py::marked": {"": 0.5}})
    assert len(marked) - len(gone & {each.nodeid for each in marked}) == 18
    assert gone - {each.nodeid for each in marked} == left_out(items, table)


def test_what_no_line_names_is_taken_whole() -> None:
    items = [Case(f"g.py::test[{place}]") for place in range(30)]
    assert left_out(items, {"f.py::test": {"": 9.0}}) == set()


def test_cheap_cases_are_taken_beside_a_dear_one() -> None:
    costs = {"": 0.1, "0": 100.0}
    assert taken(cases(5), costs) == [f"f.py::test[{place}]" for place in range(1, 5)]


def test_a_case_dearer_than_the_budget_runs_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = 0
    for seed in range(300):
        monkeypatch.setenv(sampling.SEED, str(seed))
        ran += bool(taken([Case("f.py::test")], {"": 4 * BUDGET_S}))
    assert 45 < ran < 105


def test_the_seed_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = set()
    for seed in ("a", "a", "b", "c"):
        monkeypatch.setenv(sampling.SEED, seed)
        samples.add(tuple(taken(cases(30), {"": 1.0})))
    assert len(samples) == 3


def test_a_case_that_a_matrix_keeps_is_taken() -> None:
    sampling.drawn(["kept-case", "another"], 1, kept=("kept-case",))
    items = [*cases(30), Case("f.py::test[kept]", name="kept-case")]
    assert "f.py::test[kept]" in taken(items, {"": BUDGET_S})


def test_the_table_holds_the_median_and_what_is_unlike_it() -> None:
    recorded = {f"f.py::test[{place}]": 1.0 for place in range(4)} | {
        "f.py::test[dear]": 9.0,
        "f.py::cheap": 0.5 * DEAR_S,
    }
    assert table_of(recorded) == {"f.py::test": {"": 1.0, "dear": 9.0}}


def test_the_table_names_tests_that_exist() -> None:
    files = {sampling.REPOSITORY / function.partition("::")[0] for function in costs_s()}
    assert [path for path in files if not path.is_file()] == []
    absent = [
        function
        for function in costs_s()
        if f"def {function_and_case(function)[0].rpartition('::')[2]}("
        not in (sampling.REPOSITORY / function.partition("::")[0]).read_text(encoding="utf-8")
    ]
    assert absent == []
