"""A copied database is whole although another thread writes meanwhile, and it can be restored."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from planner.store import open_store
from planner.store.address import jobs_path
from planner.store.backup import PAGES_A_STEP, backup_store, restore_store
from planner.store.errors import StoreCorrupt, StoreTooNew
from planner.strategy.strategy import Strategy
from profiles.errors import Conflict, NotFound
from tests.command_line import run_here
from tests.plan_factory import make_plan


def _filled(path: Path) -> str:
    with open_store(str(path)) as store:
        plan_id = store.save_plan(make_plan(Strategy(dp_shard=2, num_microbatches=4)))
        store.label_plan("first", plan_id)
    return plan_id


def test_a_copy_comes_back_with_plans_labels_and_jobs(tmp_path: Path) -> None:
    database, copy, again = tmp_path / "plans.db", tmp_path / "copy.db", tmp_path / "new" / "plans.db"
    plan_id = _filled(database)
    with closing(sqlite3.connect(jobs_path(database))) as jobs:
        jobs.execute("CREATE TABLE waiting (id TEXT)")
        jobs.execute("INSERT INTO waiting VALUES ('job')")
        jobs.commit()
    assert backup_store(copy, str(database)) == (copy, tmp_path / "copy.jobs.db")
    assert restore_store(copy, str(again)) == (again, tmp_path / "new" / "plans.jobs.db")
    with open_store(str(again)) as store:
        assert store.resolve("first") == plan_id
        assert store.get_plan(plan_id).plan_id == plan_id
    with closing(sqlite3.connect(jobs_path(again))) as jobs:
        assert jobs.execute("SELECT id FROM waiting").fetchall() == [("job",)]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_a_copy_is_one_state_while_another_thread_writes(tmp_path: Path) -> None:
    database = tmp_path / "plans.db"
    _filled(database)
    stop = threading.Event()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE a (n INTEGER, filler TEXT)")
        connection.execute("CREATE TABLE b (n INTEGER, filler TEXT)")
        filler = [(0, "x" * 4000)] * 2 * PAGES_A_STEP
        connection.executemany("INSERT INTO a VALUES (?, ?)", filler)
        connection.commit()

    def write() -> None:
        with closing(sqlite3.connect(database, timeout=30)) as connection:
            number = 0
            while not stop.is_set():
                number += 1
                connection.execute("INSERT INTO a VALUES (?, ?)", (number, ""))
                connection.execute("INSERT INTO b VALUES (?, ?)", (number, ""))
                connection.commit()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        backup_store(tmp_path / "copy.db", str(database))
    finally:
        stop.set()
        writer.join()
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert (
            copy.execute("SELECT max(n) FROM a").fetchone()[0]
            == (copy.execute("SELECT coalesce(max(n), 0) FROM b").fetchone()[0])
        )


def test_what_exists_is_never_overwritten(tmp_path: Path) -> None:
    database, copy = tmp_path / "plans.db", tmp_path / "copy.db"
    _filled(database)
    backup_store(copy, str(database))
    before = copy.read_bytes()
    for again in (backup_store, restore_store):
        with pytest.raises(Conflict):
            again(copy, str(database))
    assert copy.read_bytes() == before


def test_what_is_no_copy_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    target = str(tmp_path / "new.db")
    with pytest.raises(NotFound):
        backup_store(tmp_path / "copy.db", target)
    with pytest.raises(NotFound):
        restore_store(tmp_path / "absent.db", target)
    (tmp_path / "text.db").write_text("no database", encoding="utf-8")
    with pytest.raises(StoreCorrupt):
        restore_store(tmp_path / "text.db", target)
    for name, revision, wrong in (("other.db", None, StoreCorrupt), ("newer.db", "r9999", StoreTooNew)):
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            connection.execute(
                "CREATE TABLE other (n INTEGER)"
                if revision is None
                else "CREATE TABLE alembic_version (version_num TEXT)"
            )
            if revision:
                connection.execute("INSERT INTO alembic_version VALUES (?)", (revision,))
            connection.commit()
        with pytest.raises(wrong):
            restore_store(tmp_path / name, target)
    assert not (tmp_path / "new.db").exists()


def test_the_commands_name_the_files(tmp_path: Path) -> None:
    database, copy = tmp_path / "plans.db", tmp_path / "copy.db"
    _filled(database)
    ran = run_here("db", "backup", str(copy), "--database", str(database), "-o", "json")
    assert (ran.exit_code, ran.json()) == (0, {"files": [str(copy)]})
    ran = run_here("db", "restore", str(copy), "--database", str(database))
    assert ran.exit_code == 4
    assert "move it away" in ran.stderr
    ran = run_here("db", "backup", str(copy), "--database", "postgresql://nobody@127.0.0.1:1/none")
    assert ran.exit_code == 4
    assert "pg_dump" in ran.stderr
