"""Clients during a fault: threads that submit jobs and read them, and remember every answer.

Each client submits under a key of its own, repeats the same request until it is acknowledged, and reads a job that was
acknowledged before.  Every address is tried in turn, as behind a balancer that knows nothing.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import httpx

from api.wire.problem_details import MEDIA_TYPE
from tests.running_service import question

TIMEOUT_S = 180.0
PINS = {"tp": 1, "pp": 1, "cp": 1, "micro_batch_size": 1, "zero_stage": 1}
UNREACHABLE = 0
"""Stands for an answer that never came: refused, reset, closed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One try of one request."""

    at_s: float
    wall_s: float
    method: str
    status: int
    slug: str
    faults: tuple[str, ...]


def job_question(number: int, **changes: Any) -> dict[str, Any]:
    """A small question of its own: no two numbers have the same answer."""
    workload = {"global_batch_size": 8 * number, "sequence_length": 2048}
    return question(workload=workload, constraints={"pins": PINS}, top_k=0, **changes)


class HttpLoad:
    """Clients that go on until the block ends; then what they were answered."""

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        clients: int = 4,
        pause_s: float = 0.05,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.addresses, self._pause_s, self._headers = list(addresses), pause_s, dict(headers or {})
        self.answers: list[Answer] = []
        self.acknowledged: dict[str, int] = {}
        self.tries_until_acknowledged: Counter[int] = Counter()
        self.reads_failed_twice = 0
        self._next = 1
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in range(clients)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(2 * TIMEOUT_S)

    def count(self, status: int) -> int:
        """Answers with a status."""
        return sum(answer.status == status for answer in self.answers)

    def statuses(self) -> dict[str, int]:
        """How often each status came; ``unreachable`` for none."""
        counted = Counter("unreachable" if each.status == UNREACHABLE else str(each.status) for each in self.answers)
        return dict(sorted(counted.items()))

    def faults(self) -> list[str]:
        """What no answer may be: a 5xx that is no problem document, a 503 that does not say when to come back."""
        return sorted({fault for answer in self.answers for fault in answer.faults})

    def _run(self, client: int) -> None:
        draw = random.Random(client)
        with httpx.Client(timeout=TIMEOUT_S, headers=self._headers) as http:
            while not self._end.wait(self._pause_s):
                with self._lock:
                    number, self._next = self._next, self._next + 1
                self._submit(http, number)
                known = list(self.acknowledged)
                if known:
                    self._read(http, number, draw.choice(known))

    def _read(self, http: httpx.Client, number: int, job: str) -> None:
        for turn in (number, number + 1):
            response = self.ask(http, turn, "GET", f"/v1/jobs/{job}")
            if response is not None and response.is_success:
                return
        with self._lock:
            self.reads_failed_twice += 1

    def _submit(self, http: httpx.Client, number: int) -> None:
        """Repeat one submission until it is acknowledged, or everything ends."""
        headers = {"Prefer": "respond-async", "Idempotency-Key": f"load-{number}"}
        body = job_question(number)
        tries = 0
        while not (tries and self._end.is_set()):
            response = self.ask(http, number + tries, "POST", "/v1/plans", json=body, headers=headers)
            tries += 1
            if response is not None and response.status_code == httpx.codes.ACCEPTED:
                with self._lock:
                    self.acknowledged[response.json()["id"]] = number
                    self.tries_until_acknowledged[tries] += 1
                return
            if response is not None and response.is_success:
                # Its job has ended already: an earlier try had stored it without being able to say so.
                return
            self._end.wait(0.25)

    def ask(self, http: httpx.Client, turn: int, method: str, path: str, **request: Any) -> httpx.Response | None:
        """One try, remembered; None when no answer came."""
        address = self.addresses[turn % len(self.addresses)]
        start_s = time.monotonic()
        try:
            response = http.request(method, address + path, **request)
        except httpx.TransportError as error:
            self._note(start_s, method, UNREACHABLE, type(error).__name__, ())
            return None
        problem = response.headers.get("content-type", "") == MEDIA_TYPE
        faults = []
        if response.is_error and not problem:
            faults.append(f"{response.status_code} is no problem document")
        if response.status_code in {429, 503} and "retry-after" not in response.headers:
            faults.append(f"{response.status_code} without Retry-After")
        if method == "GET" and response.status_code == httpx.codes.NOT_FOUND:
            faults.append(f"an acknowledged job is not found: {path}")
        slug = response.json()["slug"] if problem else ""
        self._note(start_s, method, response.status_code, slug, tuple(faults))
        return response

    def _note(self, start_s: float, method: str, status: int, slug: str, faults: tuple[str, ...]) -> None:
        now = time.monotonic()
        with self._lock:
            self.answers.append(Answer(now, now - start_s, method, status, slug, faults))
