"""What is removed is gone, with what was kept only for it; what others need stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import text

from planner.store import open_store
from planner.store.records import SweepCell
from planner.store.repository import Store
from planner.store.sweeps import Asked
from profiles.errors import Conflict, NotFound
from tests.plan_factory import make_model, make_plan


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """A store on each database in turn."""
    with open_store(database_url) as opened:
        yield opened


def documents(store: Store) -> int:
    with store._engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM documents")).scalar_one())


def test_a_plan_goes_with_what_was_kept_only_for_it(store: Store) -> None:
    plan = make_plan()
    plan_id = store.save_plan(plan, 1.0)
    store.save_emission(plan_id, "megatron", "slurm", {"files": {}})
    assert store.service().claim_key("ann", "k", "0" * 64) is None
    store.service().answer_key("ann", "k", plan_id=plan_id)
    removed = store.remove_plan(plan_id[:12])
    assert (removed.plan_id, removed.problem_id) == (plan_id, plan.problem.problem_id)
    assert (removed.emissions, removed.label_versions, removed.requests) == (1, 0, 1)
    assert documents(store) == 0
    assert store.find_answer(plan.problem.problem_id) is None
    with pytest.raises(NotFound):
        store.remove_plan(plan_id)
    assert store.save_plan(plan, 1.0) == plan_id, "the same plan can be found and kept again"


def test_what_another_plan_or_a_name_needs_stays(store: Store) -> None:
    plan = make_plan()
    plan_id = store.save_plan(plan, 1.0)
    other = store.save_plan(plan.model_copy(update={"step_time_s": plan.step_time_s * 2}), 1.0)
    store.service().put_named("model", "mine", plan.problem.model, None)
    before = documents(store)
    store.remove_plan(plan_id)
    assert documents(store) == before - 1
    assert store.get_plan(other).problem == plan.problem
    store.remove_plan(other)
    assert documents(store) == 1, "the model has a name"
    assert store.service().remove_named("model", "mine", plan.problem.model.content_hash()) == 1
    assert documents(store) == 0


def test_a_plan_that_a_label_means_stays_until_the_label_moves(store: Store) -> None:
    plan = make_plan()
    first = store.save_plan(plan, 1.0)
    second = store.save_plan(plan.model_copy(update={"step_time_s": plan.step_time_s * 2}), 1.0)
    assert store.label_plan("prod", first, 0) == 1
    for reference in (first, "prod"):
        with pytest.raises(Conflict, match="prod"):
            store.remove_plan(reference)
    with pytest.raises(Conflict):
        store.label_plan("prod", second, 0)
    assert store.label_plan("prod", second, 1) == 2
    assert [(each.name, each.version, each.plan_id) for each in store.list_labels()] == [("prod", 2, second)]
    assert store.remove_plan(first).label_versions == 1
    assert store.remove_label("prod") == 1
    assert store.list_labels() == ()


def test_labels_come_in_pages(store: Store) -> None:
    plan_id = store.save_plan(make_plan(), 1.0)
    names = [f"n{number}" for number in range(5)]
    for name in reversed(names):
        store.label_plan(name, plan_id)
    assert [each.name for each in store.list_labels(limit=3)] == names[:3]
    assert [each.name for each in store.list_labels(limit=3, after=names[2])] == names[3:]


def test_a_name_goes_only_at_the_version_that_was_seen(store: Store) -> None:
    records = store.service()
    first, second = make_model(2), make_model(3)
    records.put_named("model", "mine", first, None)
    records.put_named("model", "mine", second, first.content_hash())
    with pytest.raises(Conflict):
        records.remove_named("model", "mine", first.content_hash())
    assert records.remove_named("model", "mine", second.content_hash()) == 2
    with pytest.raises(NotFound):
        records.remove_named("model", "mine", second.content_hash())
    assert (records.named("model", "mine"), documents(store)) == (None, 0)


def test_a_sweep_goes_once_it_has_ended(store: Store) -> None:
    sweeps = store.sweeps()
    waiting = SweepCell(position=0, state="waiting", job_id=None, line="{}")
    sweeps.keep("a" * 64, Asked(make_model(2), make_model(3)), "ann", [waiting])
    with pytest.raises(Conflict, match="still runs"):
        sweeps.remove("a" * 64)
    sweeps.change("a" * 64, [replace(waiting, state="done")])
    assert (sweeps.remove("a" * 64), documents(store)) == (1, 0)
    with pytest.raises(NotFound):
        sweeps.get("a" * 64)
