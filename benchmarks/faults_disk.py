"""The disk of an SQLite database fills up under load, and the file may not be written.

A real ``meshwright serve`` with its own worker on a small file system.  Requests are refused with 507 or 503, readiness
is red, nothing acknowledged is lost, the files are sound, and making space repairs everything.
"""

from __future__ import annotations

import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchmarks.faults_verdict import clients_verdict, jobs_verdict
from tests.http_load import HttpLoad, job_question
from tests.service_processes import ServiceProcess
from tests.small_file_system import fill, small_file_system

DISK_BYTES = 64 * 2**20
SETTLE_S = 4.0
PAUSE_S = 0.3
REPAIR_S = 10.0
UNPRIVILEGED = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search")
"""Takes from root what lets it write to files that forbid it."""


def full_disk(full_s: float = 30.0) -> dict[str, Any]:
    """No byte is free for so long; then the ballast goes.  Raises CannotMount."""
    with (
        tempfile.TemporaryDirectory(prefix="mwfault") as logs,
        tempfile.TemporaryDirectory(prefix="mwdisk") as place,
        small_file_system(Path(place), DISK_BYTES) as disk,
        ServiceProcess(f"sqlite:///{disk / 'plans.db'}", Path(logs), "--jobs", "1") as service,
    ):
        with HttpLoad([service.address], clients=4, pause_s=PAUSE_S) as load:
            time.sleep(SETTLE_S)
            ballast = fill(disk)
            ready = _readiness(service, full_s)
            ballast.unlink()
            freed_s = time.monotonic()
            time.sleep(SETTLE_S)
        jobs = jobs_verdict(f"sqlite:///{disk / 'plans.db'}", load.acknowledged)
        late = [each for each in load.answers if each.at_s >= freed_s and each.status not in {200, 202}]
        return {
            "database": "sqlite",
            "fault": "disk full",
            "full_s": full_s,
            **jobs,
            **clients_verdict(load),
            "ready_while_full": any(ready),
            "ready_afterwards": service.answers("/readyz"),
            "last_refusal_after_space_s": max((each.at_s - freed_s for each in late), default=0.0),
            "sound": sound(disk),
        }


def _readiness(service: ServiceProcess, for_s: float) -> list[bool]:
    end_s, seen = time.monotonic() + for_s, []
    while time.monotonic() < end_s:
        seen.append(service.answers("/readyz"))
        time.sleep(0.5)
    return seen


def sound(folder: Path) -> bool:
    """Whether SQLite itself finds no damage in any database there."""
    checks = []
    for path in folder.glob("*.db"):
        with closing(sqlite3.connect(path)) as connection:
            checks += connection.execute("PRAGMA integrity_check").fetchall()
    return bool(checks) and set(checks) == {("ok",)}


@contextmanager
def read_only_service(folder: Path) -> Iterator[ServiceProcess]:
    """A service that was started on files which it may not write, and which hold the plan of question 1."""
    url = f"sqlite:///{folder / 'plans.db'}"
    with ServiceProcess(url, folder, "--jobs", "0") as service:
        httpx.post(f"{service.address}/v1/plans", json=job_question(1), timeout=60).raise_for_status()
        service.terminate()
        allow_writing(folder, allowed=False)
        service.prefix = UNPRIVILEGED
        service.start_again()
        yield service


def allow_writing(folder: Path, *, allowed: bool) -> None:
    """Make every file of the databases there writable, or not."""
    for path in folder.glob("*.db*"):
        path.chmod(0o644 if allowed else 0o444)


def can_drop_privileges() -> bool:
    """Whether ``UNPRIVILEGED`` works here."""
    try:
        return subprocess.run([*UNPRIVILEGED, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def read_only_file() -> dict[str, Any]:
    """What is answered meanwhile, and how long after the file can be written again."""
    with tempfile.TemporaryDirectory(prefix="mwfault") as folder, read_only_service(Path(folder)) as service:
        load = HttpLoad([service.address])
        with httpx.Client(timeout=60) as http:
            for turn, (method, path, body) in enumerate(
                [
                    ("GET", "/v1/plans", None),
                    ("POST", "/v1/plans", job_question(1)),
                    ("POST", "/v1/plans", job_question(2)),
                    ("PUT", "/v1/labels/x", {"plan": "abcd"}),
                ]
            ):
                load.ask(http, turn, method, path, json=body)
            seen = {"answers": load.statuses(), "answers_at_fault": load.faults()}
            ready = service.answers("/readyz")
            allow_writing(Path(folder), allowed=True)
            start_s, tries, status = time.monotonic(), 0, 0
            while status != httpx.codes.OK and time.monotonic() - start_s < REPAIR_S:
                tries += 1
                status = http.post(f"{service.address}/v1/plans", json=job_question(2)).status_code
            return {
                "database": "sqlite",
                "fault": "read-only file",
                **seen,
                "ready_while_read_only": ready,
                "ready_afterwards": service.answers("/readyz"),
                "tries_until_stored": tries,
                "sound": sound(Path(folder)),
            }
