"""Executes the corpus of a back-end: ``python -m benchmarks.executed_plans --backend NAME [--resume]``."""

from __future__ import annotations

import argparse
import math
import os
import platform
import sys
import time
from typing import Any

from benchmarks.executed_plans.corpus import Candidate, corpus
from benchmarks.executed_plans.execution import TIMEOUT_S, executed
from benchmarks.executed_plans.published import chosen, published
from benchmarks.executed_plans.record import read_record, write_record
from benchmarks.executed_plans.warm import warm
from planner.backends.registry import software, with_files


def main() -> int:
    """Execute and record; each plan is on disk before the next one begins."""
    able = [each.name for each in with_files() if each.tiny_run is not None]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.executed_plans", description=__doc__)
    parser.add_argument("--backend", required=True, choices=able)
    parser.add_argument("--count", type=int, default=48, help="plans of the corpus; 0 = the chosen ones alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="leave out what the record already has")
    parser.add_argument("--again", nargs="*", default=[], metavar="VERDICT", help="with --resume: those once more")
    parser.add_argument("--only", nargs="*", metavar="ID", help="these plans")
    parser.add_argument(
        "--until",
        type=_seconds_until,
        metavar="HH:MM",
        help="start no further plan after the next time that clocks show this, UTC",
    )
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, metavar="SECONDS", help="for one plan")
    options = parser.parse_args()
    end = time.monotonic() + (math.inf if options.until is None else options.until)
    wanted = [*corpus(options.backend, options.count, options.seed), *chosen(options.backend)]
    wanted += published(options.backend) if options.count else []
    record = read_record(options.backend) if options.resume or options.only else {"backend": options.backend}
    rows = {row["id"]: row for row in record.get("plans", ())}
    with warm(options.backend):
        for candidate in wanted:
            if options.only and candidate.name not in options.only:
                continue
            known = rows.get(candidate.name, {}).get("verdict")
            if options.resume and known is not None and known not in options.again:
                continue
            if time.monotonic() >= end:
                break
            rows[candidate.name] = _execute(candidate, options.timeout)
            write_record(_head(options.backend, options.seed) | {"plans": _in_order(wanted, rows)})
    return 0


def _seconds_until(clock: str) -> float:
    """From now to the next time that a clock in UTC shows ``HH:MM``; it may be tomorrow's.  Raises ValueError."""
    hours, minutes = (int(part) for part in clock.split(":"))
    if not (0 <= hours < 24 and 0 <= minutes < 60):
        raise ValueError(f"{clock} is no time of day")
    return (hours * 3600 + minutes * 60 - time.time()) % 86400


def _execute(candidate: Candidate, timeout_s: float) -> dict[str, Any]:
    row = executed(candidate.name, candidate.plan, timeout_s)
    words = row.get("why", "") if row["verdict"] != "ran" else f"difference {row['difference']}"
    print(f"{row['id']}: {row['verdict']} {row.get('seconds', '')} s {words}", flush=True)
    return row


def _in_order(wanted: list[Candidate], rows: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """As the corpus is, then what is no longer in it."""
    names = dict.fromkeys([*(each.name for each in wanted), *rows])
    return [rows[name] for name in names if name in rows]


def _head(backend: str, seed: int) -> dict[str, Any]:
    return {
        "backend": backend,
        "release": software(backend).release.version,
        "python": platform.python_version(),
        "torch": _version("torch"),
        "machine": f"{os.cpu_count()} CPU cores, {platform.machine()}",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "seed": seed,
    }


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
