"""The speed of the REST service: a real server in its own process, real sockets, what schedulers send.

    python -m benchmarks.http_service [--database URL] [--repeats 3000] [--cold 8]

Prints medians and tails beside their targets.  The clients share the machine's cores with the server, so every figure
is that of a whole machine, not of the server alone; the load average is printed with them.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
CLIENTS = 32
COUNTS = [8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1280, 1536, 2048, 2560, 3072, 4096]
MIB = 2**20

Call = Callable[[http.client.HTTPConnection], tuple[int, bytes]]


def question(**changes: Any) -> dict[str, Any]:
    """Llama-3.1-70B on 64 H100."""
    workload = {"global_batch_size": 1024, "sequence_length": 4096}
    return {"model": "llama-3.1-70b", "cluster": "dgx-h100", "devices": 64, "workload": workload, **changes}


@contextmanager
def serving(database: str) -> Iterator[tuple[int, int]]:
    """A server on a free port; gives the port and the process id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "planner.cli.main", "serve", "--port", str(port), "--database", database]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([*command, "--jobs", "0"], cwd=REPOSITORY, stdout=log, stderr=log)
        try:
            _wait_for(port, process)
            yield port, process.pid
        finally:
            process.terminate()
            process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not start")


def post(path: str, body: dict[str, Any]) -> Call:
    """A POST of one body, spelt once."""
    content = json.dumps(body).encode()
    return lambda connection: _ask(connection, "POST", path, content)


def get(path: str) -> Call:
    """A GET."""
    return lambda connection: _ask(connection, "GET", path, None)


def _ask(connection: http.client.HTTPConnection, method: str, path: str, content: bytes | None) -> tuple[int, bytes]:
    connection.request(method, path, content, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, response.read()


def timed(port: int, calls: list[Call]) -> list[float]:
    """Seconds of each call, one after the other on one connection.  Raises SystemExit for an error answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    seconds = []
    for call in calls:
        start_s = time.perf_counter()
        status, content = call(connection)
        seconds.append(time.perf_counter() - start_s)
        if status != 200:
            raise SystemExit(f"{status}: {content[:500]!r}")
    connection.close()
    return seconds


def together(port: int, call: Call, repeats: int) -> tuple[float, list[float]]:
    """Requests a second of ``CLIENTS`` clients, and every latency."""
    latencies: list[list[float]] = []

    def client() -> None:
        latencies.append(timed(port, [call] * (repeats // CLIENTS)))

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    start_s = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall_s = time.perf_counter() - start_s
    every = [each for part in latencies for each in part]
    return len(every) / wall_s, every


def resident_bytes(pid: int) -> int:
    """Resident memory of the server, without its children."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def quantile(values: list[float], part: float) -> float:
    """The value below which ``part`` of them lie."""
    return sorted(values)[min(int(part * len(values)), len(values) - 1)]


def row(what: str, figure: str, target: str) -> None:
    """One line of the answer."""
    print(f"{what:58} {figure:>28}   target {target}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--database")
    parser.add_argument("--repeats", type=int, default=3000)
    parser.add_argument("--cold", type=int, default=8)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, serving(arguments.database or f"{folder}/plans.db") as (port, pid):
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        timed(port, [post("/v1/plans", question(devices=512))])
        measure(port, pid, arguments.cold, arguments.repeats)


def measure(port: int, pid: int, num_cold: int, repeats: int) -> None:
    """Every figure."""
    batches = [1024 + 64 * index for index in range(num_cold)]
    cold = [question(workload={"global_batch_size": batch, "sequence_length": 4096}) for batch in batches]
    seconds = timed(port, [post("/v1/plans", each) for each in cold])
    row("POST plans, 70B on 64, cold content: p50, max", f"{_ms(seconds, 0.5)}, {_ms(seconds, 1)}", "p50 <= 400 ms")
    same = post("/v1/plans", cold[0])
    seconds = timed(port, [same] * 500)
    row("the same content again, one client: p50, p95", f"{_ms(seconds, 0.5)}, {_ms(seconds, 0.95)}", "p50 <= 10 ms")
    before = resident_bytes(pid)
    rate, seconds = together(port, same, repeats)
    row(f"the same content, {CLIENTS} clients", f"{rate:,.0f}/s, p50 {_ms(seconds, 0.5)}", ">= 300/s")
    growth = (resident_bytes(pid) - before) / MIB
    row(f"memory growth over {repeats:,} requests", f"{growth:.1f} MiB", "<= 50 MB over 100,000")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    plan_id = json.loads(same(connection)[1])["plan_id"]
    seconds = timed(port, [get(f"/v1/plans/{plan_id}")] * 500)
    row("GET plan: p50, p95", f"{_ms(seconds, 0.5)}, {_ms(seconds, 0.95)}", "p95 <= 15 ms")
    # Each one new: an estimate that was made before is answered from memory.
    what_ifs = [
        post("/v1/estimates", question(strategy={"tp": 8, "pp": pp, "zero": zero, "recompute": recompute, "sp": sp}))
        for pp in (1, 2, 4, 8)
        for zero in (0, 1)
        for recompute in ("none", "full")
        for sp in (True, False)
    ]
    seconds = timed(port, what_ifs)
    row("POST estimates: p50, p95", f"{_ms(seconds, 0.5)}, {_ms(seconds, 0.95)}", "p95 <= 20 ms")
    curve = {key: value for key, value in question().items() if key != "devices"}
    start_s = time.perf_counter()
    _, content = post("/v1/throughput", {**curve, "device_counts": COUNTS, "budget_s": 2.0})(connection)
    answer = json.loads(content)
    wall_s, undecided = time.perf_counter() - start_s, answer["undecided"]
    row(f"POST throughput, 20 counts, budget 2 s ({undecided} undecided)", f"{wall_s:.2f} s", "<= 2 s")
    gaps = [point["gap"] for point in answer["points"] if point["gap"] is not None]
    if gaps:
        print(f"  gap to the bound of the whole space: median {statistics.median(gaps):.1%}, largest {max(gaps):.1%}")
    start_s = time.perf_counter()
    _, content = post("/v1/throughput", {**curve, "device_counts": COUNTS, "budget_s": 30.0})(connection)
    row("the same with a budget of 30 s", f"{time.perf_counter() - start_s:.2f} s", "-")
    print(f"  undecided: {json.loads(content)['undecided']}")


def _ms(seconds: list[float], part: float) -> str:
    return f"{quantile(seconds, part) * 1e3:.1f} ms"


if __name__ == "__main__":
    main()
