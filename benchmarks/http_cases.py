"""Thousands of requests made from the OpenAPI document, good and bad, none of which may break the service.

    python -m benchmarks.http_cases [--cases 10000] [--database URL]

Every answer is checked for server errors, for a status and a content type that the document names, and for its schema.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from typing import Any

from fastapi.testclient import TestClient

from api.app import openapi_document
from api.jobs.dbos_board import DbosBoard
from api.jobs.queue_gate import QueueLimits
from planner.store import open_store
from tests.plan_factory import make_plan
from tests.running_service import service
from tests.schema_cases import operations, send

QUEUE_LIMITS = QueueLimits(queued=10**6, queued_of_owner=10**6)
"""Nobody works: every job that a case submits stays."""


def send_all(client: TestClient, every: dict[str, Any], each: int) -> tuple[Counter[str], int]:
    """Send ``each`` cases of every operation, or as many as it has; cases by operation, and operations that failed."""
    sent: Counter[str] = Counter()
    failures = 0
    for label, operation in every.items():
        try:
            sent[label] = send(client, operation, each)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            failures += 1
            print(f"{label}: FAILED: {error}", flush=True)
        else:
            print(f"{label}: {sent[label]} cases", flush=True)
    return sent, failures


def main() -> None:
    """Send the cases and print how many were sent and what failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--database")
    arguments = parser.parse_args()
    every = operations(openapi_document())
    each = -(-arguments.cases // len(every))
    start_s = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        database = arguments.database or f"sqlite:///{folder}/plans.db"
        limits = {"synchronous_s": 2, "quick_s": 5, "most_devices": 64}
        with open_store(database) as store:
            store.label_plan("z", store.save_plan(make_plan(), 0.1))
        with DbosBoard.open(database, QUEUE_LIMITS) as board, service(database, board, **limits) as client:
            sent, failures = send_all(client, every, each)
            # An operation without parameters has one case only; the others make up for it.
            while failures == 0 and sum(sent.values()) < arguments.cases:
                rich = {label: every[label] for label, count in sent.items() if count >= each}
                more, failures = send_all(client, rich, -(-(arguments.cases - sum(sent.values())) // len(rich)))
                sent.update(more)
    total = sum(sent.values())
    print(f"{total:,} cases in {time.perf_counter() - start_s:.0f} s; {failures} operations failed")


if __name__ == "__main__":
    main()
