"""The page that adds a back-end says everything that it takes: its code, put where it says, is a back-end."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.page_back_end import PAGE, install_metadata, install_page, page_files

REPOSITORY = Path(__file__).parents[2]
CONSOLE = re.compile(r"^```text\n\$ python (.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONFIG = re.compile(r"^`nanogpt_config.py` of that plan:\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MOST_LINES = 150
PLAN = re.compile(r"^meshwright (plan .*?--out (\S+))$", re.MULTILINE | re.DOTALL)
READ = """
import json, sys
from pathlib import Path
from planner.backends.registry import files_of, software
from planner.backends.emission.layout import layout_of
from planner.plan.plan import Plan

texts = {path.name: path.read_text() for path in Path(sys.argv[1]).iterdir()}
plan = Plan.model_validate(json.loads(texts["plan.json"]))
strategy, layout = files_of(software("nanogpt")).read({name: texts[name] for name in texts if name != "plan.json"})
print(json.dumps([plan.backend, plan.release, plan.status, (strategy, layout) == (plan.chosen(), layout_of(plan))]))
"""


def lines_of_code(text: str) -> int:
    """Lines that are neither blank nor docstring nor comment alone."""
    told = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(text.splitlines(), 1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and n not in told for n, line in lines)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages with the page's among them."""
    folder = tmp_path_factory.mktemp("site")
    install_page(folder)
    return folder


def python(site: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(REPOSITORY), str(site)))}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_page_has_five_files_of_at_most_150_lines_of_code() -> None:
    files = page_files()
    assert {Path(name).stem for name in files} == {"__init__", "space", "physics", "write", "read"}
    assert sum(lines_of_code(text) for text in files.values()) <= MOST_LINES


def test_its_room_keeps_the_promises_as_the_page_shows(site: Path, tmp_path: Path) -> None:
    ((words, shown),) = CONSOLE.findall(PAGE)
    done = python(site, tmp_path, *words.split())
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == shown


def test_pytest_runs_the_same_checks(site: Path, tmp_path: Path) -> None:
    (line,) = re.findall(r"^pytest (.*)$", PAGE, re.MULTILINE)
    # Two of the eight, which run without a plan; the others ran above.
    done = python(site, tmp_path, "-m", "pytest", *line.split(), "-q", "-k", "rules or names", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed, 6 deselected" in done.stdout


def test_the_command_plans_writes_and_reads_back(site: Path, tmp_path: Path) -> None:
    ((words, out),) = PLAN.findall(PAGE)
    meshwright = ("-m", "planner.cli.main")
    done = python(site, tmp_path, *meshwright, *words.replace("\\\n", " ").split())
    assert done.returncode == 0, done.stdout + done.stderr
    read = python(site, tmp_path, "-c", READ, out)
    assert json.loads(read.stdout) == ["nanogpt", "3adf61e", "optimal", True], read.stderr
    assert CONFIG.findall(PAGE) == [(tmp_path / out / "nanogpt_config.py").read_text(encoding="utf-8")]
    checked = python(site, tmp_path, *meshwright, "check", out)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    listed = python(site, tmp_path, *meshwright, "backends", "list", "-o", "json")
    assert '"nanogpt"' in listed.stdout, listed.stderr


def test_the_files_run_as_configurator_runs_them(site: Path, tmp_path: Path) -> None:
    # nanoGPT's train.py executes the file over its globals and then divides the steps over the ranks (train.py:77, 94).
    (text,) = CONFIG.findall(PAGE)
    known: dict[str, object] = {
        "batch_size": 12,
        "block_size": 1024,
        "n_layer": 12,
        "n_head": 12,
        "n_embd": 768,
        "dropout": 0.0,
    }
    known |= {"bias": False, "dtype": "float16", "compile": True, "gradient_accumulation_steps": 40}
    said = dict(known)
    exec(text, {}, said)
    assert {name: type(value) for name, value in said.items()} == {name: type(known[name]) for name in known}
    assert int(str(said["gradient_accumulation_steps"])) % 8 == 0


def test_an_entry_point_that_is_no_back_end_is_named(tmp_path: Path) -> None:
    install_metadata(tmp_path, "wrong", "1.0", "[meshwright.backends]\nwrong = json:loads\n")
    done = python(tmp_path, tmp_path, "-m", "planner.evidence.conformance", "wrong")
    assert done.returncode == 2
    assert "the entry point wrong = json:loads gives something that is no BackEnd" in done.stderr


@pytest.mark.parametrize(
    ("text", "count"), [('"""Two\nlines."""\n\n# no\nx = 1  # yes\n', 1), ("x = (\n    1,\n)\n", 3)]
)
def test_lines_of_code_are_counted(text: str, count: int) -> None:
    assert lines_of_code(text) == count
