"""The wheel holds the packages and their data, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from planner.version import __version__

REPOSITORY = Path(__file__).parents[2]
DIST_INFO = f"meshwright-{__version__}.dist-info"


def build(source: Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    code = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    command, environment = [sys.executable, "-c", code], os.environ | variables
    return subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # Whether the pages are in it is the question of one test below; the others need none.
    done = build(REPOSITORY, folder, MESHWRIGHT_WITHOUT_WEB="1")
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.split()[-1]


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_top_level_names(wheel: Path) -> None:
    assert {name.split("/")[0] for name in names(wheel)} == {
        "api",
        "meshwright",
        "planner",
        "profiles",
        "solver",
        DIST_INFO,
    }


def test_every_source_and_data_file_ships(wheel: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "api", "meshwright", "planner", "profiles", "solver"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    if tracked.returncode != 0:
        pytest.skip("not a Git checkout")
    files = {name for name in tracked.stdout.split("\n") if name and (REPOSITORY / name).exists()}
    assert files
    assert files - names(wheel) == set()


def test_the_web_pages_ship(wheel: Path) -> None:
    static = REPOSITORY / "api" / "static"
    if not (static / "index.html").exists():
        pytest.skip("the web pages are not built (make web)")
    built = {path.relative_to(REPOSITORY).as_posix() for path in static.rglob("*") if path.is_file()}
    assert built - names(wheel) == set()
    assert not [name for name in names(wheel) if name.startswith("web/")], "sources of pages do not ship"


def test_a_wheel_without_web_pages_is_refused_unless_wanted(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in ("pyproject.toml", "README.md", "LICENSE", "planner/version.py", "web/wheel_hook.py"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, source / name)
    for package in ("api", "profiles", "solver"):
        (source / package).mkdir()
        (source / package / "__init__.py").touch()
    refused = build(source, tmp_path, MESHWRIGHT_WITHOUT_WEB="")
    assert refused.returncode != 0
    assert "make web" in refused.stderr
    assert build(source, tmp_path, MESHWRIGHT_WITHOUT_WEB="1").returncode == 0


def test_nothing_generated_ships(wheel: Path) -> None:
    assert [name for name in names(wheel) if "__pycache__" in name or name.endswith((".pyc", ".db"))] == []


def test_the_command_and_the_licence_are_declared(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        entry_points = archive.read(f"{DIST_INFO}/entry_points.txt").decode()
        metadata = archive.read(f"{DIST_INFO}/METADATA").decode()
    assert "meshwright = planner.cli.main:main" in entry_points
    assert "License-Expression: Apache-2.0" in metadata
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert not [line for line in required if "torch" in line], "the default install has no torch"


def test_the_store_works_from_an_unpacked_wheel(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = (
        "import planner.store\n"
        "from planner.store import open_store, upgrade_store\n"
        f"assert planner.store.__file__.startswith({str(tmp_path)!r}), planner.store.__file__\n"
        "upgrade_store('migrated.db')\n"
        "with open_store('migrated.db') as store: assert store.list_plans() == ()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site"), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
