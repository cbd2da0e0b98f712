"""Group commit for many submitters: one thread writes for all, in order, many submissions a transaction.

Those that wait for a turn of their own wait unfairly: SQLite's writers and SQLAlchemy's pool both wake whoever is
lucky, and with fifty submitters some wait for seconds.  Here they queue up, and one commit, which is what costs, makes
all of them durable.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from api.batches import next_batch
from profiles.errors import MeshwrightError

MOST_IN_A_COMMIT = 64
END_WAIT_S = 10.0

T = TypeVar("T")
Write = Callable[[Connection], Any]
Waiting = tuple[Write, "Future[Any]"]


class GroupCommit:
    """Transactions of one engine; a function that fails by itself fails alone."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def run(self, write: Callable[[Connection], T]) -> T:
        """What ``write`` returns, once it is on disk.  A MeshwrightError must be raised before anything is written."""
        self._start()
        done: Future[T] = Future()
        self._waiting.put((write, done))
        return done.result()

    @property
    def waiting(self) -> int:
        """Writes that nobody has begun."""
        return self._waiting.qsize()

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
            if batch:
                self._commit(batch)

    def _commit(self, batch: list[Waiting]) -> None:
        """Make the batch durable and answer everybody in it."""
        try:
            answers = self._write(batch)
        except _Spoilt as spoilt:
            # Nothing of the transaction is stored, and only one write is to blame, if any: two processes that take
            # each other's rows in another order are a deadlock that the second attempt does not meet.
            if len(batch) == 1:
                batch[0][1].set_exception(spoilt.error)
                return
            for each in batch:
                self._commit([each])
        except BaseException as error:
            for _, done in batch:
                done.set_exception(error)
        else:
            for (_, done), answer in zip(batch, answers, strict=True):
                if isinstance(answer, MeshwrightError):
                    done.set_exception(answer)
                else:
                    done.set_result(answer)

    def _write(self, batch: list[Waiting]) -> list[Any]:
        """What each write returned, or the MeshwrightError that it raised; all of it is on disk.  Raises _Spoilt."""
        answers: list[Any] = []
        with self._engine.begin() as connection:
            if self._engine.dialect.name == "sqlite":
                # Now and not at the first insert: what is read before it must still hold then.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            for write, _ in batch:
                try:
                    answers.append(write(connection))
                except MeshwrightError as refusal:
                    answers.append(refusal)
                except Exception as error:
                    if isinstance(error, DBAPIError) and error.connection_invalidated:
                        raise
                    # Whatever it is, it is this write's own: a mistake of one must not be everybody's answer.
                    raise _Spoilt(error) from error
        return answers


class _Spoilt(Exception):
    """A write failed on a connection that still works; its transaction is given up."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error
