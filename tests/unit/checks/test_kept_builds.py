"""Builds that are kept outside the clone: the same content key, whole entries only, nothing shared that changes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.checks.entries import Damaged, keep, remove_old, restore
from tests.checks.kept import KINDS, Kind, cache_folder, key

REPOSITORY = Path(__file__).parents[3]
BUILT = ("env/**", "code/**/__cache__/*.kernel")
OWN = ("env/.stamp",)


def clone(folder: Path, content: str = "1") -> Path:
    """A clone that has built something, with its path in a script."""
    (folder / "env" / "bin").mkdir(parents=True)
    (folder / "env" / "bin" / "tool").write_text(f"#!{folder}/env/bin/python\n")
    (folder / "env" / "bin" / "tool").chmod(0o755)
    (folder / "env" / "library").write_text(content)
    (folder / "env" / ".stamp").write_text("")
    (folder / "env" / "lib64").symlink_to("lib")
    (folder / "code" / "a" / "__cache__").mkdir(parents=True)
    (folder / "code" / "a" / "__cache__" / "f.kernel").write_bytes(b"\0\1")
    (folder / "code" / "a" / "f.py").write_text("source")
    return folder


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    """An entry that a first clone has kept."""
    (tmp_path / "cache").mkdir()
    found = tmp_path / "cache" / "env-0123"
    keep(found, clone(tmp_path / "first"), BUILT, OWN, linked=True)
    return found


def test_another_clone_gets_the_files_with_its_own_place_in_scripts(tmp_path: Path, entry: Path) -> None:
    second = tmp_path / "second"
    assert restore(entry, second, linked=True)
    assert (second / "env" / "bin" / "tool").read_text() == f"#!{second}/env/bin/python\n"
    assert os.access(second / "env" / "bin" / "tool", os.X_OK)
    assert (second / "env" / "library").samefile(tmp_path / "first" / "env" / "library")
    assert os.readlink(second / "env" / "lib64") == "lib"
    assert (second / "code" / "a" / "__cache__" / "f.kernel").read_bytes() == b"\0\1"
    assert not (second / "env" / ".stamp").exists()
    assert not (second / "code" / "a" / "f.py").exists()
    # The script of the first clone stays as it was.
    assert (tmp_path / "first" / "env" / "bin" / "tool").read_text() == f"#!{tmp_path / 'first'}/env/bin/python\n"
    assert restore(entry, second, linked=True), "an entry is taken as often as it is asked for"


def test_what_an_earlier_build_left_does_not_stay_beside_it(tmp_path: Path, entry: Path) -> None:
    second = clone(tmp_path / "second", "older")
    (second / "env" / "forgotten").write_text("")
    assert restore(entry, second, linked=True)
    assert (second / "env" / "library").read_text() == "1"
    assert not (second / "env" / "forgotten").exists()
    assert (second / "code" / "a" / "f.py").exists()


def test_copies_are_apart_from_what_is_kept(tmp_path: Path, entry: Path) -> None:
    assert restore(entry, tmp_path / "second", linked=False)
    (tmp_path / "second" / "env" / "library").write_text("changed in place")
    assert restore(entry, tmp_path / "third", linked=False)
    assert (tmp_path / "third" / "env" / "library").read_text() == "1"


@pytest.mark.parametrize("damage", ["changed", "lost", "list"])
def test_a_damaged_entry_is_told_once_and_never_used(tmp_path: Path, entry: Path, damage: str) -> None:
    library = entry / "files" / "env" / "library"
    if damage == "changed":
        library.write_text("2")
    elif damage == "lost":
        library.unlink()
    else:
        (entry / "files.json").write_text("{")
    with pytest.raises(Damaged):
        restore(entry, tmp_path / "second", linked=True)
    assert not restore(entry, tmp_path / "second", linked=True)


def test_an_entry_without_its_list_is_none(tmp_path: Path, entry: Path) -> None:
    (entry / "files.json").unlink()
    assert not restore(entry, tmp_path / "second", linked=True)
    keep(entry, tmp_path / "first", BUILT, OWN, linked=True)
    assert restore(entry, tmp_path / "second", linked=True)


def test_only_the_last_used_of_a_kind_stay(tmp_path: Path, entry: Path) -> None:
    for number in range(4):
        other = entry.with_name(f"env-{number}")
        shutil.copytree(entry, other, symlinks=True)
        os.utime(other, (number, number))
    shutil.copytree(entry, entry.with_name("pages-0"), symlinks=True)
    remove_old(entry, 3)
    assert sorted(each.name for each in entry.parent.iterdir()) == ["env-0123", "env-2", "env-3", "pages-0"]


def test_the_key_follows_the_content_and_nothing_else(tmp_path: Path) -> None:
    kind = Kind(built=(), sources=("pins.txt", "rooms/*/validator.py"))
    (tmp_path / "rooms" / "a").mkdir(parents=True)
    (tmp_path / "pins.txt").write_text("x==1")
    first = key(kind, tmp_path)
    os.utime(tmp_path / "pins.txt", (1, 1))
    (tmp_path / "rooms" / "a" / "other.py").write_text("")
    assert key(kind, tmp_path) == first
    (tmp_path / "pins.txt").write_text("x==2")
    second = key(kind, tmp_path)
    (tmp_path / "rooms" / "a" / "validator.py").write_text("")
    assert len({first, second, key(kind, tmp_path)}) == 3


def test_the_environments_key_is_of_what_is_installed(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    first = key(KINDS["environment"], tmp_path)
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace("line-length = 120", "line-length = 100"))
    assert key(KINDS["environment"], tmp_path) == first
    pyproject.write_text(pyproject.read_text().replace('"httpx>=', '"httpx2>='))
    assert key(KINDS["environment"], tmp_path) != first


def test_every_kind_is_built_from_files_that_are_there() -> None:
    for name, kind in KINDS.items():
        for pattern in kind.sources:
            assert pattern.startswith("/") or any(REPOSITORY.glob(pattern)), f"{name}: {pattern} names no file"


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"MESHWRIGHT_CACHE": "none", "HOME": "/h"}, None),
        ({"MESHWRIGHT_CACHE": "/c", "HOME": "/h"}, Path("/c")),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, Path("/x/meshwright-dev")),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, Path("/h/.cache/meshwright-dev")),
    ],
)
def test_where_entries_are_kept(environment: dict[str, str], folder: Path | None) -> None:
    assert cache_folder(environment) == folder


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A small repository with the real script, whose kernels are built by a shell."""
    (tmp_path / "house" / "tests").mkdir(parents=True)
    shutil.copy(REPOSITORY / "tests" / "__init__.py", tmp_path / "house" / "tests")
    shutil.copytree(REPOSITORY / "tests" / "checks", tmp_path / "house" / "tests" / "checks")
    (tmp_path / "house" / "constraints.txt").write_text("x==1")
    return tmp_path / "house"


