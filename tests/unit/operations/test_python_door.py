"""``import meshwright``: the same answers as the command line, and errors that say what to do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import meshwright
from planner.operations.notebook import plan_html, show_plans
from tests.command_line import REPOSITORY, run_here

SMALL = ("llama-3.2-1b", "dgx-h100")
WORK: dict[str, Any] = {"devices": 8, "global_batch_size": 64, "sequence_length": 4096, "profile": "none"}
FLAGS = ("--devices", "8", "--global-batch-size", "64", "--sequence-length", "4096", "--profile", "none")


@pytest.fixture(scope="module")
def found() -> meshwright.Plan:
    return meshwright.plan(*SMALL, backend="native", top=0, **WORK)


def test_a_plan_is_that_of_the_command_line(found: meshwright.Plan) -> None:
    words = ("plan", "--model", SMALL[0], "--cluster", SMALL[1], *FLAGS, "--backend", "native", "--top", "0")
    answer = run_here(*words, "--no-store", "-o", "json").json()
    assert (answer["plan_id"], answer["problem_id"]) == (found.plan_id, found.problem.problem_id)


def test_pins_forbids_and_preference_are_those_of_the_command_line() -> None:
    said: dict[str, Any] = {"pin": "tp=2,mbs=1", "forbid": ["hsdp", "offload"], "backend": "native,megatron"}
    asked = meshwright.problem("llama-3.2-1b", "dgx-h100", prefer="fastest", **WORK, **said)
    words = ("--pin", "tp=2,mbs=1", "--forbid", "hsdp,offload", "--prefer", "fastest", "--backend", "native,megatron")
    answer = run_here(
        *("plan", "--model", SMALL[0], "--cluster", SMALL[1], *FLAGS, *words, "--no-store", "-o", "json", "--full")
    ).json()
    assert answer["problem_id"] == asked.problem_id


def test_a_plan_is_asked_and_compared(found: meshwright.Plan) -> None:
    other = meshwright.estimate("tp=2,mbs=1", *SMALL, backend="native", **WORK)
    assert (other.strategy["tp"], other.bound) == (2, None)
    assert meshwright.diff(found, other).step_time_s.change == pytest.approx(other.step_time_s - found.step_time_s)
    assert meshwright.explain(found, brief=True).plan_id == found.plan_id
    refused = meshwright.why_not(found, tp=2, recompute="full")
    assert refused.pins == {"tp": 2, "recompute": "full"}
    curve = meshwright.throughput(*SMALL, [4, 8], backend="native", **{**WORK, "devices": None})
    assert [point.num_devices for point in curve.points] == [4, 8]


@pytest.mark.usefixtures("no_validators")
def test_a_plan_is_kept_written_and_read(
    found: meshwright.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MESHWRIGHT_DATABASE", f"sqlite:///{tmp_path / 'plans.db'}")
    assert meshwright.save(found) == found.plan_id
    assert meshwright.load(found.plan_id[:12]) == found
    folder = meshwright.emit(found, tmp_path / "out")
    assert json.loads((folder / "manifest.json").read_text())["plan_id"] == found.plan_id
    assert meshwright.load(folder) == found
    assert run_here("check", str(folder)).exit_code == 0


def test_a_script_of_today_says_the_whole_question() -> None:
    script = REPOSITORY / "examples" / "megatron-script" / "train.sh"
    asked = meshwright.problem(script, "dgx-h100", profile="none")
    assert (asked.cluster.num_devices, asked.workload.sequence_length) == (32, 4096)


@pytest.mark.parametrize(
    ("said", "where", "hint"),
    [
        ({"batch_size": 3}, "batch_size", "global_batch_size"),
        ({"pin": {"tensor": 2}}, "pin", "tp"),
        ({"pin": "tp=two"}, "pin", "tp"),
        ({"forbid": "pipeline"}, "forbid", "pp"),
        ({"backend": "megatronn"}, "--backend", "megatron"),
        ({"precision": "fp4"}, "workload", ""),
        ({"objective": "speed"}, "objective", ""),
    ],
)
def test_bad_words_say_which_and_what_instead(said: dict[str, Any], where: str, hint: str) -> None:
    with pytest.raises(meshwright.MeshwrightError) as caught:
        meshwright.plan(*SMALL, **{**WORK, **said})
    assert where in f"{caught.value.where} {caught.value}"
    assert hint in f"{caught.value} {caught.value.hint}"


def test_a_question_without_its_parts_says_which() -> None:
    with pytest.raises(meshwright.MeshwrightError, match="on which devices"):
        meshwright.plan("llama-3.2-1b")
    with pytest.raises(meshwright.MeshwrightError, match="sequence_length"):
        meshwright.plan(*SMALL, global_batch_size=8)


def test_a_notebook_shows_the_report(found: meshwright.Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[type, object] = {}
    shell = SimpleNamespace(
        display_formatter=SimpleNamespace(formatters={"text/html": SimpleNamespace(for_type=known.__setitem__)})
    )
    notebook = ModuleType("IPython")
    notebook.get_ipython = lambda: shell  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    show_plans()
    assert known == {meshwright.Plan: plan_html}
    html = plan_html(found)
    assert html.startswith("<iframe")
    assert "<script" not in html
    assert "llama-3.2-1b on 8 devices" in html


def test_what_is_promised_is_there_and_the_door_is_light() -> None:
    assert all(hasattr(meshwright, name) for name in meshwright.__all__)
    assert (REPOSITORY / "meshwright" / "py.typed").exists()
    assert len((REPOSITORY / "meshwright" / "__init__.py").read_text().splitlines()) < 150
    code = (
        "import sys, meshwright; print(*sorted({'numpy', 'numba', 'sqlalchemy', 'torch', 'typer'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
