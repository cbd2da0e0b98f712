"""A solving process with faults, for tests: the request's seed chooses one.

python -m tests.faulty_solver ...      in place of api.solving.child
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from pathlib import Path

from api.jobs.board import PlanRequest
from api.solving import child
from api.solving.tasks import TASKS, Payload
from api.solving.watch import Watch

SEGFAULT, EXIT, MEMORY, LIE, HANG, RAISE, KILLED, SLOW, LIE_ABOUT_QUESTION, ONCE, PAUSE, KILL_WORKER = range(1, 13)
BABBLE, UNREAL = 13, 14
RAISED = {RAISE: RuntimeError("a bug in the engine"), UNREAL: OverflowError("numbers that no machine has")}
ONCE_FILE = "MESHWRIGHT_TEST_ONCE"
real_plan = TASKS["plan"]


def plan(payload: Payload, watch: Watch) -> bytes:
    fault = PlanRequest.model_validate(payload).seed
    if fault == SEGFAULT:
        ctypes.string_at(0)
    if fault in {EXIT, KILLED}:
        end_at_once(fault)
    if fault == MEMORY:
        eat_memory()
    if fault in RAISED:
        raise RAISED[fault]
    if fault == HANG:
        # Progress without end, deaf to a wish to stop.
        while True:
            tell(watch, time.monotonic_ns() % 1000)
            time.sleep(0.05)
    if fault == BABBLE:
        babble()
    if fault == ONCE and crashes_left():
        os._exit(9)
    if fault == KILL_WORKER:
        os.kill(os.getppid(), 9)
        time.sleep(60)
    answer = real_plan(payload, watch)
    if fault in {SLOW, PAUSE}:
        for step in range(1_000 if fault == SLOW else 12):
            if watch.stop.wait(0.05):
                break
            tell(watch, step)
    return lied(answer, fault) if fault in {LIE, LIE_ABOUT_QUESTION} else answer


def tell(watch: Watch, bounded: int) -> None:
    watch.send(json.dumps({"phase": "searching", "bounded": bounded}).encode())


def end_at_once(fault: int) -> None:
    """By its own will, or as the system ends a process."""
    if fault == EXIT:
        os._exit(7)
    os.kill(os.getpid(), 9)


def babble() -> None:
    """No message, and then silence: the worker hears no more of a process that lives on."""
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


def lied(answer: bytes, fault: int) -> bytes:
    """A plan that promises more than it holds, or answers another question."""
    plan = json.loads(answer)
    if fault == LIE:
        for name in ("step_time_s", "lower_bound_s"):
            plan[name] *= 0.9
    else:
        plan["problem"]["workload"]["global_batch_size"] *= 2
    return json.dumps(plan).encode()


TASKS["plan"] = plan

if __name__ == "__main__":
    child.main(sys.argv[1:])
