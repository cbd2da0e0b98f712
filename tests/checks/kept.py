"""What was built once is taken from a folder outside the clone: ``python3 -m tests.checks.kept NAME -- COMMAND ...``.

If an entry with the same content key is there and whole, its files are linked into the clone; else the command runs and
what it built is kept.  The folder is ``$MESHWRIGHT_CACHE``, by default ``$XDG_CACHE_HOME/meshwright-dev`` (or
``~/.cache/meshwright-dev``); ``MESHWRIGHT_CACHE=none`` keeps nothing.  Needs only Python's own library: it runs before
an environment is there.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.checks.entries import Damaged, keep, remove_old, restore

REPOSITORY = Path(__file__).parents[2]
VARIABLE = "MESHWRIGHT_CACHE"
KEPT_OF_A_KIND = 3
"""Entries with other keys that stay: branches with other requirements alternate."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Something that is built from named files and may be taken from another clone."""

    built: tuple[str, ...]
    """Patterns of what is kept, from the root of the repository; ``folder/**`` is a whole folder."""
    sources: tuple[str, ...]
    """Patterns of the files whose content decides what is built."""
    own: tuple[str, ...] = ()
    """Patterns of what belongs to this clone alone and is not kept."""
    tools: tuple[str, ...] = ()
    """Commands whose version decides too."""
    changes_in_place: bool = False
    """Whether its files are written to later: then they are copied, not linked."""
    newest: bool = False
    """Whether it proves each part's freshness itself: then each success replaces what was kept."""


KINDS: Mapping[str, Kind] = {
    "environment": Kind(
        built=(".venv/**",),
        sources=("constraints.txt", "pyproject.toml"),
        # The clone itself is installed by a path, and stamps say what its own `make` did.
        own=(
            ".venv/.light",
            ".venv/.dev",
            ".venv/bin/meshwright",
            ".venv/lib/*/site-packages/_editable_impl_meshwright.pth",
            ".venv/lib/*/site-packages/meshwright-*.dist-info/*",
        ),
    ),
    "validators": Kind(
        built=(".cache/validators/**",),
        sources=(
            "constraints.txt",
            "planner/backends/checking/*.py",
            "planner/backends/checking/launchers/*.py",
            "planner/backends/*/validator.py",
            "planner/backends/registry.py",
            "tests/install_validators.py",
        ),
    ),
    "pages": Kind(
        built=("web/node_modules/**",),
        sources=("web/package.json", "web/package-lock.json"),
        own=("web/node_modules/.installed", "web/node_modules/.vite/**", "web/node_modules/.vite-temp/**"),
        tools=("node",),
    ),
    # A kernel's file holds a digest of its source and its name the processor: another one is not loaded.
    "kernels": Kind(
        built=("planner/**/__pycache__/*.kernel", "solver/**/__pycache__/*.kernel"),
        sources=("constraints.txt", "planner/predict/schedule/**/*.py", "solver/**/*.py", "/proc/cpuinfo"),
    ),
    # mypy compares every file with what it kept, by its content.
    "types": Kind(
        built=(".cache/mypy/**",), sources=("constraints.txt", "pyproject.toml"), changes_in_place=True, newest=True
    ),
}


def main(arguments: Sequence[str]) -> int:
    """The exit status of the command, or 0 where it was not needed."""
    if len(arguments) < 3 or arguments[1] != "--" or arguments[0] not in KINDS:
        print(f"usage: python3 -m tests.checks.kept {{{','.join(KINDS)}}} -- COMMAND ...", file=sys.stderr)
        return 2
    name, command = arguments[0], arguments[2:]
    cache = cache_folder(os.environ)
    if cache is None:
        return subprocess.call(command, cwd=REPOSITORY)
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"{name}: nothing is kept, {error}", file=sys.stderr)
        return subprocess.call(command, cwd=REPOSITORY)
    kind = KINDS[name]
    if linked := [each for each in kind.built if (REPOSITORY / each.removesuffix("/**")).is_symlink()]:
        print(f"{name}: {', '.join(linked)} belongs to another clone; nothing is taken or kept", flush=True)
        return subprocess.call(command, cwd=REPOSITORY)
    entry = cache / f"{name}-{key(kind, REPOSITORY)}"
    return _refresh(kind, entry, command) if kind.newest else _build(kind, entry, command)