def build(house: Path, script: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "MESHWRIGHT_CACHE": str(house.parent / "cache")}
    command = [sys.executable, "-m", "tests.checks.kept", "kernels", "--", "sh", "-c", script]
    return subprocess.Popen(command, cwd=house, env=environment, stdout=subprocess.PIPE, text=True)


FILL = "mkdir -p solver/a/__pycache__ && echo code > solver/a/__pycache__/f.kernel && echo built >> log"


def test_two_clones_at_once_build_once(house: Path) -> None:
    other = house.parent / "other"
    shutil.copytree(house, other)
    both = [build(each, f"sleep 0.5; {FILL}") for each in (house, other)]
    assert [each.wait(120) for each in both] == [0, 0]
    for each in both:
        each.communicate()
    assert sorted(path.exists() for path in (house / "log", other / "log")) == [False, True]
    assert all((each / "solver" / "a" / "__pycache__" / "f.kernel").read_text() == "code\n" for each in (house, other))


def test_a_failed_build_fails_and_keeps_nothing(house: Path) -> None:
    for _ in range(2):
        failed = build(house, f"{FILL}; exit 3")
        failed.communicate()
        assert failed.returncode == 3
    assert (house / "log").read_text() == "built\nbuilt\n"


def test_a_killed_build_leaves_no_entry_and_no_lock(house: Path) -> None:
    killed = build(house, f"{FILL}; echo here; exec sleep 600")
    assert killed.stdout is not None
    assert killed.stdout.readline() == "here\n"
    [below] = subprocess.run(
        ["pgrep", "-P", str(killed.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    killed.kill()
    killed.wait()
    os.kill(int(below), signal.SIGKILL)
    killed.stdout.close()
    start_s = time.monotonic()
    again = build(house, FILL)
    again.communicate()
    assert again.returncode == 0
    assert time.monotonic() - start_s < 300
    assert (house / "log").read_text() == "built\nbuilt\n"


def test_a_folder_that_is_another_clones_is_left_alone(house: Path) -> None:
    (house.parent / "theirs").mkdir()
    (house.parent / "theirs" / "python").write_text("theirs")
    (house / ".venv").symlink_to(house.parent / "theirs")
    (house / "pyproject.toml").write_text("[build-system]\n[project]\n[tool]\n")
    command = [sys.executable, "-m", "tests.checks.kept", "environment", "--", "true"]
    environment = {**os.environ, "MESHWRIGHT_CACHE": str(house.parent / "cache")}
    for _ in range(2):
        done = subprocess.run(command, cwd=house, env=environment, capture_output=True, text=True, check=True)
        assert "belongs to another clone" in done.stdout
    assert (house / ".venv").is_symlink()
    assert not list((house.parent / "cache").glob("environment-*"))


def test_asking_make_what_it_would_do_does_nothing(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    (tmp_path / "web" / "src").mkdir(parents=True)
    shutil.copytree(REPOSITORY / "tests" / "checks", tmp_path / "tests" / "checks")
    environment = {**os.environ, "MESHWRIGHT_CACHE": str(tmp_path / "cache")}
    before = sorted(tmp_path.rglob("*"))
    subprocess.run(["make", "-n", "setup"], cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert sorted(tmp_path.rglob("*")) == before
