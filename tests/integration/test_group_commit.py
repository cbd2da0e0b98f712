"""Writes that share a transaction: what one of them spoils costs no other its own, on both databases."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from api.jobs.group_commit import GroupCommit
from api.jobs.system_database import make_system_engine
from profiles.errors import Conflict


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """A database with one table of names."""
    opened = make_system_engine(database_url)
    with opened.begin() as connection:
        connection.execute(text("CREATE TABLE written (name VARCHAR(20) PRIMARY KEY)"))
    yield opened
    opened.dispose()


def _writing(name: str) -> Callable[[Connection], str]:
    def write(connection: Connection) -> str:
        connection.execute(text("INSERT INTO written VALUES (:name)"), {"name": name})
        return name

    return write


def _refusing(_: Connection) -> str:
    raise Conflict("not this one")


def _together(commits: GroupCommit, writes: list[Callable[[Connection], str]]) -> list[str | BaseException]:
    """Answers of writes that wait while another one holds the writing thread, and so share a transaction."""
    holding, go_on = threading.Event(), threading.Event()

    def hold(_: Connection) -> None:
        holding.set()
        go_on.wait()

    def answer(write: Callable[[Connection], str]) -> str | BaseException:
        try:
            return commits.run(write)
        except (Conflict, DBAPIError, ValueError) as error:
            return error

    with ThreadPoolExecutor(len(writes) + 1) as threads:
        threads.submit(commits.run, hold)
        holding.wait()
        answers = [threads.submit(answer, write) for write in writes]
        while commits.waiting < len(writes):
            threading.Event().wait(0.01)
        go_on.set()
        return [each.result() for each in answers]


def _names(engine: Engine) -> set[str]:
    with engine.connect() as connection:
        return {str(row[0]) for row in connection.execute(text("SELECT name FROM written"))}


def test_a_refusal_and_a_spoilt_write_fail_alone(engine: Engine) -> None:
    commits = GroupCommit(engine)
    try:
        answers = _together(commits, [_writing("a"), _refusing, _writing("b"), _writing("b"), _writing("c")])
    finally:
        commits.close()
    assert {answer for answer in answers if isinstance(answer, str)} == {"a", "b", "c"} == _names(engine)
    assert sorted(type(answer).__name__ for answer in answers if not isinstance(answer, str)) == [
        "Conflict",
        "IntegrityError",
    ]


def test_a_write_with_a_mistake_of_its_own_fails_alone(engine: Engine) -> None:
    def mistaken(connection: Connection) -> str:
        _writing("half")(connection)
        raise ValueError("not a number that the queue takes")

    commits = GroupCommit(engine)
    try:
        answers = _together(commits, [_writing("a"), mistaken, _writing("b")])
    finally:
        commits.close()
    assert (answers[0], answers[2]) == ("a", "b")
    assert isinstance(answers[1], ValueError)
    assert _names(engine) == {"a", "b"}


def test_without_a_database_everybody_is_told(engine: Engine) -> None:
    def gone(connection: Connection) -> str:
        # As when the server goes away between two statements.
        connection.invalidate()
        raise DBAPIError("SELECT 1", None, ConnectionError("gone"), connection_invalidated=True)

    commits = GroupCommit(engine)
    try:
        answers = _together(commits, [_writing("a"), gone, _writing("b")])
        assert all(isinstance(answer, DBAPIError) for answer in answers[1:2])
        after = commits.run(_writing("d"))
    finally:
        commits.close()
    stored = {answer for answer in answers if isinstance(answer, str)} | {after}
    assert _names(engine) == stored
