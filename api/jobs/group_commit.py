"""How do many submitters share one SQLite file?  One thread writes for all, many submissions a transaction.

SQLite has one writer at a time, and those that wait for it sleep and try again, unfairly: with fifty writers some
wait for seconds.  Here they queue up in order, and one commit, which is what costs, makes all of them durable.
PostgreSQL commits in parallel and needs none of this.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine

from api.batches import next_batch
from profiles.errors import MeshwrightError

MOST_IN_A_COMMIT = 64
END_WAIT_S = 10.0

T = TypeVar("T")
Write = Callable[[Connection], Any]


class GroupCommit:
    """Transactions of one engine; a function that raises before it writes fails alone."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._grouped = engine.dialect.name == "sqlite"
        self._waiting: queue.SimpleQueue[tuple[Write, Future[Any]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def run(self, write: Callable[[Connection], T]) -> T:
        """What ``write`` returns, once it is on disk.  A MeshwrightError must be raised before anything is written."""
        if not self._grouped:
            with self._engine.begin() as connection:
                return write(connection)
        self._start()
        done: Future[T] = Future()
        self._waiting.put((write, done))
        return done.result()

    def close(self) -> None:
        """End the writing thread, after what waits."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._waiting.put(None)
            thread.join(END_WAIT_S)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="job-writer", daemon=True)
                self._thread.start()

    def _serve(self) -> None:
        ended = False
        while not ended:
            batch, ended = next_batch(self._waiting, MOST_IN_A_COMMIT)
            self._commit(batch)

    def _commit(self, batch: list[tuple[Write, Future[Any]]]) -> None:
        if not batch:
            return
        answers: list[tuple[Future[Any], Any]] = []
        try:
            with self._engine.begin() as connection:
                # Now and not at the first insert: what is read before it must still hold then.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                for write, done in batch:
                    try:
                        answers.append((done, write(connection)))
                    except MeshwrightError as error:
                        done.set_exception(error)
        except BaseException as error:
            # Nothing of the batch is stored.
            for _, done in batch:
                if not done.done():
                    done.set_exception(error)
            return
        for done, answer in answers:
            done.set_result(answer)
