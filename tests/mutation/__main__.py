"""``python -m tests.mutation [WORD...]``: which of the faults of ``faults.yaml`` the tests catch.

Each fault is put alone into a copy of the house; its tests run as in ``make test`` and, where they pass, with every
case.  A line a fault, then the counts.  With words only the faults whose name has one of them; ``--check`` runs
nothing and only says whether every fault still has its place.

Tests that have not ended after ``--limit`` seconds (900) are ended with all that they started, and decide nothing: the
fault may have made a search long, or the machine is busy.  Such a fault is *undecided*, unless the other run of its
tests caught it.  ``--results FILE`` appends a line a fault and leaves out the faults that are decided there, so that a
run that was broken off goes on.  Exit code: 1 where a fault has no place or is not caught, else 3
where one is undecided.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ruamel.yaml import YAML

REPOSITORY = Path(__file__).parents[2]
FAULTS = Path(__file__).parent / "faults.yaml"
COPIED = ("api", "benchmarks", "docs", "examples", "meshwright", "planner", "profiles", "solver", "tests")
LIMIT_S = 900.0


class Outcome(StrEnum):
    """What the tests say of a fault."""

    QUICK = "caught"
    WHOLE = "caught by all cases only"
    MISSED = "NOT CAUGHT"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Fault:
    """A text of a file that another one takes the place of, and the tests that should notice."""

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]

    def misplaced(self, root: Path) -> str | None:
        """Why it cannot be put into the house, None where it can."""
        file = root / self.path
        if not file.is_file():
            return f"{self.path} is not there"
        if absent := [each for each in self.tests if not (root / each).exists()]:
            return f"{', '.join(absent)} is not there"
        found = file.read_text(encoding="utf-8").count(self.old)
        return None if found == 1 else f"{self.old!r} stands {found} times in {self.path}"


def faults() -> list[Fault]:
    """Every fault of the data file."""
    entries = YAML(typ="safe").load(FAULTS.read_text(encoding="utf-8"))
    return [Fault(**{**each, "tests": tuple(each["tests"])}) for each in entries]


def copy_house(folder: Path) -> None:
    """The house with what its kernels were compiled to, without the web pages."""
    for name in COPIED:
        shutil.copytree(REPOSITORY / name, folder / name, symlinks=True)
    shutil.copy2(REPOSITORY / "pyproject.toml", folder)


def caught(fault: Fault, folder: Path, limit_s: float, *, all_cases: bool) -> bool | None:
    """Whether the fault's tests fail in the copy of the house that has it; None if they have not ended in time."""
    settings = {
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "MESHWRIGHT_VALIDATORS": os.environ.get("MESHWRIGHT_VALIDATORS", str(REPOSITORY / ".cache" / "validators")),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:xdist", *fault.tests]
    status, said = run([*command, "--all-cases"] if all_cases else command, folder, os.environ | settings, limit_s)
    # Exit codes of pytest: 1, tests failed; 0, all passed.  Any other says that it did not come to run them.
    if status not in (None, 0, 1):
        sys.exit(f"{fault.name}: pytest ended with {status}:\n{said[-4000:]}")
    return None if status is None else status == 1


def run(command: list[str], folder: Path, environment: Mapping[str, str], limit_s: float) -> tuple[int | None, str]:
    """Exit status and what was printed; None where it is ended after ``limit_s``, with all that it started."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        status: int | None
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        return status, output.read().decode(errors="replace")


def outcome(fault: Fault, folder: Path, limit_s: float) -> Outcome:
    """What the tests say of a fault that is put into the copy of the house alone."""
    file = folder / fault.path
    right = file.read_text(encoding="utf-8")
    file.write_text(right.replace(fault.old, fault.new), encoding="utf-8")
    try:
        quick = caught(fault, folder, limit_s, all_cases=False)
        whole = quick or caught(fault, folder, limit_s, all_cases=True)
    finally:
        file.write_text(right, encoding="utf-8")
    if whole:
        return Outcome.QUICK if quick else Outcome.WHOLE
    return Outcome.UNDECIDED if None in (quick, whole) else Outcome.MISSED


def decided(results: Path | None) -> dict[str, Outcome]:
    """What an earlier run has found, by the name of the fault."""
    if results is None or not results.exists():
        return {}
    lines = results.read_text(encoding="utf-8").splitlines()
    said = {name: Outcome(word) for word, name in (line.split("\t", 1) for line in lines)}
    return {name: each for name, each in said.items() if each is not Outcome.UNDECIDED}


def main(arguments: list[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("words", nargs="*", help="only faults whose name has one of these words")
    parser.add_argument("--check", action="store_true", help="only say whether every fault has its place")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for each run of a fault's tests")
    parser.add_argument("--results", type=Path, help="append what was found, leave out what stands there")
    given = parser.parse_args(arguments)
    wanted = [each for each in faults() if not given.words or any(word in each.name for word in given.words)]
    misplaced = {each.name: why for each in wanted if (why := each.misplaced(REPOSITORY))}
    for name, why in misplaced.items():
        print(f"no place: {name}: {why}")
    if misplaced or given.check:
        return int(bool(misplaced))
    found = decided(given.results)
    with tempfile.TemporaryDirectory(prefix="meshwright-mutation-") as name:
        folder = Path(name)
        copy_house(folder)
        for fault in wanted:
            if fault.name not in found:
                said = found[fault.name] = outcome(fault, folder, given.limit)
                print(f"{said:24}  {fault.path}: {fault.name}", flush=True)
                if given.results is not None:
                    with given.results.open("a", encoding="utf-8") as file:
                        file.write(f"{said}\t{fault.name}\n")
    counted = Counter(found[each.name] for each in wanted)
    quick, whole = counted[Outcome.QUICK], counted[Outcome.QUICK] + counted[Outcome.WHOLE]
    told = f"{quick} caught by a quick run, {whole} by all cases, {counted[Outcome.MISSED]} not caught"
    print(f"{len(wanted)} faults: {told}, {counted[Outcome.UNDECIDED]} undecided (no end in {given.limit:g} s)")
    return 1 if counted[Outcome.MISSED] else 3 if counted[Outcome.UNDECIDED] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
