"""Does any request made from the OpenAPI document break the service?  Thousands of them, good and bad.

    python -m benchmarks.http_cases [--cases 10000] [--database URL]

Every answer is checked for server errors, for a status and a content type that the document names, and for its schema.
"""

from __future__ import annotations

import argparse
import tempfile
import time

from api.app import openapi_document
from planner.store import open_store
from tests.board_in_memory import MemoryBoard
from tests.plan_factory import make_plan
from tests.running_service import service
from tests.schema_cases import operations, send


def main() -> None:
    """Send the cases and print how many were sent and what failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--database")
    arguments = parser.parse_args()
    every = operations(openapi_document())
    each = -(-arguments.cases // len(every))
    start_s, total, failed = time.perf_counter(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        database = arguments.database or f"sqlite:///{folder}/plans.db"
        limits = {"synchronous_s": 2, "quick_s": 5, "most_devices": 64}
        with open_store(database) as store:
            store.label_plan("z", store.save_plan(make_plan(), 0.1))
        with service(database, MemoryBoard(database, paused=True, capacity=10**6), **limits) as client:
            for label, operation in every.items():
                try:
                    sent = send(client, operation, each)
                except BaseException as error:
                    if isinstance(error, KeyboardInterrupt):
                        raise
                    failed += 1
                    print(f"{label}: FAILED: {error}", flush=True)
                    continue
                total += sent
                print(f"{label}: {sent} cases", flush=True)
    print(f"{total:,} cases in {time.perf_counter() - start_s:.0f} s; {failed} operations failed")


if __name__ == "__main__":
    main()
