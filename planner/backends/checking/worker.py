"""Asks a validator: one warm process, one JSON object a line each way; a crash or a hang is an answer too."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from planner.backends.checking.environment import make_ready
from planner.backends.checking.validator import Request, Validator, Verdict
from planner.errors import ValidatorUnavailable

_START = Path(__file__).with_name("start_script.py")
ANSWER_TIMEOUT_S = 120.0
"""For one request, the worker's imports included where it is the first."""


class Worker:
    """A validator's process, started at the first request and again after it died.  Use it as a context manager."""

    def __init__(self, validator: Validator, version: str, timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        self.validator = validator
        self.version = version
        self.timeout_s = timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._rest = b""

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, request: Request) -> Verdict:
        """The verdict on one request.  Raises ValidatorUnavailable when the process dies, hangs or talks nonsense."""
        begin = time.perf_counter()
        process = self._process or self._start()
        line = json.dumps(request).encode() + b"\n"
        try:
            assert process.stdin is not None
            process.stdin.write(line)
            process.stdin.flush()
            answer = self._answer(process)
            return Verdict(
                validator=self.validator.name,
                version=self.version,
                accepted=bool(answer["accepted"]),
                stage=str(answer.get("stage", "")),
                message=str(answer.get("message", "")),
                facts=dict(answer.get("facts") or {}),
                wall_s=time.perf_counter() - begin,
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._broken(error) from error

    def close(self) -> None:
        """End the process and everything that it started."""
        process, self._process, self._rest = self._process, None, b""
        if self._errors is not None:
            self._errors.close()
            self._errors = None
        if process is None:
            return
        assert process.stdin is not None
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            process.stdin.close()
            process.wait(timeout=5)
        # The worker leads a session of its own, so children that it left behind go with it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def _start(self) -> subprocess.Popen[bytes]:
        folder = make_ready(self.validator, self.version)
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **self.validator.environment(folder)}
        environment.setdefault("OMP_NUM_THREADS", "1")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the process
        self._process = subprocess.Popen(
            [sys.executable, str(_START), str(self.validator.worker), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            start_new_session=True,
        )
        return self._process

    def _answer(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        assert process.stdout is not None
        end = time.monotonic() + self.timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not selector.select(max(0.0, end - time.monotonic())):
                    raise ValueError(f"no answer within {self.timeout_s:g} s")
                more = os.read(process.stdout.fileno(), 1 << 16)
                if not more:
                    raise ValueError("the process ended")
                self._rest += more
        line, self._rest = self._rest.split(b"\n", 1)
        answer = json.loads(line)
        if not isinstance(answer, dict):
            raise ValueError("the answer is not an object")
        return answer

    def _last_words(self) -> list[str]:
        """The end of what the process said on stderr, once it had a moment to say it."""
        if self._process is None or self._errors is None:
            return []
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=0.5)
        self._errors.seek(0)
        return self._errors.read()[-2000:].decode(errors="replace").strip().splitlines()

    def _broken(self, error: Exception) -> ValidatorUnavailable:
        words = self._last_words()
        self.close()
        said = f": {words[-1]}" if words else ""
        return ValidatorUnavailable(
            f"the process of {self.validator.name} {self.version} gave no verdict ({error}){said}",
            where=f"--with {self.validator.name}=={self.version}",
            hint="see the message; another release may work",
        )
