"""Many writers at once, as threads and as processes, on both databases."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from planner.plan.plan import Plan
from planner.store import open_store
from tests.plan_factory import make_model, make_plan

REPOSITORY = Path(__file__).parents[2]
WRITERS = 8
PLANS = 6

# Every writer stores the plans in another order, and opens the database itself: the first one creates the schema.
WRITER = """
import sys
from planner.store import open_store
from tests.plan_factory import make_model, make_plan
url, me, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
plans = [make_plan(model=make_model(layers)) for layers in range(1, count + 1)]
with open_store(url) as store:
    for index in range(count):
        plan_id = store.save_plan(plans[(index * 5 + me) % count], 0.1)
        store.label_plan("latest", plan_id)
    store.save_plan(make_plan(model=make_model(100 + me)), 0.1)
"""


def plan_of(layers: int) -> Plan:
    return make_plan(model=make_model(layers))


def test_threads_that_store_the_same_and_different_plans_lose_nothing(database_url: str) -> None:
    same = [plan_of(layers) for layers in range(1, PLANS + 1)]
    with open_store(database_url) as store, ThreadPoolExecutor(WRITERS) as pool:

        def write(me: int) -> list[str]:
            ids = [store.save_plan(same[(index * 5 + me) % PLANS], 0.1) for index in range(PLANS)]
            return [*ids, store.save_plan(plan_of(100 + me), 0.1)]

        stored = {plan_id for ids in pool.map(write, range(WRITERS)) for plan_id in ids}
        assert len(stored) == PLANS + WRITERS
        assert {record.plan_id for record in store.list_plans()} == stored
        for plan in same:
            assert store.find_plan(plan.problem.problem_id) == plan


def test_threads_that_move_one_label_give_every_version_once(database_url: str) -> None:
    with open_store(database_url) as store, ThreadPoolExecutor(WRITERS) as pool:
        ids = [store.save_plan(plan_of(layers), 0.1) for layers in range(1, WRITERS + 1)]
        list(pool.map(lambda plan_id: store.label_plan("prod", plan_id), ids))
        history = store.label_history("prod")
        assert [label.version for label in history] == list(range(WRITERS, 0, -1))
        assert {label.plan_id for label in history} == set(ids)


def test_processes_that_create_and_fill_one_database_at_once_lose_nothing(database_url: str) -> None:
    command = [sys.executable, "-c", WRITER, database_url]
    writers = [
        subprocess.Popen([*command, str(me), str(PLANS)], cwd=REPOSITORY, stderr=subprocess.PIPE, text=True)
        for me in range(WRITERS)
    ]
    failures = [error for writer in writers for error in [writer.communicate(timeout=400)[1]] if writer.returncode]
    assert failures == []
    with open_store(database_url) as store:
        assert len(store.list_plans()) == PLANS + WRITERS
        for layers in (*range(1, PLANS + 1), *range(100, 100 + WRITERS)):
            assert store.get_plan(plan_of(layers).plan_id) == plan_of(layers)
        versions = [label.version for label in store.label_history("latest")]
        assert versions == list(range(len(versions), 0, -1))
