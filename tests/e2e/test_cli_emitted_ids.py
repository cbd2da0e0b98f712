"""Whoever wrote launch files: the plan that their manifest and their job's name say is one that the store knows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from api.client import Client
from planner.answers.replan import other_backend
from planner.backends.emission.write import read_manifest
from tests.board_in_memory import MemoryBoard
from tests.command_line import Ran, run_here
from tests.listening_service import listening
from tests.running_service import question

SMALL = ("--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--devices", "8")
WORK = ("--global-batch-size", "32", "--sequence-length", "4096")
SLURM = ("--launcher", "slurm")


@pytest.fixture(scope="module")
def service_database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('service') / 'plans.db'}"


@pytest.fixture(scope="module")
def address(service_database: str) -> Iterator[str]:
    with listening(service_database, MemoryBoard(service_database)) as found:
        yield found


def ok(ran: Ran) -> Ran:
    assert ran.exit_code == 0, ran.stderr
    return ran


def names_of(folder: Path) -> list[str]:
    """The plan's id in the manifest, and its beginning in the job's name."""
    script = (folder / "job.sbatch").read_text(encoding="utf-8")
    (name,) = re.findall(r"^#SBATCH --job-name=.*-([0-9a-f]+)$", script, re.MULTILINE)
    whole = read_manifest(folder)["plan_id"]
    assert f'#SBATCH --comment="meshwright plan {whole}"' in script.splitlines()
    return [whole, name]


def demand_known_here(folder: Path, database: str) -> None:
    whole, short = names_of(folder)
    assert whole.startswith(short)
    for name in (whole, short):
        shown: dict[str, Any] = json.loads(
            ok(run_here("plans", "show", name, "--database", database, "-o", "json")).stdout
        )
        assert shown["plan_id"] == whole


def demand_known_there(folder: Path, address: str) -> None:
    whole, short = names_of(folder)
    with Client(address) as client:
        assert {client.get_plan(name).plan_id for name in (whole, short)} == {whole}


def no_search(*_words: object) -> NoReturn:
    raise AssertionError("the plan of this back-end is stored, so nothing is to be searched")


def test_files_of_plan_and_emit_are_of_stored_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = f"sqlite:///{tmp_path / 'plans.db'}"
    here = ("--database", database)
    out = tmp_path / "out"
    document = tmp_path / "plan.json"
    wanted = ("--emit", "best,deepspeed", "--plan-out", str(document))
    planned = ok(run_here("plan", *SMALL, *WORK, *here, *wanted, "--out", str(out), *SLURM, "-o", "json"))
    folders = [path.parent for path in out.rglob("manifest.json")]
    assert len(folders) == 2
    for folder in folders:
        demand_known_here(folder, database)
    identity = json.loads(planned.stdout)["plan_id"]
    for number, words in enumerate(((), ("--backend", "torchtitan"), ("--backend", "native", "--env", "A=1"))):
        folder = tmp_path / str(number)
        ok(run_here("emit", identity, *words, *here, "--out", str(folder), *SLURM))
        demand_known_here(folder, database)
    with monkeypatch.context() as patched:
        patched.setattr(other_backend, "find_plan", no_search)
        again = ok(
            run_here("emit", identity, "--backend", "torchtitan", *here, "--out", str(tmp_path / "again"), *SLURM)
        )
    assert "stored in" not in again.stderr
    assert read_manifest(tmp_path / "again") == read_manifest(tmp_path / "1")
    empty = f"sqlite:///{tmp_path / 'other.db'}"
    for number, reference in enumerate((document, folders[0])):
        folder = tmp_path / f"file{number}"
        ran = ok(run_here("emit", str(reference), "--database", empty, "--out", str(folder), *SLURM))
        assert "stored in" in ran.stderr
        demand_known_here(folder, empty)


def test_files_from_a_service_are_of_plans_that_it_keeps(address: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    there = ("--server", address)
    planned = ok(
        run_here("plan", *SMALL, *WORK, *there, "--emit", "best,deepspeed", "--out", str(out), *SLURM, "-o", "json")
    )
    for path in out.rglob("manifest.json"):
        demand_known_there(path.parent, address)
    identity = json.loads(planned.stdout)["plan_id"]
    cases = ((), ("--backend", "torchtitan"), ("--backend", "native", "--env", "A=1"), ("--env", "A=1"))
    for number, words in enumerate(cases):
        folder = tmp_path / str(number)
        ok(run_here("emit", identity, *words, *there, "--out", str(folder), *SLURM))
        demand_known_there(folder, address)


def test_what_the_service_answers_names_plans_that_it_keeps(address: str) -> None:
    with Client(address) as client:
        made = client.plan(question(constraints={"backends": ["megatron"]}))
        for backend in (None, "deepspeed"):
            view = client.emission(made.plan_id, backend, launcher="slurm")
            assert client.get_plan(view.manifest["plan_id"]).plan_id == view.plan_id == view.manifest["plan_id"]
