"""Runs the ``console`` blocks of Markdown pages, so that the pages show what the program really prints.

    python -m docs.console            run the commands of all pages, write their output into them
    python -m docs.console PAGE ...   of these

A block holds ``$ meshwright ...`` commands (a trailing backslash continues a line), each followed by its output.  A
line ``...`` in the output stands for what is left out: as many lines stay before and after it as the page already has.
Commands of one page run in order, in the root of the repository, with one fresh database and one fresh folder of
measurements.  A plan's id changes with the software; later commands that name the id printed before name the new one.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CUT = "..."
HOME = {
    "out": "out",
    "plans.db": "~/.local/share/meshwright/meshwright.db",
    "profiles": "~/.local/share/meshwright/profiles",
}
"""Places of a session, and how a page shows them."""
PLAN_ID = re.compile(r"^PLAN ([0-9a-f]{12})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Shown:
    """One command of a page and the output that the page shows."""

    command: str
    output: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """Arguments after ``meshwright``."""
        return shlex.split(self.command.replace("\\\n", " "))[1:]

    def text(self) -> str:
        """As it stands in the page."""
        return "\n".join((f"$ {self.command}", *self.output)) + "\n"


def shown_in(page: str) -> list[Shown]:
    """Every command of a page's console blocks, in order."""
    return [each for match in BLOCK.finditer(page) for each in _commands(match.group(1))]


def _commands(block: str) -> Iterator[Shown]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.rstrip("\n").split("\n")
        length = 1
        while lines[length - 1].endswith("\\"):
            length += 1
        yield Shown("\n".join(lines[:length]), tuple(lines[length:]))


@dataclass(frozen=True, slots=True)
class Session:
    """The shell of one page: a home of its own, so that the database and the measurements start empty."""

    folder: Path

    def run(self, words: list[str]) -> tuple[int, list[str]]:
        """Exit code and the lines of both streams together."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "OMP_NUM_THREADS": "1",
            "MESHWRIGHT_DATABASE": str(self.folder / "plans.db"),
            "MESHWRIGHT_PROFILES": str(self.folder / "profiles"),
        }
        done = subprocess.run(
            [sys.executable, "-m", "planner.cli.main", *self._own(words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            cwd=REPOSITORY,
            check=False,
        )
        printed = done.stdout
        for name, shown in HOME.items():
            printed = printed.replace(str(self.folder / name), shown)
        return done.returncode, [line.rstrip() for line in printed.rstrip("\n").split("\n")]

    def _own(self, words: list[str]) -> list[str]:
        """Paths under ``out/`` go to the session's folder."""
        return [str(self.folder / word) if word == "out" or word.startswith("out/") else word for word in words]


def shortened(printed: list[str], shown: tuple[str, ...]) -> tuple[str, ...]:
    """The output cut in the way in which the page cuts it."""
    if CUT not in shown:
        return tuple(printed)
    at = shown.index(CUT)
    after = len(shown) - at - 1
    return (*printed[:at], CUT, *(printed[-after:] if after else ()))


def run_page(page: str, folder: Path) -> Iterator[tuple[Shown, int, list[str]]]:
    """Every command of a page as it is run now (with ids of now), its exit code, and what it prints, in full."""
    session, ids = Session(folder), dict[str, str]()
    (folder / "out").mkdir()
    for each in shown_in(page):
        command = each.command
        for old, new in ids.items():
            command = command.replace(old, new)
        now = Shown(command, each.output)
        code, printed = session.run(now.words)
        ids |= dict(zip(PLAN_ID.findall("\n".join(each.output)), PLAN_ID.findall("\n".join(printed)), strict=False))
        yield now, code, printed


def refreshed(page: str) -> str:
    """The page with the output of its commands as it is now."""
    with tempfile.TemporaryDirectory(prefix="meshwright-docs-") as folder:
        ran = iter([Shown(now.command, shortened(out, now.output)) for now, _, out in run_page(page, Path(folder))])

        def block(match: re.Match[str]) -> str:
            return "```console\n" + "".join(next(ran).text() for _ in _commands(match.group(1))) + "```"

        return BLOCK.sub(block, page)


def main() -> None:
    """Refresh the pages named on the command line, or all of them."""
    everything = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
    for path in [Path(name) for name in sys.argv[1:]] or everything:
        if not BLOCK.search(path.read_text(encoding="utf-8")):
            continue
        path.write_text(refreshed(path.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"refreshed {path}")


if __name__ == "__main__":
    main()
