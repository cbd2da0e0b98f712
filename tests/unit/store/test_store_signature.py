from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from planner.backends.registry import OURS
from planner.store import software_signature
from planner.store.signature import deciding_sources
from planner.version import __version__

REPOSITORY = Path(__file__).parents[3]


def test_signature_is_the_release_and_a_hash() -> None:
    assert re.fullmatch(re.escape(__version__) + r"\+[0-9a-f]{16}", software_signature())


def test_sources_that_decide_numbers_are_in_and_doors_are_out() -> None:
    names = {name for name, _ in deciding_sources()}
    assert {
        "planner/plan/plan.py",
        "planner/strategy/strategy.py",
        "planner/model/spec.py",
        "profiles/cluster.py",
    } <= names
    assert {f"planner/backends/{each.name.replace('-', '_')}/space.py" for each in OURS} <= names
    files = ("/write.py", "/read.py", "/validator.py", "_worker.py")
    assert not [name for name in names if name.startswith("planner/backends/") and name.endswith(files)]
    assert any(name.startswith("solver/") for name in names)
    assert {"profiles/catalogue/architectures.yaml", "planner/predict/memory/measured_ratios.json"} <= names
    assert not [name for name in names if "/catalogue/devices/" in name or "/model/catalogue/" in name]
    assert not [name for name in names if name.startswith(("planner/store/", "planner/cli/", "planner/answers/views/"))]


def test_every_source_that_planning_imports_is_hashed() -> None:
    """A folder that joins the planner later (the spaces of back-ends did) must not leave stored plans looking fresh."""
    code = "import sys, planner.search.find, planner.search.estimate; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    modules = {name for name in done.stdout.split() if name.startswith(("planner.", "profiles.", "solver."))}
    hashed = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name, _ in deciding_sources()}
    assert "planner.predict.cost.hardware" in modules
    assert not modules - hashed


def _signature_of(folder: Path) -> str:
    code = "from planner.store.signature import software_signature; print(software_signature())"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def copy_of_the_house(tmp_path: Path) -> Path:
    for package in ("planner", "profiles", "solver"):
        shutil.copytree(REPOSITORY / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_a_changed_cost_source_changes_the_signature_and_a_changed_door_does_not(copy_of_the_house: Path) -> None:
    before = _signature_of(copy_of_the_house)
    assert before == _signature_of(copy_of_the_house)
    with (copy_of_the_house / "planner" / "cli" / "__init__.py").open("a") as door:
        door.write("\n# a comment\n")
    assert _signature_of(copy_of_the_house) == before
    with (copy_of_the_house / "planner" / "predict" / "__init__.py").open("a") as cost:
        cost.write("\n# a comment\n")
    changed = _signature_of(copy_of_the_house)
    assert changed != before
    (copy_of_the_house / "solver" / "extra.py").write_text("")
    assert _signature_of(copy_of_the_house) not in {before, changed}
