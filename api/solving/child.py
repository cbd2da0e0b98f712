"""The program of a computing process: reads tasks from a pipe, answers them in turn; failures are answers too.

    python -P -m api.solving.child REQUESTS_FD ANSWERS_FD MEMORY_LIMIT_BYTES NICENESS

``api.solving.messages`` says what is spoken.  It inherits no connection, no lock and no event loop, opens no database,
and trusts nobody to end it: when its parent disappears, the pipe closes, and it ends itself.
The memory limit is RLIMIT_AS, set once everything is imported; it counts address space, not resident pages.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import queue
import resource
import sys
import threading
import time
from typing import IO, Any

from pydantic import ValidationError

from api.errors import SolverOutOfMemory
from api.solving.messages import Message, write_message
from api.solving.tasks import TASKS
from api.solving.watch import DeadlineReached, Watch
from api.wire.problem_details import problem_details
from profiles.errors import DocumentInvalid, MeshwrightError

UNREAL = (ArithmeticError, ValidationError)
"""What numbers end in that no machine has (1e300 bytes a second); such a question is the asker's to repair."""
Asked = tuple[str, Any, float | None]

log = logging.getLogger("meshwright.api")


def main(arguments: list[str]) -> None:
    """Answer tasks until the parent closes the pipe."""
    requests_fd, answers_fd, memory_limit_bytes, niceness = (int(argument) for argument in arguments)
    os.nice(niceness)
    _load()
    if memory_limit_bytes:
        resource.setrlimit(resource.RLIMIT_AS, (memory_limit_bytes, memory_limit_bytes))
    requests, answers = os.fdopen(requests_fd, "rb"), os.fdopen(answers_fd, "wb")
    waiting: queue.SimpleQueue[Asked] = queue.SimpleQueue()
    stop = threading.Event()
    threading.Thread(target=_listen, args=(requests, waiting, stop), daemon=True).start()
    write_message(answers, Message("ready"))
    while True:
        task, payload, seconds = waiting.get()
        watch = Watch(seconds, stop, lambda progress: write_message(answers, Message("progress", progress)))
        write_message(answers, answer(task, payload, watch))


def answer(task: str, payload: Any, watch: Watch) -> Message:
    """What a task gives; every exception becomes an outcome."""
    start_s = time.monotonic()
    try:
        return Message("done", TASKS[task](payload, watch), time.monotonic() - start_s)
    except DeadlineReached:
        return Message("late")
    except MeshwrightError as error:
        return _refused(error)
    except MemoryError:
        return _refused(SolverOutOfMemory("the computation reached its memory limit", hint="ask a smaller question"))
    except UNREAL:
        log.exception("task %s met numbers that it cannot compute with", task)
        what = "the question's numbers are too large or too small to compute with"
        return _refused(DocumentInvalid(what, where="body", hint="check the units"))
    except Exception as error:
        log.exception("task %s failed", task)
        return Message("bug", f"{type(error).__name__}: {error}".encode())


def _refused(error: MeshwrightError) -> Message:
    return Message("refused", problem_details(error).model_dump_json().encode())


def _load() -> None:
    """Import what every search needs before the first one is asked for."""
    import planner.search.estimate
    import planner.search.find
    import planner.strategy.text  # noqa: F401

    # What was imported stays: the collector need not walk through it during a search.
    gc.collect()
    gc.freeze()


def _listen(requests: IO[bytes], waiting: queue.SimpleQueue[Asked], stop: threading.Event) -> None:
    for line in requests:
        message = json.loads(line)
        if "task" in message:
            # Here, not in the computing thread: a stop that comes while it still reads the request must count.
            stop.clear()
            waiting.put((message["task"], message["payload"], message["seconds"]))
        elif message.get("stop"):
            stop.set()
    # The parent is gone: whatever is being computed, nobody waits for it.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
