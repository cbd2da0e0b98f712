"""What runs in the process that solves?  Reads requests from a pipe, searches, writes what it finds to another.

    python -m api.worker.solver_child REQUESTS_FD ANSWERS_FD MEMORY_LIMIT_BYTES

One JSON object a line.  In: ``{"solve": request}``, ``{"stop": true}``.  Out: ``{"ready": true}``,
``{"progress": {...}}``, and one end of a solve: ``{"plan": text, "wall_s": s}``, ``{"infeasible": details}``,
``{"refused": details}``, ``{"out_of_memory": true}`` or ``{"crashed": text}``.

It opens no database and trusts nobody to end it: when its parent disappears, the pipe closes, and it ends itself.
The memory limit is RLIMIT_AS, set once everything is imported; it counts address space, not resident pages.
"""

from __future__ import annotations

import json
import os
import queue
import resource
import sys
import threading
import time
from collections.abc import Callable
from typing import IO, Any

from api.jobs.board import PlanRequest
from api.wire.problem_details import problem_details
from planner.errors import MeshwrightError, NoFeasiblePlan
from planner.search.find import find_plan
from planner.search.options import SearchOptions, SearchProgress

PROGRESS_INTERVAL_S = 0.2
Send = Callable[[dict[str, Any]], None]


def main(arguments: list[str]) -> None:
    """Serve solves until the parent closes the pipe."""
    requests_fd, answers_fd, memory_limit_bytes = (int(argument) for argument in arguments)
    limit_memory(memory_limit_bytes)
    requests, answers = os.fdopen(requests_fd, "r", encoding="utf-8"), os.fdopen(answers_fd, "w", encoding="utf-8")
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    stop = threading.Event()

    def send(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    threading.Thread(target=_listen, args=(requests, waiting, stop), daemon=True).start()
    send({"ready": True})
    while True:
        text = waiting.get()
        send(solve(PlanRequest.model_validate_json(text), stop, send))


def limit_memory(limit_bytes: int) -> None:
    """No more address space than that; 0 = no limit."""
    if limit_bytes:
        resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))


def solve(request: PlanRequest, stop: threading.Event, send: Send) -> dict[str, Any]:
    """Search, and say how it ended; reports progress on the way."""
    options = SearchOptions(top_k=request.top_k, time_limit_s=request.time_limit_s, seed=request.seed, stop=stop.is_set)
    start_s = time.monotonic()
    try:
        plan = find_plan(request.problem, options, _reporter(send))
    except NoFeasiblePlan as error:
        return {"infeasible": problem_details(error).model_dump(mode="json")}
    except MeshwrightError as error:
        return {"refused": problem_details(error).model_dump(mode="json")}
    except MemoryError:
        return {"out_of_memory": True}
    except Exception as error:
        return {"crashed": f"{type(error).__name__}: {error}"}
    return {"plan": plan.canonical_json(), "wall_s": time.monotonic() - start_s}


def _reporter(send: Send) -> Callable[[SearchProgress], None]:
    last_s = float("-inf")

    def report(state: SearchProgress) -> None:
        nonlocal last_s
        if time.monotonic() - last_s < PROGRESS_INTERVAL_S:
            return
        last_s = time.monotonic()
        send({"progress": progress_data(state)})

    return report


def progress_data(state: SearchProgress) -> dict[str, Any]:
    """A ``JobProgress`` as plain data."""
    gap = None
    if state.incumbent_s and state.lower_bound_s is not None:
        gap = max(0.0, 1.0 - state.lower_bound_s / state.incumbent_s)
    return {
        "phase": "searching",
        "bounded": state.bounded,
        "evaluated": state.evaluated,
        "incumbent_s": state.incumbent_s,
        "bound_s": state.lower_bound_s,
        "gap": gap,
    }


def _listen(requests: IO[str], waiting: queue.SimpleQueue[str], stop: threading.Event) -> None:
    for line in requests:
        message = json.loads(line)
        if "solve" in message:
            # Here, not in the solving thread: a stop that comes while it still reads the request must count.
            stop.clear()
            waiting.put(message["solve"])
        elif message.get("stop"):
            stop.set()
    # The parent is gone: whatever is being solved, nobody waits for it.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
