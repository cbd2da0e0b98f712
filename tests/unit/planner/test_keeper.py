"""A child process stores the plan; what it cannot store is left to the parent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planner.operations.keeper import Keeper
from planner.store import open_store
from tests.plan_factory import make_plan


def test_a_child_stores_the_plan_with_its_search(tmp_path: Path) -> None:
    database, plan = f"sqlite:///{tmp_path / 'plans.db'}", make_plan()
    keeper = Keeper(database)

    keeper.open()
    assert keeper.save(plan, 1.5)

    keeper.stop()
    with open_store(database) as store:
        assert store.get_plan(plan.plan_id) == plan
        found = store.find_search(plan.problem.problem_id)
        assert found is not None
        assert found[1] == 1.5


def test_what_a_child_cannot_store_is_left_to_the_parent(tmp_path: Path) -> None:
    (tmp_path / "plans.db").write_text("no database, and long enough to be told from one that is empty\n" * 20)
    keeper = Keeper(str(tmp_path / "plans.db"))

    keeper.open()
    assert not keeper.save(make_plan(), None)
    keeper.stop()


def test_a_child_opens_no_database_before_it_is_told(tmp_path: Path) -> None:
    keeper = Keeper(str(tmp_path / "plans.db"))

    # A plan without the word to open: the child reads something else and ends.
    assert not keeper.save(make_plan(), None)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("times", [1, 2])
def test_where_no_plan_is_found_the_child_is_ended(tmp_path: Path, times: int) -> None:
    keeper = Keeper(str(tmp_path / "plans.db"))
    child = keeper._kept._child

    for _ in range(times):
        keeper.stop()

    with pytest.raises(ChildProcessError):
        os.waitpid(child, os.WNOHANG)
