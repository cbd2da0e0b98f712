"""The layers of the design hold, and light modules stay light."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from operator import itemgetter
from pathlib import Path

import pytest

from tests.sampling import drawn

REPOSITORY = Path(__file__).parents[2]

HEAVY = (
    *("alembic", "fastapi", "highspy", "ortools", "psycopg", "scipy"),
    *("sqlalchemy", "torch", "transformers", "uvicorn"),
)


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", code, "--no-cache", "--config", str(folder / "pyproject.toml")],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_layers_hold() -> None:
    done = lint_imports(REPOSITORY)
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


BREACHES = [
    ("profiles/device.py", "import planner.question.problem", "The house"),
    ("solver/__init__.py", "import profiles.device", "The house"),
    ("planner/model/spec.py", "import planner.search", "The floors"),
    ("planner/backends/asked.py", "import planner.search.find", "The floors"),
    ("planner/backends/registry.py", "import planner.evidence.conformance", "The floors"),
    ("planner/backends/deepspeed/write.py", "import planner.backends.folders.emit", "The floors of back-ends"),
    ("planner/backends/launch/spec.py", "import planner.backends.emission.layout", "The floors of back-ends"),
    ("planner/store/saving.py", "import planner.answers.sweep.walk", "The floors"),
    ("planner/predict/uncertainty.py", "import planner.plan.plan", "The floors"),
    ("planner/search/__init__.py", "import sqlalchemy", "SQLAlchemy"),
    ("planner/search/__init__.py", "import torch", "torch lives"),
    ("planner/plan/plan.py", "import fastapi", "No HTTP"),
    ("planner/operations/service.py", "import httpx", "No HTTP"),
    ("planner/operations/service.py", "import api.client", "The house"),
    ("planner/plan/plan.py", "import api.settings", "The house"),
    ("api/app.py", "import sqlalchemy", "SQLAlchemy"),
    ("api/wire/views.py", "import api.jobs.board", "The floors of api"),
    ("api/planning/answers.py", "import api.service", "The floors of api"),
]
"""A module, a line that it may not have, and the contract that says so."""


@pytest.mark.parametrize(("module", "line", "broken"), drawn(BREACHES, 8, kind=itemgetter(2)))
def test_a_breach_of_the_layers_is_caught(tmp_path: Path, module: str, line: str, broken: str) -> None:
    for package in ("api", "meshwright", "planner", "profiles", "solver"):
        shutil.copytree(REPOSITORY / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    with (tmp_path / module).open("a") as file:
        file.write(f"\n{line}\n")
    done = lint_imports(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    reports = [row for row in done.stdout.splitlines() if row.startswith(broken)]
    assert " BROKEN" in reports[0]


@pytest.mark.parametrize("folder", ["api", "planner", "planner/backends"])
def test_a_part_without_a_floor_is_caught(tmp_path: Path, folder: str) -> None:
    for package in ("api", "meshwright", "planner", "profiles", "solver"):
        shutil.copytree(REPOSITORY / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    (tmp_path / folder / "loose.py").write_text("")
    done = lint_imports(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "loose" in done.stdout


@pytest.mark.parametrize(
    "module",
    [
        *("planner.plan.plan", "planner.store", "planner.cli.main", "planner.backends.native", "profiles.cluster"),
        "api.client.command_line",
    ],
)
def test_light_modules_import_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({set(HEAVY)!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


@pytest.mark.parametrize("package", ["highspy", "ortools.math_opt", "ortools.sat", "scipy.optimize"])
def test_one_file_at_most_talks_to_a_solver(package: str) -> None:
    word = re.compile(rf"^\s*(from|import) {re.escape(package)}\b", re.MULTILINE)
    folders = ("api", "meshwright", "planner", "profiles", "solver")
    files = [
        file for folder in folders for file in (REPOSITORY / folder).rglob("*.py") if word.search(file.read_text())
    ]
    wanted = {"highspy": 0, "scipy.optimize": 0}.get(package, 1)
    assert len(files) <= wanted, files


@pytest.mark.parametrize("words", [["--help"], ["--version"]], ids=" ".join)
def test_help_and_version_load_no_documents(words: list[str]) -> None:
    code = (
        "import sys; from planner.cli.main import main; code = main(sys.argv[1:]);"
        " print(code, *sorted({*"
        "('numpy', 'pydantic', 'planner.predict.physics.physics', 'planner.question.problem')} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "0"
