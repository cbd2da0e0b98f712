"""``meshwright sweep`` as people and scripts use it: files, flags, formats, interruption, errors."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.store import open_store
from tests.command_line import Ran, command, run_here, run_process, shell_environment
from tests.sweep_cells import cells_of, small_question

SMALL = (
    *("--model", "llama-3.2-1b", "--cluster", "dgx-h100", "--devices", "8,12,16"),
    *("--sequence-length", "2048", "--global-batch-size", "64"),
)


def test_a_table_for_people() -> None:
    ran = run_here("sweep", *SMALL, "--executor", "serial", "--price", "2")
    assert ran.exit_code == 0
    assert "every cell: model llama-3.2-1b, cluster dgx-h100, sequence 2,048, batch 64" in ran.stdout
    assert "12 devices: a node has 8" in ran.stdout
    assert "cost/Mtok" in ran.stdout
    assert "3 cells: 2 planned, 1 refused" in ran.stdout
    assert "checked: 3 cells" in ran.stderr


def test_the_plans_are_those_of_the_command_plan() -> None:
    # A sweep compares the fastest plans.
    planned = run_here(
        *("plan", "--model", "llama-3.2-1b", "--cluster", "dgx-h100", "--devices", "8", "--sequence-length", "2048"),
        *("--global-batch-size", "64", "--prefer", "fastest", "-o", "json"),
    ).json()
    ran = run_here("sweep", *SMALL, "-o", "json", "--executor", "serial")
    first = ran.json()["cells"][0]
    assert first["source"] == "stored"
    assert (first["plan_id"], first["problem_id"]) == (planned["plan_id"], planned["problem_id"])
    for name in ("step_time_s", "tokens_per_s", "model_flops_utilization", "peak_memory_bytes", "gap", "strategy"):
        assert first[name] == planned[name]


def test_a_file_and_flags_that_replace_its_axes(tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(
        "models: [llama-3.2-1b]\nclusters: [dgx-h100]\ndevice_counts: [8]\nsequence_lengths: [2048, 4096]\n"
        "global_batch_sizes: [64]\nconstraints: {pins: {pp: 1}}\n",
        encoding="utf-8",
    )
    cells = run_here("sweep", str(file), "-o", "json", "--executor", "serial").json()["cells"]
    assert [cell["sequence_length"] for cell in cells] == [2048, 4096]
    assert {cell["strategy"]["pp"] for cell in cells} == {1}
    words = ("sweep", str(file), "--sequence-length", "1024", "--pin", "tp=2", "-o", "json", "--executor", "serial")
    (cell,) = run_here(*words).json()["cells"]
    assert cell["sequence_length"] == 1024
    assert (cell["strategy"]["tp"], cell["strategy"]["pp"]) == (2, 1)


def test_csv_and_json_say_the_same() -> None:
    as_json = run_here("sweep", *SMALL, "-o", "json", "--executor", "serial").json()["cells"]
    as_csv = list(csv.DictReader(io.StringIO(run_here("sweep", *SMALL, "-o", "csv", "--executor", "serial").stdout)))
    assert [row["plan_id"] for row in as_csv] == [cell["plan_id"] or "" for cell in as_json]
    assert [row["reason"] for row in as_csv] == [cell["reason"] or "" for cell in as_json]


def test_infeasible_cells_are_an_answer_even_when_all_are() -> None:
    ran = run_here(
        *("sweep", "-m", "llama-3.1-70b", "-c", "dgx-h100", "-n", "4", "--sequence-length", "2048"),
        *("--global-batch-size", "64", "--executor", "serial", "--backend", "megatron", "-o", "json"),
    )
    assert ran.exit_code == 0
    (cell,) = ran.json()["cells"]
    assert (cell["outcome"], cell["fits"], cell["binding"]) == ("infeasible", False, "device memory")
    assert cell["relaxations"]


def _default_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_ctrl_c_keeps_what_is_finished_and_the_same_command_goes_on(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'plans.db'}"
    lengths = ",".join(str(256 * count) for count in range(1, 15))
    words = (
        *("sweep", "--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--devices", "64", "--sequence-length", lengths),
        *("--global-batch-size", "64", "--database", database, "-o", "json", "--workers", "2"),
    )
    process = subprocess.Popen(
        command(*words),
        env=shell_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell starts its background processes with SIGINT ignored, and tests inherit it; a user's command does not.
        preexec_fn=_default_interrupt,  # noqa: PLW1509  # no other thread runs here
    )
    with open_store(database) as store:
        # Of several stored plans the driver has heard of the first one.
        while len(store.list_plans()) < 4:
            assert process.poll() is None
            time.sleep(0.05)
        # As a terminal does: to the driver and all its workers.
        os.killpg(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=400)
        interrupted = Ran(process.returncode, stdout, stderr)
        assert interrupted.exit_code == 130
        assert "Process" not in stderr
        error = interrupted.error()
        assert error["slug"] == "interrupted"
        assert "of 14 cells are answered" in error["what"]
        cells = interrupted.json()["cells"]
        finished = {cell["plan_id"] for cell in cells if cell["plan_id"]}
        assert len(cells) == 14
        assert {cell["outcome"] for cell in cells} == {"planned", "missing"}
        assert finished <= {record.plan_id for record in store.list_plans(limit=100)}
    again = run_process(*words, timeout_s=400)
    assert again.exit_code == 0
    summary = again.json()["summary"]
    assert summary["planned"] == 14
    assert summary["stored"] >= len(finished) >= 1


@pytest.mark.parametrize(
    ("words", "exit_code", "where"),
    [
        (("--model", "llama-3.2-1b"), 2, "--cluster"),
        ((*SMALL, "--devices", "8,x"), 2, "--devices"),
        ((*SMALL, "--devices", "0"), 2, "#/device_counts"),
        ((*SMALL, "--model", "llama-3.2-1c"), 3, "llama-3.2-1c"),
        ((*SMALL, "--cluster", "dgx-h101"), 3, "dgx-h101"),
        ((*SMALL, "--executor", "slurm"), 2, "--executor"),
        ((*SMALL, "--workers", "0"), 2, "--workers"),
        ((*SMALL, "--ray-code", "."), 2, "--ray-code"),
        ((*SMALL, "--price", "-1"), 2, "--price"),
        ((*SMALL, "--time-limit", "nan"), 2, "--time-limit"),
        (("missing.yaml",), 3, "missing.yaml"),
    ],
)
def test_bad_input_is_one_clear_error(words: tuple[str, ...], exit_code: int, where: str) -> None:
    ran = run_here("sweep", *words, "-o", "json")
    assert (ran.exit_code, ran.stdout) == (exit_code, "")
    error = ran.error()
    assert where in f"{error['where']} {error['what']}"
    assert "Traceback" not in ran.stderr


def test_only_refused_cells_are_bad_input() -> None:
    words = [word if word != "8,12,16" else "12" for word in SMALL]
    ran = run_here("sweep", *words, "--executor", "serial", "-o", "json")
    assert ran.exit_code == 2
    assert "12 devices" in ran.error()["what"]
    assert json.loads(ran.stdout)["summary"]["refused"] == 1


def test_a_time_limit_that_decides_nothing_says_so() -> None:
    ran = run_here(
        *("sweep", "-m", "deepseek-v3", "-c", "dgx-h100", "-n", "1024", "--sequence-length", "4096"),
        *("--global-batch-size", "2048", "--time-limit", "0.000001", "--executor", "serial", "-o", "json"),
    )
    assert ran.exit_code == 6
    assert ran.error()["slug"] == "budget-spent"
    assert ran.json()["summary"]["undecided"] == 1


def test_plans_of_processes_are_those_of_a_search() -> None:
    ran = run_process(
        *("sweep", *SMALL, "--backend", "megatron", "--top", "0", "--profile", "none", "-o", "json", "--workers", "2")
    )
    assert ran.exit_code == 0
    found = [cell["plan_id"] for cell in ran.json()["cells"] if cell["plan_id"]]
    problems = [cell.problem for cell in cells_of(small_question(models=("llama-3.2-1b",), device_counts=(8, 16)))]
    assert found == [find_plan(problem, SearchOptions(top_k=0)).plan_id for problem in problems if problem]
