"""The settings of a worker."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from api.solving.pool import CHILD
from api.telemetry.logs import LogFormat


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How a worker works.  Times in seconds.

    ``lease_s``: a worker whose heartbeat has not moved for so long is taken for dead, and its jobs run elsewhere.
    ``longest_solve_s``: a search that asks for no time limit, or a longer one, is ended then with its best plan.
    ``grace_s``: how long a solve that was told to end may work on it before its process is killed; waiting for a
    processor does not count (``api.solving.patience``).
    ``solver_module``: what the solving process runs (``api.solving.messages`` says what it must understand).
    ``tracing``: a ``TracingSettings`` as plain data, which the process of an embedded worker is given; None = no spans.
    ``drain_s``: how long running solves may go on when the worker is asked to end; then other workers get them.
    """

    database_url: str | None = None
    concurrency: int = 1
    memory_limit_bytes: int = 0
    lease_s: float = 20.0
    heartbeat_s: float = 4.0
    longest_solve_s: float = 3600.0
    grace_s: float = 10.0
    drain_s: float = 20.0
    poll_s: float = 0.1
    solver_module: str = CHILD
    log_format: LogFormat = "text"
    tracing: Mapping[str, Any] | None = None

    def line(self) -> bytes:
        """All of it as the line of JSON that ``python -m api.worker`` reads from its standard input."""
        return json.dumps(asdict(self)).encode() + b"\n"


def default_memory_limit_bytes(concurrency: int) -> int:
    """Three quarters of the machine's memory, shared by the solves that may run at once."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(total * 0.75) // max(1, concurrency)
