"""A computation in a child process, apart from the service and the worker, connected by two pipes.

A child that crashes, hangs or eats memory takes nothing with it.  It is started ahead of time, so that a task finds
its imports done, and serves several tasks; one that misbehaved, or has served many, is replaced.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from api.errors import JobFailure, SolverCrashed, SolverOutOfMemory
from api.solving.messages import Message, read_message

END_WAIT_S = 5.0
MOST_WORDS = 4000


@dataclass(slots=True, eq=False)
class SolverProcess:
    """One child.  ``next_message`` gives what it says; ``died`` is its last message."""

    process: subprocess.Popen[bytes]
    requests: IO[bytes]
    complaints: IO[bytes]
    messages: queue.SimpleQueue[Message] = field(default_factory=queue.SimpleQueue)
    solves: int = 0
    killed: bool = False
    _heard_bytes: int = 0

    @classmethod
    def start(cls, memory_limit_bytes: int, module: str, niceness: int = 0) -> SolverProcess:
        """Start a child; returns before it is ready."""
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        complaints = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        arguments = [str(theirs_in), str(theirs_out), str(memory_limit_bytes), str(niceness)]
        try:
            process = subprocess.Popen(
                # -P: a folder named api where the service was started is none of ours.
                [sys.executable, "-P", "-m", module, *arguments],
                pass_fds=(theirs_in, theirs_out),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                # Signals of the terminal are for the parent, which tells its children.
                start_new_session=True,
            )
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        child = cls(process, os.fdopen(ours_out, "wb", buffering=0), complaints)
        threading.Thread(target=child._read, args=(ours_in,), daemon=True).start()
        return child

    def solve(self, task: str, payload: Mapping[str, Any], seconds: float | None = None) -> None:
        """Hand over a task of ``api.solving.tasks``; ``seconds``: nobody waits longer, None = somebody does."""
        self.solves += 1
        self._send({"task": task, "payload": payload, "seconds": seconds})

    def stop(self) -> None:
        """Ask the running search to end with the best plan so far."""
        self._send({"stop": True})

    def next_message(self, timeout_s: float) -> Message | None:
        """The next thing it says, or None when it says nothing in time."""
        try:
            return self.messages.get(timeout=timeout_s)
        except queue.Empty:
            return None

    @property
    def lives(self) -> bool:
        """Whether it may serve another task."""
        return not self.killed and self.process.poll() is None

    def kill(self) -> None:
        """End it at once, whatever it does."""
        self.killed = True
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(END_WAIT_S)
        self.requests.close()
        self.complaints.close()

    def abort(self) -> None:
        """End it at once without waiting for it; whoever waits for its messages gets its end, and must ``kill`` it."""
        self.killed = True
        self.process.kill()

    def new_words(self) -> str:
        """What it wrote on its standard error since this was asked last; of much, the end."""
        words, self._heard_bytes = self._words_from(self._heard_bytes)
        return words

    def why_it_died(self) -> JobFailure:
        """What its exit code and its last words mean; whoever asks ends it, should it still live."""
        try:
            code = self.process.wait(END_WAIT_S)
        except subprocess.TimeoutExpired:
            return SolverCrashed(
                "the solving process closed its pipe, or wrote what is no message, and lived on",
                hint="this is a bug: please report it",
            )
        words, _ = self._words_from(0)
        if code == -signal.SIGKILL:
            return memory_limit_reached("the solving process was killed, as the system does when memory runs out")
        if "bad_alloc" in words or "MemoryError" in words:
            return memory_limit_reached()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return SolverCrashed(f"the solving process ended by {how}", hint="look at the worker's log")

    def _words_from(self, start: int) -> tuple[str, int]:
        """What it wrote from a byte on, and how many bytes it has written."""
        if self.complaints.closed:
            return "", start
        file = self.complaints.fileno()
        written = os.fstat(file).st_size
        start = max(start, written - MOST_WORDS)
        # At an offset of our own: the child writes at the one that the file has.
        return os.pread(file, written - start, start).decode(errors="replace"), written

    def _send(self, message: Mapping[str, Any]) -> None:
        data = memoryview((json.dumps(message) + "\n").encode())
        try:
            while data:
                data = data[self.requests.write(data) :]
        except (OSError, ValueError):
            # It has died or was killed; its last message says so.
            return

    def _read(self, answers_fd: int) -> None:
        with os.fdopen(answers_fd, "rb") as answers:
            while (message := read_message(answers)).kind != "died":
                self.messages.put(message)
        self.messages.put(message)


def memory_limit_reached(what: str = "the solving process reached its memory limit") -> SolverOutOfMemory:
    """What a job ends in whose search needs more memory than there is."""
    return SolverOutOfMemory(what, hint="raise the worker's --memory-limit, or ask a smaller question")
