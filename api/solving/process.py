"""How is a solve kept apart from the worker?  In a child process of its own, spoken to by two pipes.

A child that crashes, hangs or eats memory takes nothing with it.  It is started ahead of time, so that a solve finds
its imports done, and serves several solves; one that misbehaved, or has served many, is replaced.
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
from dataclasses import dataclass, field
from typing import Any

from api.errors import JobFailure, SolverCrashed, SolverOutOfMemory

SOLVES_OF_A_CHILD = 100
"""Then it is replaced: a leak, wherever it is, stays small."""
END_WAIT_S = 5.0
_DIED = "died"


@dataclass(slots=True)
class SolverProcess:
    """One child.  ``next_message`` gives what it says; ``{"died": True}`` is its last message."""

    process: subprocess.Popen[bytes]
    requests_fd: int
    messages: queue.SimpleQueue[dict[str, Any]] = field(default_factory=queue.SimpleQueue)
    complaints: Any = None
    solves: int = 0
    killed: bool = False

    @classmethod
    def start(cls, memory_limit_bytes: int, module: str) -> SolverProcess:
        """Start a child; returns before it is ready."""
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        complaints = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        arguments = [str(theirs_in), str(theirs_out), str(memory_limit_bytes)]
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                pass_fds=(theirs_in, theirs_out),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                # Signals of the terminal are for the worker, which tells its children.
                start_new_session=True,
            )
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        child = cls(process, ours_out, complaints=complaints)
        threading.Thread(target=child._read, args=(ours_in,), daemon=True).start()
        return child

    def solve(self, request: str) -> None:
        """Hand over a request, canonical JSON."""
        self.solves += 1
        self._send({"solve": request})

    def stop(self) -> None:
        """Ask the running solve to end with the best plan so far."""
        self._send({"stop": True})

    def next_message(self, timeout_s: float) -> dict[str, Any] | None:
        """The next thing it says, or None when it says nothing in time."""
        try:
            return self.messages.get(timeout=timeout_s)
        except queue.Empty:
            return None

    @property
    def reusable(self) -> bool:
        """Whether it may serve another solve."""
        return not self.killed and self.process.poll() is None and self.solves < SOLVES_OF_A_CHILD

    def kill(self) -> None:
        """End it at once, whatever it does."""
        self.killed = True
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(END_WAIT_S)
        if self.requests_fd >= 0:
            os.close(self.requests_fd)
            self.requests_fd = -1
        self.complaints.close()

    def why_it_died(self) -> JobFailure:
        """What its exit code and its last words mean; whoever asks ends it, should it still live."""
        try:
            code = self.process.wait(END_WAIT_S)
        except subprocess.TimeoutExpired:
            return SolverCrashed(
                "the solving process closed its pipe, or wrote what is no message, and lived on",
                hint="this is a bug: please report it",
            )
        words = self._last_words()
        if code == -signal.SIGKILL or "bad_alloc" in words or "MemoryError" in words:
            return SolverOutOfMemory(
                "the solving process was killed, as the system does when memory runs out"
                if code == -signal.SIGKILL
                else "the solving process reached its memory limit",
                hint="raise the worker's --memory-limit, or ask a smaller question",
            )
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return SolverCrashed(f"the solving process ended by {how}", hint="look at the worker's log")

    def _last_words(self) -> str:
        self.complaints.seek(0, os.SEEK_END)
        self.complaints.seek(max(0, self.complaints.tell() - 4000))
        return bytes(self.complaints.read()).decode(errors="replace")

    def _send(self, message: dict[str, Any]) -> None:
        data = memoryview((json.dumps(message) + "\n").encode())
        try:
            while data:
                data = data[os.write(self.requests_fd, data) :]
        except OSError:
            # It has died; its last message says so.
            return

    def _read(self, answers_fd: int) -> None:
        try:
            with os.fdopen(answers_fd, "r", encoding="utf-8", errors="replace") as answers:
                for line in answers:
                    if line.endswith("\n"):
                        self.messages.put(json.loads(line))
        except ValueError:
            # Half a line, or no JSON: it died while it wrote.
            pass
        self.messages.put({_DIED: True})
