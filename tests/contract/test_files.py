"""Every file is small enough to read, named after its concept, and has no loose ends."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
FOLDERS = ("api", "benchmarks", "planner", "profiles", "solver", "tests")

MAX_LINES = 600
LARGE_LINES = 400
MAX_FUNCTION_LINES = 60

LARGE_FILES: dict[str, str] = {}
"""Files between LARGE_LINES and MAX_LINES, each with the reason why it is not split."""

FORBIDDEN_STEMS = {"utils", "util", "helpers", "helper", "common", "core", "misc", "manager", "handler", "handlers"}

TOP_LEVEL = {
    *("planner", "profiles", "solver", "api", "meshwright", "web", "tests", "docs", "examples", "benchmarks"),
    *("README.md", "Makefile", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "pyproject.toml", "constraints.txt"),
}
"""What may stand at the top beside dot-files; what is ignored by Git (out/, build/, dist/) is not looked at."""

IGNORED_AT_TOP = {"out", "build", "dist", "node_modules", "__pycache__"}


def python_files() -> list[Path]:
    return sorted(
        path
        for folder in FOLDERS
        for path in (REPOSITORY / folder).rglob("*.py")
        if "node_modules" not in path.parts and "__pycache__" not in path.parts
    )


def name_of(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def count_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def long_functions(source: str) -> list[tuple[str, int]]:
    """Functions longer than the limit, without decorators and docstring."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body
            documented = ast.get_docstring(node, clean=False) is not None
            docstring = (body[0].end_lineno or 0) - body[0].lineno + 1 if documented else 0
            length = (node.end_lineno or 0) - node.lineno + 1 - docstring
            if length > MAX_FUNCTION_LINES:
                found.append((node.name, length))
    return found


def loose_ends(text: str) -> list[str]:
    """TODO marks that name no issue, as ``TODO(#12)`` would."""
    return re.findall(r"\b(?:TODO|FIXME|XXX)\b(?!\(#\d+\)).*", text)


def test_the_search_finds_the_house() -> None:
    names = {name_of(path) for path in python_files()}
    assert {"planner/plan/plan.py", "profiles/cluster.py", "tests/contract/test_files.py"} <= names


def test_no_file_is_too_long() -> None:
    lengths = {name_of(path): count_lines(path) for path in python_files()}
    assert {name: count for name, count in lengths.items() if count > MAX_LINES} == {}
    large = {name for name, count in lengths.items() if count > LARGE_LINES}
    assert large - set(LARGE_FILES) == set(), f"split it, or give the reason in LARGE_FILES: {sorted(large)}"
    assert set(LARGE_FILES) - large == set(), "no longer large: take it out of LARGE_FILES"


def test_no_function_is_too_long() -> None:
    long = {
        f"{name_of(path)}:{function}": length
        for path in python_files()
        for function, length in long_functions(path.read_text(encoding="utf-8"))
    }
    assert long == {}


def test_files_and_folders_are_named_after_concepts() -> None:
    bad = [
        name_of(path)
        for path in python_files()
        if {path.stem, *path.relative_to(REPOSITORY).parent.parts} & FORBIDDEN_STEMS
    ]
    assert bad == []


def test_the_top_level_is_the_house() -> None:
    present = {path.name for path in REPOSITORY.iterdir() if not path.name.startswith(".")} - IGNORED_AT_TOP
    assert present - TOP_LEVEL == set()


def test_unfinished_work_names_its_issue() -> None:
    this_file = Path(__file__).resolve()
    open_ends = {
        name_of(path): found
        for path in python_files()
        if path.resolve() != this_file and (found := loose_ends(path.read_text(encoding="utf-8")))
    }
    assert open_ends == {}


def test_test_files_have_unique_names() -> None:
    names = [path.name for path in (REPOSITORY / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize(
    ("text", "caught"),
    [("# TODO: later", True), ("# TODO(#12): later", False), ("# FIXME", True), ("todo_list = []", False)],
)
def test_the_loose_end_rule_catches(text: str, caught: bool) -> None:
    assert bool(loose_ends(text)) is caught


@pytest.mark.parametrize(("statements", "caught"), [(MAX_FUNCTION_LINES, True), (MAX_FUNCTION_LINES - 1, False)])
def test_the_function_rule_catches(statements: int, caught: bool) -> None:
    source = "def f():\n" + '    """One.\n\n    Three.\n    """\n' + "    x = 1\n" * statements
    assert bool(long_functions(source)) is caught
