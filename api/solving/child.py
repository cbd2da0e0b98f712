"""What does a computing process do?  Reads a task, answers it, waits for the next; a failure is an answer too.

Started with ``spawn``: it inherits no connection, no lock and no event loop.  It opens no database.
"""

from __future__ import annotations

import gc
import logging
import os
import resource
import signal
import time
from multiprocessing.connection import Connection
from typing import Any, Literal

from pydantic import ValidationError

from api.errors import SolverOutOfMemory
from api.solving.tasks import TASKS, DeadlineReached
from api.wire.problem_details import problem_details
from profiles.errors import DocumentInvalid, MeshwrightError

Outcome = Literal["done", "refused", "late", "bug"]
NICE = 5
"""Below the event loop: a machine full of searches still answers look-ups."""
UNREAL = (ArithmeticError, ValidationError)
"""What numbers end in that no machine has (1e300 bytes a second); such a question is the asker's to repair."""

log = logging.getLogger("meshwright.api")


def serve(connection: Connection, memory_bytes: int) -> None:
    """Answer ``(task, payload, seconds)`` with ``(outcome, bytes)`` until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    _load()
    connection.send(("done", b""))
    while True:
        try:
            task, payload, seconds = connection.recv()
        except (EOFError, OSError):
            return
        connection.send(answer(task, payload, seconds))


def answer(task: str, payload: Any, seconds: float) -> tuple[Outcome, bytes]:
    """What a task gives; every exception becomes an outcome."""
    try:
        return "done", TASKS[task](payload, time.monotonic() + seconds)
    except DeadlineReached:
        return "late", b""
    except MeshwrightError as error:
        return "refused", _problem(error)
    except MemoryError:
        limit = SolverOutOfMemory("the computation reached its memory limit", hint="ask a smaller question")
        return "refused", _problem(limit)
    except UNREAL:
        log.exception("task %s met numbers that it cannot compute with", task)
        unreal = DocumentInvalid(
            "the question's numbers are too large or too small to compute with", where="body", hint="check the units"
        )
        return "refused", _problem(unreal)
    except Exception:
        log.exception("task %s failed", task)
        return "bug", b""


def _problem(error: MeshwrightError) -> bytes:
    return problem_details(error).model_dump_json().encode()


def _load() -> None:
    """Import what every search needs before the first one is asked for."""
    import planner.search.estimate
    import planner.search.find
    import planner.strategy_text  # noqa: F401

    # What was imported stays: the collector need not walk through it during a search.
    gc.collect()
    gc.freeze()
