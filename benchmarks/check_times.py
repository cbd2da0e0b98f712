"""Times of the checks themselves: ``python -m benchmarks.check_times check|test|test-cold [--write]``.

``check`` runs ``make check`` here.  ``test`` runs ``make test`` in a clean clone of the last commit, with what other
clones have kept; ``test-cold`` has a fresh home, so that nothing is kept and no package is at hand.  ``--write`` keeps
date, machine and times under ``benchmarks/results/checks``; only a run that passed is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.child import REPOSITORY
from benchmarks.machine import machine_facts

RESULTS = Path(__file__).parent / "results" / "checks"
TARGETS_S: Mapping[str, float] = {"check": 180.0, "test": 720.0, "test-cold": 1200.0}
TASKS: Mapping[str, str] = {
    "check": "make check, in a clone that is set up",
    "test": "make test in a clean clone, with what other clones on the machine have kept",
    "test-cold": "make test in a clean clone, with nothing kept and a fresh home",
}


def main() -> int:
    """Measure once; the exit status is that of make."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check_times", description="Times of the checks.")
    parser.add_argument("what", choices=sorted(TASKS))
    parser.add_argument("--write", action="store_true", help="keep the figures in benchmarks/results/checks")
    given = parser.parse_args()
    facts = machine_facts(max(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory(prefix="meshwright-checks-") as name:
        status, figures = measure(given.what, Path(name))
    print(json.dumps(figures, indent=2))
    if given.write and status == 0:
        now = datetime.now(UTC)
        run = {"what": given.what, "measured_at": now.isoformat(timespec="seconds"), "machine": facts, **figures}
        RESULTS.mkdir(parents=True, exist_ok=True)
        path = RESULTS / f"{now:%Y-%m-%d}-{given.what}.json"
        path.write_text(json.dumps(run, indent=2) + "\n", encoding="utf-8")
        print(f"written: {path}", file=sys.stderr)
    return status


def measure(what: str, folder: Path) -> tuple[int, dict[str, Any]]:
    """The exit status of make, and its wall seconds, processor seconds and seconds of each job."""
    where = REPOSITORY if what == "check" else _clone(folder)
    environment = dict(os.environ)
    if what == "test-cold":
        for name in ("XDG_CACHE_HOME", "MESHWRIGHT_CACHE", "PIP_CACHE_DIR", "npm_config_cache"):
            environment.pop(name, None)
        environment["HOME"] = str(folder / "home")
        (folder / "home").mkdir()
    jobs = folder / "jobs.json"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start_s = time.monotonic()
    command = ["make", what.partition("-")[0], f"FIGURES={jobs}"]
    status = subprocess.call(command, cwd=where, env=environment)
    wall_s = time.monotonic() - start_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    jobs_s = json.loads(jobs.read_text(encoding="utf-8"))["jobs_s"] if jobs.exists() else {}
    return status, {"wall_s": wall_s, "cpu_s": cpu_s, "jobs_s": jobs_s}


def _clone(folder: Path) -> Path:
    """The last commit, with the reference files beside it where they are."""
    subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(folder / "clone")], check=True)
    shared = REPOSITORY.parent / "shared"
    if shared.exists():
        (folder / "shared").symlink_to(shared.resolve())
    return folder / "clone"


if __name__ == "__main__":
    sys.exit(main())
