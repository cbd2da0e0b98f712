"""The queue is full, and a hundred clients send the same request at once, over real HTTP.

A refusal is 429 with Retry-After, quick, and leaves nothing behind; one key makes one job, and no other content.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np

from api.jobs.dbos_board import DbosBoard
from api.jobs.queue_gate import QueueLimits
from benchmarks.job_queue import database
from planner.store import open_store
from tests.http_load import job_question
from tests.listening_service import listening

MOST_QUEUED = 5
TIMEOUT_S = 120.0


def queue_full(kind: str, times: int = 100) -> dict[str, Any]:
    """So many submissions to a full queue, one after the other."""
    with (
        database(kind, durable=False) as (url, _),
        DbosBoard.open(url, QueueLimits(queued=MOST_QUEUED)) as board,
        listening(url, board) as address,
        httpx.Client(base_url=address, timeout=TIMEOUT_S) as http,
    ):
        for number in range(MOST_QUEUED):
            _submit(http, number + 1, f"kept-{number}").raise_for_status()
        before = [record.id for record in board.list_jobs()]
        walls_s, answers = [], []
        for number in range(times):
            start_s = time.perf_counter()
            answers.append(_submit(http, 100 + number, f"refused-{number}"))
            walls_s.append(time.perf_counter() - start_s)
        with open_store(url) as store:
            keys = [store.service().keyed_request("local", f"key/refused-{number}") for number in range(times)]
        return {
            "database": kind,
            "fault": "queue full",
            "times": times,
            "answers": dict(Counter(str(each.status_code) for each in answers)),
            "without_retry_after": sum("retry-after" not in each.headers for each in answers),
            "slugs": sorted({each.json().get("slug", "") for each in answers}),
            "refusal_p50_s": float(np.quantile(walls_s, 0.5)),
            "refusal_p99_s": float(np.quantile(walls_s, 0.99)),
            "refusal_max_s": max(walls_s),
            "jobs_stored": len({record.id for record in board.list_jobs()} - set(before)),
            "keys_stored": sum(key is not None for key in keys),
        }


def equal_keys(kind: str, clients: int = 100) -> dict[str, Any]:
    """So many clients with one key and one content; then one with the same key and another content."""
    with (
        database(kind, durable=False) as (url, _),
        DbosBoard.open(url) as board,
        listening(url, board) as address,
    ):
        together = threading.Barrier(clients)

        def ask(_client: int) -> httpx.Response:
            with httpx.Client(base_url=address, timeout=TIMEOUT_S) as http:
                together.wait()
                return _submit(http, 1, "the-same")

        with ThreadPoolExecutor(clients) as threads:
            answers = list(threads.map(ask, range(clients)))
        with httpx.Client(base_url=address, timeout=TIMEOUT_S) as http:
            again = _submit(http, 1, "the-same")
            other = _submit(http, 2, "the-same")
        return {
            "database": kind,
            "fault": "equal keys at once",
            "clients": clients,
            "answers": dict(Counter(str(each.status_code) for each in answers)),
            "jobs": len(board.list_jobs()),
            "ids": len({each.json()["id"] for each in [*answers, again] if each.status_code == httpx.codes.ACCEPTED}),
            "again": again.status_code,
            "other_content": other.status_code,
        }


def _submit(http: httpx.Client, number: int, key: str) -> httpx.Response:
    headers = {"Prefer": "respond-async", "Idempotency-Key": key}
    return http.post("/v1/plans", json=job_question(number), headers=headers)
