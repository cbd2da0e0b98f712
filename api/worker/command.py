"""``meshwright worker``: run jobs of a database until told to end."""

from __future__ import annotations

import os
import signal
import threading

from api.telemetry.logs import configure_logging
from api.worker.settings import WorkerSettings
from profiles.errors import DocumentInvalid

MOST_CONCURRENT = 256
LEAST_LEASE_S = 1.0
LEAST_MEMORY_BYTES = 2**29
"""What a solving process needs to start, and a little room."""


def run_worker(settings: WorkerSettings, *, until_stdin_closes: bool = False) -> int:
    """Work until SIGTERM or SIGINT (or until stdin closes: whoever started it has gone), then drain.

    A second signal ends it at once; its jobs then run elsewhere after the lease.
    """
    check_settings(settings)
    # Here: DBOS and SQLAlchemy cost a second, which ``--help`` and a bad flag need not pay.
    from api.worker.service import Worker

    configure_logging(settings.log_format)
    end = threading.Event()

    def on_signal(_number: int, _frame: object) -> None:
        if end.is_set():
            os._exit(1)
        end.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    worker = Worker(settings)
    worker.start()
    if until_stdin_closes:
        threading.Thread(target=_wait_for_stdin, args=(end,), daemon=True).start()
    while not end.wait(1.0):
        continue
    worker.drain()
    return 0


def check_settings(settings: WorkerSettings) -> None:
    """Refuse what cannot work.  Raises DocumentInvalid."""
    if not 1 <= settings.concurrency <= MOST_CONCURRENT:
        raise DocumentInvalid(
            f"{settings.concurrency} solves at once is out of range",
            where="--concurrency",
            hint=f"give a number from 1 to {MOST_CONCURRENT}",
        )
    if not settings.lease_s >= max(LEAST_LEASE_S, 2 * settings.heartbeat_s):
        raise DocumentInvalid(
            f"a lease of {settings.lease_s:g} s is too short for a heartbeat every {settings.heartbeat_s:g} s",
            where="--lease",
            hint=f"give at least {max(LEAST_LEASE_S, 2 * settings.heartbeat_s):g}",
        )
    if settings.memory_limit_bytes and settings.memory_limit_bytes < LEAST_MEMORY_BYTES:
        raise DocumentInvalid(
            f"{settings.memory_limit_bytes:,} bytes are too little for a solve",
            where="--memory-limit",
            hint=f"give at least {LEAST_MEMORY_BYTES / 2**30:g} GiB",
        )


def _wait_for_stdin(end: threading.Event) -> None:
    # Not through sys.stdin, whose lock a daemon thread would hold while the interpreter ends.
    while os.read(0, 4096):
        continue
    end.set()