def cache_folder(environment: Mapping[str, str]) -> Path | None:
    """Where entries are kept, if anywhere."""
    given = environment.get(VARIABLE, "")
    if given == "none":
        return None
    if given:
        return Path(given).absolute()
    # The XDG base directory specification: relative paths are to be ignored.
    base = environment.get("XDG_CACHE_HOME", "")
    root = Path(base) if os.path.isabs(base) else Path(environment.get("HOME") or "/tmp") / ".cache"
    return root / "meshwright-dev"


def key(kind: Kind, root: Path) -> str:
    """20 letters of a SHA-256 of all that decides what is built: files, interpreter, machine, tools."""
    found = hashlib.sha256()
    interpreter = os.path.realpath(sys.executable)
    for part in (sys.version, interpreter, platform.machine(), platform.libc_ver(), *map(_version, kind.tools)):
        found.update(f"{part}\0".encode())
    for pattern in kind.sources:
        for path in sorted(root.glob(pattern)) if not pattern.startswith("/") else [Path(pattern)]:
            if path.is_file():
                content = _content(path)
                found.update(
                    f"{path.relative_to(root) if path.is_relative_to(root) else path}\0{len(content)}\0".encode()
                )
                found.update(content)
    return found.hexdigest()[:20]


def _content(path: Path) -> bytes:
    """What of a file decides: of pyproject.toml what is installed, of processors what they can."""
    if path.name == "pyproject.toml":
        read = tomllib.loads(path.read_text(encoding="utf-8"))
        names = ("requires-python", "dependencies", "optional-dependencies")
        project = {name: read["project"].get(name) for name in names}
        return repr((read["build-system"], project, read["tool"].get("mypy"))).encode()
    if path == Path("/proc/cpuinfo"):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(
            sorted({each for each in lines if each.startswith(("model name", "flags", "Features"))})
        ).encode()
    return path.read_bytes()


def _version(tool: str) -> str:
    try:
        return subprocess.run([tool, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return f"no {tool}"


def _build(kind: Kind, entry: Path, command: Sequence[str]) -> int:
    """Take what is kept, or run the command and keep what it built; clones that need the same wait for it."""
    with _alone(entry):
        if _taken(kind, entry):
            return 0
        done = subprocess.call(command, cwd=REPOSITORY)
        if done == 0:
            _keep(kind, entry)
    return done


def _refresh(kind: Kind, entry: Path, command: Sequence[str]) -> int:
    """Run the command on what is kept, where this clone has nothing of its own, and keep what it left."""
    if not any(path.is_file() for pattern in kind.built for path in REPOSITORY.glob(f"{pattern}/*")):
        with _alone(entry):
            _taken(kind, entry)
    done = subprocess.call(command, cwd=REPOSITORY)
    if done == 0:
        with _alone(entry):
            _keep(kind, entry)
    return done


def _taken(kind: Kind, entry: Path) -> bool:
    start_s = time.monotonic()
    try:
        taken = restore(entry, REPOSITORY, linked=not kind.changes_in_place)
    except Damaged as error:
        print(f"{entry.name}: {error}; built again", file=sys.stderr)
        return False
    if taken:
        print(f"{entry.name}: taken from {entry.parent} in {time.monotonic() - start_s:.1f} s", flush=True)
    return taken


def _keep(kind: Kind, entry: Path) -> None:
    """A full disk fails no build."""
    try:
        keep(entry, REPOSITORY, kind.built, kind.own, linked=not kind.changes_in_place)
        remove_old(entry, KEPT_OF_A_KIND)
    except OSError as error:
        print(f"{entry.name}: not kept, {error}", file=sys.stderr)


@contextmanager
def _alone(entry: Path) -> Iterator[None]:
    """No other clone is at this entry; the system frees the lock of a process that was killed."""
    with (entry.parent / f".{entry.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{entry.name}: another clone is at it; waiting", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
