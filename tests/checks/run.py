"""Runs the jobs of a table side by side: ``python -m tests.checks.run check|test [--figures FILE]``.

A job that passes is one line, a job that fails is printed whole.  Every job runs to its end, also when another has
failed, so that one run shows all that is wrong; the exit status is 1 if anything failed.  Ctrl-C and SIGTERM end all.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

from tests import sampling
from tests.checks.jobs import Job, jobs_of, workers_here

REPOSITORY = Path(__file__).parents[2]
LOOK_EVERY_S = 0.1
LINE_EVERY_S = 60.0
END_S = 30.0
NICE = 10
"""How far a computing job steps back."""


@dataclass(slots=True)
class Running:
    """A started job."""

    job: Job
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    start_s: float


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("check", "test"))
    parser.add_argument("--figures", type=Path, help="write seconds of all and of each job to this file, if all passed")
    given = parser.parse_args(arguments)
    start_s = time.monotonic()
    # Once for all jobs.
    sampling.settle_run(all_cases=False)
    print(sampling.words(), flush=True)
    passed = run(jobs_of(given.what, workers_here()))
    wall_s = time.monotonic() - start_s
    failed = sorted(name for name, (good, _) in passed.items() if not good)
    print(f"{given.what}: {f'{len(failed)} failed: ' + ', '.join(failed) if failed else 'all passed'}, {wall_s:.0f} s")
    if given.figures and not failed:
        jobs_s = {name: seconds for name, (_, seconds) in passed.items()}
        given.figures.write_text(json.dumps({"wall_s": wall_s, "jobs_s": jobs_s}), encoding="utf-8")
    return 1 if failed else 0


def run(jobs: tuple[Job, ...]) -> dict[str, tuple[bool, float]]:
    """Whether each job passed, and its seconds.  A job whose prerequisite failed has failed."""
    waiting, running = list(jobs), list[Running]()
    done: dict[str, tuple[bool, float]] = {}
    signal.signal(signal.SIGTERM, _interrupt)
    said_s = time.monotonic()
    try:
        while waiting or running:
            for job in [each for each in waiting if all(name in done for name in (*each.after, *each.behind))]:
                waiting.remove(job)
                if all(done[name][0] for name in job.after):
                    running.append(_start(job))
                else:
                    print(
                        f"{job.name}: not started, {', '.join(n for n in job.after if not done[n][0])} failed",
                        flush=True,
                    )
                    done[job.name] = (False, 0.0)
            for each in [each for each in running if each.process.poll() is not None]:
                running.remove(each)
                done[each.job.name] = _tell(each)
            if time.monotonic() - said_s > LINE_EVERY_S:
                said_s = time.monotonic()
                print(f"... {', '.join(f'{r.job.name} {said_s - r.start_s:.0f} s' for r in running)}", flush=True)
            time.sleep(LOOK_EVERY_S)
    finally:
        _end(running)
    return done


def _start(job: Job) -> Running:
    """In a process group of its own, so that it ends with all that it started."""
    output = tempfile.TemporaryFile()  # noqa: SIM115  # closed when the job has ended
    command = ("nice", "-n", str(NICE), *job.command) if job.yielding else job.command
    process = subprocess.Popen(
        command,
        cwd=REPOSITORY / job.folder,
        env={**os.environ, **job.environment},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    return Running(job, process, output, time.monotonic())


def _tell(ended: Running) -> tuple[bool, float]:
    """Print how a job ended."""
    seconds = time.monotonic() - ended.start_s
    ended.output.seek(0)
    said = ended.output.read().decode(errors="replace")
    ended.output.close()
    status = ended.process.returncode
    if status == 0:
        last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")
        print(f"{ended.job.name}: passed in {seconds:.0f} s: {last[:160]}", flush=True)
        return True, seconds
    print(f"\n===== {ended.job.name}: FAILED with {status} after {seconds:.0f} s =====\n{said}", flush=True)
    print(f"===== end of {ended.job.name} =====\n", flush=True)
    return False, seconds


def _end(running: list[Running]) -> None:
    """End what still runs, and wait for it: services and databases of tests stop in order."""
    for each in running:
        _signal(each, signal.SIGINT)
    end_s = time.monotonic() + END_S
    for each in running:
        try:
            each.process.wait(max(0.1, end_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            print(f"{each.job.name}: does not end, killed", flush=True)
        # Also what it started and left: a shell's background ignores SIGINT.
        _signal(each, signal.SIGKILL)
        each.process.wait()
        each.output.close()


def _signal(started: Running, number: signal.Signals) -> None:
    try:
        os.killpg(started.process.pid, number)
    except ProcessLookupError:
        return


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
