"""A sample is the same for the same seed, holds what is kept and one of each kind, and changes with the seed."""

from __future__ import annotations

import pytest

from tests.mutation.__main__ import REPOSITORY, faults
from tests.sampling import SEED, WHOLE, drawn, examples, settle_run, words

CASES = range(100)


@pytest.fixture(autouse=True)
def _seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SEED, "first")
    monkeypatch.setenv(WHOLE, "0")


def test_the_same_seed_draws_the_same_and_another_one_others(monkeypatch: pytest.MonkeyPatch) -> None:
    first = drawn(CASES, 10)
    assert first == drawn(CASES, 10) == sorted(set(first))
    assert len(first) == 10
    monkeypatch.setenv(SEED, "second")
    assert drawn(CASES, 10) != first


def test_over_many_seeds_every_case_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set[int]()
    for number in range(100):
        monkeypatch.setenv(SEED, str(number))
        seen.update(drawn(CASES, 10))
    assert seen == set(CASES)


def test_kept_cases_and_one_of_each_kind_are_in_every_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        monkeypatch.setenv(SEED, str(number))
        found = drawn(CASES, 8, kept=(99, 3), kind=lambda case: case % 5)
        assert len(found) == 8
        assert {3, 99} <= set(found)
        assert {case % 5 for case in found} == set(range(5))


def test_a_whole_run_takes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WHOLE, "1")
    assert drawn(CASES, 1) == list(CASES)
    assert examples(12, 6) == 12
    assert words() == "cases: all of every matrix"


def test_a_quick_run_tries_fewer_examples() -> None:
    assert examples(12, 6) == 6
    assert examples(4, 6) == 4


def test_a_matrix_that_cannot_be_drawn_says_why() -> None:
    with pytest.raises(ValueError, match="100 is kept, but is not in the matrix"):
        drawn(CASES, 10, kept=(100,))
    with pytest.raises(ValueError, match="5 cases are kept or the first of their kind, more than 4"):
        drawn(CASES, 4, kind=lambda case: case % 5)


def test_workers_inherit_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SEED)
    settle_run(all_cases=False)
    settled = words()
    assert SEED in settled
    assert settled == words()
    settle_run(all_cases=True)
    assert words() == "cases: all of every matrix"


def test_every_fault_of_the_mutation_check_has_its_place() -> None:
    assert [why for each in faults() if (why := each.misplaced(REPOSITORY))] == []
    assert len({each.name for each in faults()}) == len(faults())
