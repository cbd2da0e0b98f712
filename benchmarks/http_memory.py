"""The memory of the service's processes along a long mix of requests, good and bad.

    python -m benchmarks.http_memory [--requests 100000] [--database URL]

The mix: the same plan asked again, plans and lists read, estimates of ever new strategies and workloads, questions
checked, and requests that must be refused.  The first tenth warms caches up and is not counted.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.http_service import CLIENTS, MIB, Call, get, post, question, resident_bytes, row, serving

MIX: dict[str, int] = {
    "the same plan": 40,
    "read the plan": 20,
    "list plans": 10,
    "refused": 15,
    "new estimate": 5,
    "check": 10,
}
"""Of a hundred requests."""
WARM_UP = 0.1


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--database")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, serving(arguments.database or f"{folder}/plans.db") as (port, pid):
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        plan_id = _plan(port)
        _send(port, plan_id, 0, int(arguments.requests * WARM_UP))
        before, children = resident_bytes(pid), _children_bytes(pid)
        start_s = time.perf_counter()
        statuses = _send(port, plan_id, arguments.requests, arguments.requests)
        wall_s = time.perf_counter() - start_s
        grown = f"{(resident_bytes(pid) - before) / MIB:+.1f} MiB from {before / MIB:.0f}"
        row(f"memory of the server over {arguments.requests:,} mixed requests", grown, "<= 50 MB")
        grown = f"{(_children_bytes(pid) - children) / MIB:+.1f} MiB from {children / MIB:.0f}"
        row("memory of its computing processes", grown, "<= 50 MB")
        print(f"  {arguments.requests / wall_s:,.0f} requests/s; answers by status: {dict(sorted(statuses.items()))}")


def _plan(port: int) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    return str(json.loads(post("/v1/plans", question())(connection)[1])["plan_id"])


def _send(port: int, plan_id: str, first: int, count: int) -> Counter[int]:
    """Send requests number ``first`` to ``first + count`` from many clients; answers by status."""
    statuses: Counter[int] = Counter()
    lock = threading.Lock()

    def client(mine: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        counted: Counter[int] = Counter()
        for number in range(first + mine, first + count, CLIENTS):
            counted[_call(plan_id, number)(connection)[0]] += 1
        connection.close()
        with lock:
            statuses.update(counted)

    threads = [threading.Thread(target=client, args=(mine,)) for mine in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


def _call(plan_id: str, number: int) -> Call:
    place = number * 37 % 100
    for kind, share in MIX.items():
        if place < share:
            return _request(kind, plan_id, number)
        place -= share
    raise AssertionError(f"the mix has {sum(MIX.values())} parts of a hundred")


def _request(kind: str, plan_id: str, number: int) -> Call:
    if kind == "the same plan":
        return post("/v1/plans", question())
    if kind == "read the plan":
        return get(f"/v1/plans/{plan_id}")
    if kind == "list plans":
        return get("/v1/plans?limit=20")
    if kind == "refused":
        return _refused(number)
    workload: dict[str, Any] = {"global_batch_size": 64 + 64 * (number % 5_000), "sequence_length": 4096}
    if kind == "new estimate":
        return post("/v1/estimates", question(workload=workload, strategy={"tp": 8, "pp": 2 + 2 * (number % 2)}))
    return post("/v1/problems:check", question(workload=workload))


def _refused(number: int) -> Call:
    bad: list[Call] = [
        get(f"/v1/plans/{number:064x}"),
        get(f"/v1/nowhere/{number}"),
        post("/v1/plans", question(model=f"no-such-model-{number}")),
        post("/v1/plans", {"model": number}),
    ]
    return bad[number // 100 % len(bad)]


def _children_bytes(pid: int) -> int:
    """Resident memory of the processes that compute for the server."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    children = [int(child) for task in tasks for child in (task / "children").read_text(encoding="ascii").split()]
    return sum(resident_bytes(child) for child in children)


if __name__ == "__main__":
    main()
