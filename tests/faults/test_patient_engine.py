"""A connection for the durable programs takes as long as PostgreSQL is away, and no longer than the worker lives."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError

from api.worker.patient_engine import make_patient_engine
from planner.store.address import database_url
from tests.postgres_server import PostgresServer, server_programs

pytestmark = pytest.mark.postgres
PATIENCE_S = 60.0


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    programs = server_programs()
    if programs is None:
        pytest.skip("PostgreSQL server programs are not installed")
    found = PostgresServer(programs)
    found.start()
    yield found
    found.stop()


class Asking:
    """A question in a thread of its own."""

    def __init__(self, engine: Engine) -> None:
        self.answer: int | None = None
        self.failure: Exception | None = None
        self._engine = engine
        self.thread = threading.Thread(target=self._ask, daemon=True)
        self.thread.start()

    def _ask(self) -> None:
        try:
            with self._engine.connect() as connection:
                self.answer = connection.execute(text("SELECT 42")).scalar()
        except OperationalError as error:
            self.failure = error


def test_a_connection_waits_for_the_server_until_it_is_told_to_give_up(server: PostgresServer) -> None:
    give_up = threading.Event()
    engine = make_patient_engine(database_url(server.create_database("patient")), 2, give_up)
    assert engine is not None
    server.halt()
    waiting = [Asking(engine) for _ in range(3)]
    for each in waiting:
        each.thread.join(0.5)
    assert all(each.thread.is_alive() for each in waiting), "more of them than there are connections wait too"
    server.resume()
    for each in waiting:
        each.thread.join(PATIENCE_S)
    assert [(each.answer, each.failure) for each in waiting] == [(42, None)] * 3
    server.halt()
    last = Asking(engine)
    last.thread.join(0.5)
    assert last.thread.is_alive()
    give_up.set()
    last.thread.join(PATIENCE_S)
    assert isinstance(last.failure, OperationalError)
    engine.dispose()


def test_sqlite_needs_no_patience() -> None:
    assert make_patient_engine("sqlite:////nowhere/plans.db", 2, threading.Event()) is None
