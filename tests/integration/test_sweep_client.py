"""The client and the command line ask a real service on a real socket for a sweep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.client import Client, ProblemReported, SweepUnfinished
from api.wire.sweeps import SweepProgress, SweepRequest
from planner.question.problem import Constraints
from tests.board_in_memory import MemoryBoard
from tests.command_line import run_here
from tests.listening_service import listening
from tests.running_service import SMALL_MODEL

REQUEST = SweepRequest(
    models=("llama-3.2-1b", "llama-3.1-70b"),
    clusters=("dgx-h100",),
    device_counts=(4, 12, 16),
    sequence_lengths=(2048,),
    global_batch_sizes=(64,),
    constraints=Constraints(backends=("megatron",)),
    top_k=0,
)
FLAGS = (
    *("--model", "llama-3.2-1b,llama-3.1-70b", "--cluster", "dgx-h100", "--devices", "4,12,16"),
    *("--sequence-length", "2048", "--global-batch-size", "64", "--top", "0", "--price", "2"),
    *("--backend", "megatron"),
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    database = f"sqlite:///{tmp_path_factory.mktemp('sweeps') / 'plans.db'}"
    with listening(database, MemoryBoard(database)) as found:
        yield found


def test_submit_wait_look_list_and_ask_again(address: str) -> None:
    with Client(address) as client:
        begun = client.sweeps.submit(REQUEST)
        heard: list[SweepProgress] = []
        found = client.sweeps.wait(begun.sweep_id, progress=heard.append, wait_s=300)
        assert [cell.outcome for cell in found.cells] == [
            *("planned", "refused", "planned", "infeasible", "refused", "planned")
        ]
        assert heard[-1] == found.progress
        assert (found.progress.cells, found.progress.planned, found.progress.waiting) == (6, 3, 0)
        assert client.get_plan(str(found.cells[0].plan_id)).step_time_s == found.cells[0].step_time_s
        assert client.sweeps.get(begun.sweep_id) == found
        assert client.sweeps.submit(REQUEST).status == "finished"
        assert begun.sweep_id in {each.sweep_id for each in client.sweeps.list(page=1)}
        assert client.sweeps.cancel(begun.sweep_id).status == "finished", "harmless"


def test_who_waits_no_longer_is_told_how_to_go_on(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'plans.db'}"
    with listening(database, MemoryBoard(database, paused=True)) as address, Client(address) as client:
        begun = client.sweeps.submit(REQUEST)
        with pytest.raises(SweepUnfinished) as caught:
            client.sweeps.wait(begun.sweep_id, wait_s=0.5)
        assert caught.value.sweep_id == begun.sweep_id


def test_an_error_keeps_its_place(address: str) -> None:
    with Client(address) as client, pytest.raises(ProblemReported) as caught:
        client.sweeps.submit({**REQUEST.model_dump(mode="json"), "models": ["llama-9"]})
    assert (caught.value.status, caught.value.where) == (404, "/models/0")


def lines(*words: str) -> list[dict[str, Any]]:
    ran = run_here("sweep", *words, "-o", "json")
    assert ran.exit_code == 0, ran.stderr
    found: list[dict[str, Any]] = ran.json()["cells"]
    return [{name: value for name, value in each.items() if name not in {"wall_s", "source"}} for each in found]


def test_the_command_prints_what_it_prints_without_a_service(address: str) -> None:
    assert lines(*FLAGS, "--server", address) == lines(*FLAGS, "--executor", "serial")
    here, there = (run_here("sweep", *FLAGS, *more) for more in (("--executor", "serial"), ("--server", address)))
    last = "6 cells: 3 planned, 1 infeasible, 2 refused"
    assert last in here.stdout
    assert last in there.stdout
    assert here.stdout.splitlines()[:-1] == there.stdout.splitlines()[:-1]


def test_files_of_this_machine_travel_as_documents(address: str, tmp_path: Path) -> None:
    model, sweep = tmp_path / "mine.json", tmp_path / "sweep.yaml"
    model.write_text(json.dumps(SMALL_MODEL), encoding="utf-8")
    sweep.write_text(
        f"models: [{model}]\nclusters: [dgx-a100-80g]\ndevice_counts: [8]\nsequence_lengths: [2048]\n"
        "global_batch_sizes: [16]\n",
        encoding="utf-8",
    )
    (cell,) = lines(str(sweep), "--server", address)
    assert (cell["model"], cell["outcome"]) == (str(model), "planned")


def test_a_sweep_without_a_question_is_refused_in_the_words_of_the_flags(address: str) -> None:
    words = ("--model", "llama-3.2-1b", "--cluster", "dgx-h100", "--devices", "12")
    size = ("--sequence-length", "2048", "--global-batch-size", "64")
    ran = run_here("sweep", *words, *size, "--server", address)
    assert ran.exit_code == 2
    assert "--> --devices" in ran.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--executor", "serial"), 4, "--executor"),
        (("--model", "llama-9"), 3, "--model"),
    ],
)
def test_what_goes_wrong_ends_as_without_a_service(address: str, words: tuple[str, ...], code: int, said: str) -> None:
    ran = run_here("sweep", *FLAGS, *words, "--server", address, "-o", "json")
    assert ran.exit_code == code, ran.stderr
    assert said in ran.error()["where"]
