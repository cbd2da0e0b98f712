"""``python -m tests.mutation [WORD...]``: which of the faults of ``faults.yaml`` the tests catch.

Each fault is put alone into a copy of the house; its tests run as in ``make test`` and, where they pass, with every
case.  A line a fault, then both counts.  With words only the faults whose name has one of them; ``--check`` runs
nothing and only says whether every fault still has its place.  Exit code: 1 where a fault has none, or is not caught.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

REPOSITORY = Path(__file__).parents[2]
FAULTS = Path(__file__).parent / "faults.yaml"
COPIED = ("api", "benchmarks", "docs", "examples", "meshwright", "planner", "profiles", "solver", "tests")
LIMIT_S = 3600.0
CAUGHT, MISSED = 1, 0
"""Exit codes of pytest: tests failed; all passed.  Any other says that it did not come to run them."""


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


def outcome(fault: Fault, folder: Path, *, all_cases: bool) -> int:
    """Exit code of pytest on the fault's tests, in the copy of the house that has the fault."""
    settings = {
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "MESHWRIGHT_VALIDATORS": os.environ.get("MESHWRIGHT_VALIDATORS", str(REPOSITORY / ".cache" / "validators")),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:xdist", *fault.tests]
    command += ["--all-cases"] if all_cases else []
    try:
        done = subprocess.run(
            command, cwd=folder, env=os.environ | settings, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return CAUGHT  # a search that no longer ends
    if done.returncode not in (CAUGHT, MISSED):
        sys.exit(f"{fault.name}: pytest ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode


def main(arguments: list[str]) -> int:
    """The exit code."""
    words = [each for each in arguments if not each.startswith("--")]
    wanted = [each for each in faults() if not words or any(word in each.name for word in words)]
    misplaced = {each.name: why for each in wanted if (why := each.misplaced(REPOSITORY))}
    for name, why in misplaced.items():
        print(f"no place: {name}: {why}")
    if misplaced or "--check" in arguments:
        return int(bool(misplaced))
    quick = whole = 0
    with tempfile.TemporaryDirectory(prefix="meshwright-mutation-") as name:
        folder = Path(name)
        copy_house(folder)
        for fault in wanted:
            file = folder / fault.path
            right = file.read_text(encoding="utf-8")
            file.write_text(right.replace(fault.old, fault.new), encoding="utf-8")
            sample = outcome(fault, folder, all_cases=False) == CAUGHT
            every = sample or outcome(fault, folder, all_cases=True) == CAUGHT
            file.write_text(right, encoding="utf-8")
            quick, whole = quick + sample, whole + every
            said = "caught" if sample else "caught by all cases only" if every else "NOT CAUGHT"
            print(f"{said:24}  {fault.path}: {fault.name}", flush=True)
    print(f"{len(wanted)} faults: {quick} caught by a quick run, {whole} by all cases")
    return int(whole < len(wanted))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
