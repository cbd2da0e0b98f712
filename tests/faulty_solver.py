"""A solving process with faults, for tests: the request's seed chooses one.

python -m tests.faulty_solver ...      in place of api.worker.solver_child
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from api.jobs.board import PlanRequest
from api.worker import solver_child
from api.worker.solver_child import Send

SEGFAULT, EXIT, MEMORY, LIE, HANG, RAISE, KILLED, SLOW, LIE_ABOUT_QUESTION, ONCE, PAUSE, KILL_WORKER = range(1, 13)
BABBLE = 13
ONCE_FILE = "MESHWRIGHT_TEST_ONCE"
real_solve = solver_child.solve


def solve(request: PlanRequest, stop: threading.Event, send: Send) -> dict[str, Any]:
    fault = request.seed
    if fault == SEGFAULT:
        ctypes.string_at(0)
    if fault in {EXIT, KILLED}:
        end_at_once(fault)
    if fault == MEMORY:
        eat_memory()
    if fault == RAISE:
        raise RuntimeError("a bug in the engine")
    if fault == HANG:
        # Progress without end, deaf to a wish to stop.
        while True:
            send({"progress": {"phase": "searching", "bounded": time.monotonic_ns() % 1000}})
            time.sleep(0.05)
    if fault == BABBLE:
        babble()
    if fault == ONCE and crashes_left():
        os._exit(9)
    if fault == KILL_WORKER:
        os.kill(os.getppid(), 9)
        time.sleep(60)
    answer = real_solve(request, stop, send)
    if fault in {SLOW, PAUSE}:
        for step in range(1_000 if fault == SLOW else 12):
            if stop.wait(0.05):
                break
            send({"progress": {"phase": "searching", "bounded": step}})
    return lied(answer, fault) if fault in {LIE, LIE_ABOUT_QUESTION} else answer


def end_at_once(fault: int) -> None:
    """By its own will, or as the system ends a process."""
    if fault == EXIT:
        os._exit(7)
    os.kill(os.getpid(), 9)


def babble() -> None:
    """No JSON, and then silence: the worker hears no more of a process that lives on."""
    os.write(int(sys.argv[2]), b"what?\n")
    time.sleep(600)


def eat_memory() -> None:
    """Pages that are touched, until the limit; on a machine without one, less than a gibibyte."""
    held = [bytearray(2**26) for _ in range(15)]
    raise MemoryError(len(held))


def crashes_left() -> bool:
    """One crash for all processes together."""
    marker = Path(os.environ[ONCE_FILE])
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def lied(answer: dict[str, Any], fault: int) -> dict[str, Any]:
    """A plan that promises more than it holds, or answers another question."""
    plan = json.loads(answer["plan"])
    if fault == LIE:
        for name in ("step_time_s", "lower_bound_s"):
            plan[name] *= 0.9
    else:
        plan["problem"]["workload"]["global_batch_size"] *= 2
    return {**answer, "plan": json.dumps(plan)}


solver_child.solve = solve

if __name__ == "__main__":
    solver_child.main(sys.argv[1:])
