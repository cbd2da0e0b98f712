"""Back-ends on the command line: which are asked, whose files are written, how their plans differ; real processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.backends.registry import backends, names_with_files
from planner.store import open_store
from tests.command_line import Ran, run_process

SMALL = ("--model", "llama-3.2-1b", "--cluster", "dgx-h100", "--devices", "8")
WORK = ("--global-batch-size", "64", "--sequence-length", "4096")


class Home:
    """Commands with a database of their own."""

    def __init__(self, folder: Path) -> None:
        self.database = f"sqlite:///{folder / 'plans.db'}"

    def run(self, *words: str) -> Ran:
        """A real process."""
        return run_process(*words, environment={"MESHWRIGHT_DATABASE": self.database})

    def answer(self, *words: str) -> Any:
        """Its JSON, for a command that ends well."""
        ran = self.run(*words, "-o", "json")
        assert ran.exit_code == 0, ran.stderr
        return ran.json()

    def plan_ids(self) -> set[str]:
        """What is stored."""
        return {row["plan_id"] for row in self.answer("plans", "list")}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def manifest(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "manifest.json").read_text(encoding="utf-8")))


def test_the_back_ends_that_are_named_are_asked_and_no_others(home: Home) -> None:
    answer = home.answer("plan", *SMALL, *WORK, "--backend", "native,torchtitan==0.2.2", "--full")
    assert answer["problem"]["constraints"]["backends"] == ["native", "torchtitan==0.2.2"]
    rows = answer["backends"]
    assert {(row["backend"], row["release"]) for row in rows} == {("native", "2.13.0"), ("torchtitan", "0.2.2")}
    fastest = answer["fastest"]["step_time_s"]
    assert (answer["backend"], fastest) == (rows[0]["backend"], rows[0]["step_time_s"])
    assert fastest <= answer["step_time_s"] <= fastest * (1 + answer["fastest"]["band"])
    assert answer["unrestricted"] is None, "nobody asked what no back-end can run"


def test_one_back_end_has_no_table_and_a_default_release_needs_no_name(home: Home) -> None:
    (named, spelled) = (home.answer("plan", *SMALL, *WORK, "--backend", name) for name in ("native", "native==2.13.0"))
    assert (named["backend"], named["backends"], named["unrestricted"]) == ("native", [], None)
    assert (named["plan_id"], named["problem_id"]) == (spelled["plan_id"], spelled["problem_id"])
    report = home.run("plans", "show", named["plan_id"]).stdout
    assert f"PLAN {named['plan_id'][:12]} for native PyTorch 2.13.0, recommended beside the fastest plan" in report


def test_an_estimate_says_who_runs_the_strategy(home: Home) -> None:
    answer = home.answer("estimate", *SMALL, *WORK, "--strategy", "tp=2")
    rows = {row["backend"]: row for row in answer["backends"]}
    assert set(rows) == set(names_with_files())
    assert rows[answer["backend"]]["step_time_s"] == answer["step_time_s"]
    assert rows["mindspeed"]["reason"]
    one = home.answer("estimate", *SMALL, *WORK, "--strategy", "tp=2", "--backend", "native")
    assert (one["backend"], one["backends"]) == ("native", [])
    assert one["step_time_s"] == pytest.approx(rows["native"]["step_time_s"], rel=1e-9)


def test_each_named_back_end_gets_files_of_its_own_stored_plan(home: Home, tmp_path: Path) -> None:
    out = tmp_path / "out"
    answer = home.answer("plan", *SMALL, *WORK, "--emit", "best,megatron", "--out", str(out))
    best, other = answer["emissions"]
    assert best["plan_id"] == answer["plan_id"] == manifest(out / "best")["plan_id"]
    assert (best["difference"], best["slower_by"]) == (None, 0.0)
    assert other["plan_id"] == manifest(out / "megatron")["plan_id"] != answer["plan_id"]
    assert {answer["plan_id"], other["plan_id"]} == home.plan_ids()
    stored = home.answer("plans", "show", other["plan_id"])
    assert (stored["backend"], stored["step_time_s"]) == ("megatron", other["step_time_s"])
    # The same plan as the one that the question to this back-end alone gives.
    assert home.answer("plan", *SMALL, *WORK, "--backend", "megatron")["plan_id"] == other["plan_id"]
    with open_store(home.database) as store:
        for each in (best, other):
            (kept,) = store.list_emissions(each["plan_id"])
            assert kept.manifest["plan_id"] == each["plan_id"]
    assert home.run("check", str(out / "best"), str(out / "megatron")).exit_code == 0


def test_emit_without_a_name_is_for_the_plans_own_back_end(home: Home, tmp_path: Path) -> None:
    plan_id = home.answer("plan", *SMALL, *WORK, "--backend", "native")["plan_id"]
    made = home.answer("emit", plan_id[:12], "--out", str(tmp_path / "out"))
    assert (made["backend"], made["plan_id"], made["difference"]) == ("native", plan_id, None)
    assert home.plan_ids() == {plan_id}


def test_emit_for_another_back_end_plans_there_stores_and_tells_the_difference(home: Home, tmp_path: Path) -> None:
    plan = home.answer("plan", *SMALL, *WORK, "--backend", "megatron")
    out = tmp_path / "out"
    words = ("emit", plan["plan_id"], "--backend", "torchtitan==0.3.0", "--out", str(out))
    made = home.answer(*words)
    assert home.plan_ids() == {plan["plan_id"], made["plan_id"]}
    assert manifest(out)["plan_id"] == made["plan_id"]
    assert (manifest(out)["backend"], manifest(out)["release"]) == ("torchtitan", "0.3.0")
    there = home.answer("plans", "show", made["plan_id"])
    assert made["slower_by"] == pytest.approx(there["step_time_s"] / plan["step_time_s"] - 1)
    difference = made["difference"]
    changes = sum(term["change"] for term in difference["breakdown_s"])
    assert changes == pytest.approx(there["step_time_s"] - plan["step_time_s"], rel=1e-6)
    assert difference["step_time_s"]["change"] == pytest.approx(changes)
    for each in difference["strategy"]:
        assert (each["a"], each["b"]) == (plan["strategy"][each["field"]], there["strategy"][each["field"]])
    said = home.run(*words)
    assert said.exit_code == 0
    assert f"slower than plan {plan['plan_id'][:12]}" in said.stdout.replace("\n", " ")
    assert f"plan {made['plan_id'][:12]}, " in said.stderr, "aloud as well"


def test_a_back_end_that_cannot_run_the_question_loses_no_plan(home: Home, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = home.run("plan", *SMALL, *WORK, "--emit", "mindspeed,best", "--out", str(out), "-o", "json")
    assert ran.exit_code == 8
    assert ran.error()["slug"] == "backend-refused"
    assert "Huawei" in ran.error()["what"]
    answer = ran.json()
    assert home.plan_ids() == {answer["plan_id"]}
    assert manifest(out / "best")["plan_id"] == answer["plan_id"]
    assert not (out / "mindspeed").exists()


def test_the_registry_is_listed_and_shown(home: Home) -> None:
    rows = home.answer("backends", "list")
    assert [row["name"] for row in rows] == list(backends())
    assert {row["name"] for row in rows if row["writes_files"]} == set(names_with_files())
    assert home.answer("backends", "show", "torchtitan")["releases"] == ["0.3.0", "0.2.2"]
    assert "MindSpeed" in home.run("backends", "list").stdout
    assert "deepspeed" in home.run("backends", "show", "deepspeed").stdout


def test_a_sweep_asks_the_back_ends_of_the_flag(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(
        "models: [llama-3.2-1b]\nclusters: [dgx-h100]\ndevice_counts: [8]\nsequence_lengths: [4096]\n"
        "global_batch_sizes: [64]\nconstraints: {backends: [megatron]}\n",
        encoding="utf-8",
    )
    for words, wanted in (((), "megatron"), (("--backend", "native"), "native")):
        (cell,) = home.answer("sweep", str(file), "--executor", "serial", *words)["cells"]
        assert home.answer("plans", "show", cell["plan_id"])["backend"] == wanted
