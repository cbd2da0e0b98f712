"""Every command on real problems, small enough to be quick."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from planner.backends.registry import names_with_files
from planner.operations.plan_reference import document_part
from planner.plan.plan import Plan
from planner.strategy.fields import value_words
from profiles.safe_yaml import load_yaml_text
from tests.command_line import Ran, run_here, run_process

SMALL = ("--model", "llama-3.2-1b", "--cluster", "dgx-h100", "--devices", "8")
WORK = ("--global-batch-size", "64", "--sequence-length", "4096")
CONTRACT_KEYS = {
    *("plan_id", "problem_id", "status", "strategy", "stages", "step_time_s", "step_time_interval_s"),
    *("tokens_per_s_per_device", "model_flops_utilization", "breakdown_s", "lower_bound_s", "gap", "search"),
    *("alternatives", "assumptions", "provenance", "backend", "release", "backends", "unrestricted", "fastest"),
}


def ok(ran: Ran) -> Ran:
    assert ran.exit_code == 0, ran.stderr
    return ran


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One stored plan with its files; the fixture's own database, for the whole module."""
    folder = tmp_path_factory.mktemp("planned")
    database = f"sqlite:///{folder / 'plans.db'}"
    paths = {"file": folder / "plan.json", "trace": folder / "trace.json", "database": database}
    more = ("--plan-out", str(paths["file"]), "--trace", str(paths["trace"]), "--database", database)
    answer = ok(run_here("plan", *SMALL, *WORK, *more, "-o", "json")).json()
    return {**paths, "answer": answer}


@pytest.fixture(autouse=True)
def _same_database(planned: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESHWRIGHT_DATABASE", planned["database"])


def test_plan_prints_the_contract(planned: dict[str, Any]) -> None:
    answer = planned["answer"]
    assert set(answer) >= CONTRACT_KEYS
    # A recommended plan beside the proved one is feasible, and its gap is what it gives away.
    assert (answer["status"], answer["fastest"]["status"]) == ("feasible", "optimal")
    assert answer["lower_bound_s"] == answer["fastest"]["step_time_s"] < answer["step_time_s"]
    low_s, high_s = answer["step_time_interval_s"]
    assert low_s < answer["step_time_s"] < high_s
    assert set(answer["search"]) >= {"enumerated", "pruned", "evaluated", "wall_s"}
    assert answer["search"]["wall_s"] > 0
    rows = answer["backends"]
    assert {row["backend"] for row in rows} == set(names_with_files())
    assert (rows[0]["backend"], rows[0]["release"]) == (answer["backend"], answer["release"])
    assert rows[0]["step_time_s"] == answer["fastest"]["step_time_s"]
    for row in rows:
        assert (row["step_time_s"] is None) == (row["reason"] is not None)
        assert row["step_time_s"] is None or row["step_time_s"] >= answer["lower_bound_s"]
    strategy = answer["strategy"]
    assert strategy["tp"] * strategy["cp"] * strategy["pp"] * strategy["dp"] == 8
    for stage in answer["stages"]:
        bill = dict(stage["peak_memory_bytes"])
        assert bill.pop("total") == sum(bill.values())
        assert {"layers", "recompute", "offload"} <= set(stage)
    assert sum(stage["layers"] for stage in answer["stages"]) == 16
    assert sum(answer["breakdown_s"].values()) == pytest.approx(answer["step_time_s"], rel=1e-6)


def test_the_fastest_and_the_recommended_plan_are_both_told() -> None:
    question = ("plan", "--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--devices", "8", "--backend", "megatron")
    asked = (*question, "--global-batch-size", "128", "--sequence-length", "8192", "--quiet")
    both = ok(run_here(*asked, "-o", "json")).json()
    alone = ok(run_here(*asked, "--prefer", "fastest", "-o", "json")).json()
    assert "fastest" not in alone
    assert (both["fastest"]["step_time_s"], both["fastest"]["strategy"]) == (alone["step_time_s"], alone["strategy"])
    assert both["lower_bound_s"] == alone["step_time_s"] < both["step_time_s"]
    assert (both["status"], alone["status"]) == ("feasible", "optimal")
    table = " ".join(ok(run_here(*asked)).stdout.split())
    assert "recommended beside the fastest plan, which is proved" in table
    assert f"price {both['fastest']['price']}" in table
    # Each preference is a question of its own: what answers one again never answers the other.
    for prefer, plan in (("recommended", both), ("fastest", alone)):
        again = ok(run_here(*asked, "--prefer", prefer, "--reuse", "-o", "json")).json()
        assert (again["plan_id"], again["search"]["wall_s"]) == (plan["plan_id"], None)


def test_the_written_file_is_the_printed_plan(planned: dict[str, Any]) -> None:
    data = json.loads(planned["file"].read_text(encoding="utf-8"))
    plan = Plan.model_validate(document_part(data))
    assert plan.plan_id == planned["answer"]["plan_id"]
    assert plan.problem.problem_id == planned["answer"]["problem_id"]


def test_the_same_question_gives_the_same_plan(planned: dict[str, Any]) -> None:
    again = ok(run_here("plan", *SMALL, *WORK, "--no-store", "-o", "json")).json()
    for answer in (again, planned["answer"]):
        answer["search"].pop("wall_s", None)
    assert again == planned["answer"]


def test_the_trace_opens_as_trace_events(planned: dict[str, Any]) -> None:
    trace = json.loads(planned["trace"].read_text(encoding="utf-8"))
    assert trace["traceEvents"]


def test_a_workload_file_says_what_flags_say(planned: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "workload.yaml"
    file.write_text("global_batch_size: 64\nsequence_length: 2048\n", encoding="utf-8")
    words = ("plan", *SMALL, "--workload", str(file), "--sequence-length", "4096", "--no-store", "-o", "json")
    assert ok(run_here(*words)).json()["problem_id"] == planned["answer"]["problem_id"]


def test_full_json_holds_the_problem(planned: dict[str, Any]) -> None:
    full = ok(run_here("plans", "show", planned["answer"]["plan_id"][:10], "--full", "-o", "json")).json()
    assert full["problem"]["workload"]["global_batch_size"] == 64
    assert "problem" not in planned["answer"]


def test_reuse_takes_the_stored_answer(planned: dict[str, Any]) -> None:
    ran = ok(run_here("plan", *SMALL, *WORK, "--reuse", "-o", "json"))
    assert ran.json()["search"]["wall_s"] is None
    assert ran.json()["plan_id"] == planned["answer"]["plan_id"]
    assert "stored, proved answer" in ran.stderr


def test_pins_and_forbids_are_obeyed() -> None:
    pinned = ok(run_here("plan", *SMALL, *WORK, "--pin", "tp=2,mbs=2", "--forbid", "pp", "--no-store", "-o", "json"))
    strategy = pinned.json()["strategy"]
    assert (strategy["tp"], strategy["micro_batch_size"], strategy["pp"]) == (2, 2, 1)


def devices_of(answer: dict[str, Any]) -> int:
    strategy = answer["strategy"]
    return int(strategy["tp"] * strategy["cp"] * strategy["pp"] * strategy["dp"])


def test_the_cheapest_plan_has_a_price() -> None:
    words = ("--objective", "cost", "--price", "2", "--no-store", "-o", "json")
    answer = ok(run_here("plan", *SMALL, *WORK, *words)).json()
    assert answer["cost_per_step"] == pytest.approx(2 * devices_of(answer) * answer["step_time_s"] / 3600)


def test_the_fewest_devices_are_fewer() -> None:
    words = ("--objective", "devices", "--max-step-time", "100", "--no-store", "-o", "json")
    answer = ok(run_here("plan", *SMALL[:-1], "64", *WORK, *words)).json()
    assert answer["step_time_s"] <= 100
    assert devices_of(answer) < 64


def test_nothing_feasible_is_an_answer_with_a_way_out() -> None:
    words = ("plan", "--model", "llama-3.1-405b", "--cluster", "dgx-h100", *WORK, "--no-store")
    ran = run_here(*words)
    assert (ran.exit_code, ran.stdout) == (5, "")
    assert "error[no-feasible-plan]" in ran.stderr
    assert "hint:" in ran.stderr
    error = run_here(*words, "-o", "json").error()
    assert error["binding"]
    assert error["relaxations"]
    assert sum(error["pruned"].values()) > 0
    assert error["where"]


def test_no_time_is_an_answer_too() -> None:
    ran = run_here(
        "plan", "--model", "llama-3.1-70b", "--cluster", "dgx-h100", "-n", "64", *WORK, "--time-limit", "1e-6"
    )
    assert ran.exit_code in (0, 6)
    if ran.exit_code == 6:
        assert "error[budget-spent]" in ran.stderr


def test_estimate_of_the_plans_strategy_is_the_plan(planned: dict[str, Any]) -> None:
    strategy = planned["answer"]["strategy"]
    text = ",".join(f"{key}={value_words(value)}" for key, value in strategy.items() if value != [])
    estimate = ok(run_here("estimate", *SMALL, *WORK, "--strategy", text, "-o", "json")).json()
    assert estimate["strategy"] == strategy
    assert estimate["step_time_s"] == pytest.approx(planned["answer"]["step_time_s"], rel=1e-9)


def test_an_estimate_that_does_not_fit_says_so() -> None:
    words = ("estimate", "--model", "llama-3.1-70b", "--cluster", "dgx-h100", *WORK, "--strategy", "tp=1")
    ran = run_here(*words, "-o", "json")
    assert ran.exit_code == 5
    answer = ran.json()
    assert answer["status"] == "infeasible"
    assert answer["stages"][0]["peak_memory_bytes"]["total"] > answer["memory_limit_bytes"]
    assert ran.error()["binding"] == "memory"
    table = run_here(*words)
    assert "it does not fit" in table.stdout


def test_an_estimate_of_an_illegal_strategy_names_every_rule() -> None:
    ran = run_here("estimate", *SMALL, *WORK, "--strategy", "tp=8,pp=1,ep=3,vpp=2")
    assert ran.exit_code == 2
    assert "\n  ep: " in ran.stderr
    assert "\n  vpp: " in ran.stderr
    assert "--> --strategy\n" in ran.stderr


def test_explain_gives_sentences_causes_and_neighbours(planned: dict[str, Any]) -> None:
    answer = planned["answer"]
    said = ok(run_here("explain", answer["plan_id"][:12], "-o", "json")).json()
    assert said["plan_id"] == answer["plan_id"]
    assert len(said["sentences"]) >= 4
    assert {cause["term"]: cause["seconds"] for cause in said["causes"]} == {
        term: value for term, value in answer["breakdown_s"].items() if value > 0
    }
    assert sum(cause["share"] for cause in said["causes"]) == pytest.approx(1)
    assert said["memory"]["total_bytes"] == sum(said["memory"]["terms_bytes"].values())
    times_s = [each["step_time_s"] for each in said["neighbours"] if each["step_time_s"] is not None]
    assert min(times_s) >= answer["lower_bound_s"], "no move goes below what is proved"
    assert {each["outcome"] for each in said["neighbours"]} & {"slower", "does_not_fit"}
    table = ok(run_here("explain", str(planned["file"]))).stdout
    assert "What the step pays for" in table
    assert "One move away" in table
    brief = ok(run_here("explain", str(planned["file"]), "--brief")).stdout
    assert "One move away" not in brief


def test_why_not_compares_with_the_best_such_plan(planned: dict[str, Any]) -> None:
    said = ok(run_here("explain", str(planned["file"]), "--why-not", "tp=8", "-o", "json")).json()
    assert said["possible"]
    assert said["other"]["strategy"]["tp"] == 8
    assert said["slower_by"] == pytest.approx(said["other"]["step_time_s"] / planned["answer"]["step_time_s"] - 1)
    assert said["slower_by"] > 0
    assert sum(term["change"] for term in said["breakdown_s"]) == pytest.approx(
        said["other"]["step_time_s"] - planned["answer"]["step_time_s"], rel=1e-6
    )
    assert "Time by term" in ok(run_here("explain", str(planned["file"]), "--why-not", "tp=8")).stdout


def test_why_not_of_the_impossible_names_the_reason(planned: dict[str, Any]) -> None:
    said = ok(run_here("explain", str(planned["file"]), "--why-not", "tp=5", "-o", "json")).json()
    assert not said["possible"]
    assert "does not divide the 8 devices" in said["sentence"]
    assert said["binding"]
    assert "tp=5" in ok(run_here("explain", str(planned["file"]), "--why-not", "tp=5")).stdout


def test_why_not_of_what_is_so(planned: dict[str, Any]) -> None:
    tp = planned["answer"]["strategy"]["tp"]
    said = ok(run_here("explain", str(planned["file"]), "--why-not", f"tp={tp}", "-o", "json")).json()
    assert said["already_so"]


def test_diff_of_stored_plans_and_files(planned: dict[str, Any], tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    ok(run_here("plan", *SMALL, *WORK, "--pin", "tp=4", "--no-store", "--plan-out", str(other), "-o", "json"))
    said = ok(run_here("diff", planned["answer"]["plan_id"], str(other), "-o", "json")).json()
    assert not said["identical"]
    assert {change["field"] for change in said["strategy"]} >= {"tp"}
    assert said["step_time_s"]["change"] > 0
    same = ok(run_here("diff", str(planned["file"]), planned["answer"]["plan_id"], "-o", "json")).json()
    assert same["identical"]
    assert "Time by term" in ok(run_here("diff", str(planned["file"]), str(other))).stdout


def test_sensitivity_is_a_tornado(planned: dict[str, Any]) -> None:
    said = ok(run_here("sensitivity", str(planned["file"]), "--changes", "-10,10", "-o", "json")).json()
    levers = {row["lever"] for row in said["tornado"]}
    assert levers >= {"compute_rate", "scale_up_bandwidth", "nic_bandwidth", "memory_capacity"}
    swings = [row["swing"] for row in said["tornado"]]
    assert swings == sorted(swings, reverse=True)
    by_case = {(point["lever"], point["change"]): point for point in said["points"]}
    assert (
        by_case["compute_rate", 0.1]["time_per_token_change"]
        < 0
        < by_case["compute_rate", -0.1]["time_per_token_change"]
    )
    for point in said["points"]:
        if point["regret"] is not None:
            assert point["regret"] >= 0
            assert point["stays_best"] == (point["regret"] <= 1e-3)
    quick = ok(run_here("sensitivity", str(planned["file"]), "--changes", "-10,10", "--no-replan"))
    assert "Time a token" in quick.stdout


def test_stored_plans_are_listed_labelled_and_exported(planned: dict[str, Any], tmp_path: Path) -> None:
    plan_id = planned["answer"]["plan_id"]
    rows = ok(run_here("plans", "list", "-o", "json")).json()
    (mine,) = (row for row in rows if row["plan_id"] == plan_id)
    assert (mine["backend"], mine["release"]) == (planned["answer"]["backend"], planned["answer"]["release"])
    table = [line.split() for line in ok(run_here("plans", "list")).stdout.splitlines()]
    assert table[0][:4] == ["plan", "model", "cluster", "back-end"]
    assert any(words[:1] == [plan_id[:12]] and words[3] == mine["backend"] for words in table)
    ok(run_here("plans", "label", plan_id[:12], "baseline"))
    assert "baseline" in ok(run_here("plans", "list")).stdout
    assert ok(run_here("plans", "list", "--model", "no-such-model", "-o", "json")).json() == []
    out = tmp_path / "exported.json"
    ok(run_here("plans", "export", "baseline", "--out", str(out)))
    assert json.loads(out.read_text(encoding="utf-8")) == ok(run_here("plans", "export", plan_id)).json()
    assert ok(run_here("plans", "show", str(out))).stdout == ok(run_here("plans", "show", "baseline")).stdout
    as_yaml = load_yaml_text(ok(run_here("plans", "export", "baseline", "-o", "yaml")).stdout, "yaml")
    assert as_yaml["plan_id"] == plan_id
    assert ["baseline", plan_id[:12], "1"] in [
        line.split()[:3] for line in ok(run_here("plans", "labels")).stdout.splitlines()
    ]
    refused = run_here("plans", "delete", plan_id)
    assert (refused.exit_code, "baseline" in refused.stderr) == (4, True)
    ok(run_here("plans", "unlabel", "baseline"))
    assert "baseline" not in ok(run_here("plans", "labels")).stdout
    copy = ("--database", str(tmp_path / "copy.db"))
    made = ok(run_here("plan", *SMALL, *WORK, *copy, "-o", "json")).json()["plan_id"]
    assert ok(run_here("plans", "delete", made[:12], *copy, "-o", "json")).json()["plan_id"] == made
    assert ok(run_here("plans", "list", *copy, "-o", "json")).json() == []


def test_upgrading_an_upgraded_database_is_harmless() -> None:
    assert ok(run_here("db", "upgrade", "-o", "json")).json() == ok(run_here("db", "upgrade", "-o", "json")).json()


def test_a_list_goes_on_after_a_plan_of_which_only_the_key_is_read(tmp_path: Path) -> None:
    database = tmp_path / "plans.db"
    words = ("plan", *SMALL, "--sequence-length", "4096", "--database", str(database), "-o", "json")
    older, newer = (
        ok(run_here(*words, "--pin", "tp=8", "--global-batch-size", batch)).json()["plan_id"] for batch in ("32", "64")
    )
    listing = ("plans", "list", "--database", str(database), "-o", "json", "--after", newer[:8])
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE documents SET body = '{}' WHERE sha = ?", (newer,))
    assert run_here("plans", "show", newer, "--database", str(database)).exit_code != 0
    assert [row["plan_id"] for row in ok(run_here(*listing)).json()] == [older]


def no_database(tmp_path: Path) -> str:
    """Where none can be written."""
    if os.geteuid() == 0:
        return "/proc/plans.db"
    (tmp_path / "closed").mkdir(mode=0o500)
    return str(tmp_path / "closed" / "plans.db")


def test_a_plan_that_cannot_be_stored_loses_no_launch_files(planned: dict[str, Any], tmp_path: Path) -> None:
    other = next(name for name in ("megatron", "torchtitan") if name != planned["answer"]["backend"])
    words = ("emit", str(planned["file"]), "--backend", other, "--out", str(tmp_path / "files"))
    ran = run_here(*words, "--database", no_database(tmp_path), "-o", "json")
    assert ran.exit_code == 2
    assert ran.json()["backend"] == other
    assert (tmp_path / "files" / "manifest.json").is_file()
    assert ran.error()["slug"].startswith("store-")


def test_a_read_only_database_loses_no_plan(tmp_path: Path) -> None:
    ran = run_here("plan", *SMALL, *WORK, "--database", no_database(tmp_path))
    assert ran.exit_code == 2
    assert "error[store-" in ran.stderr
    assert "hint:" in ran.stderr


def test_a_file_that_cannot_be_written_loses_no_plan(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    bad = tmp_path / "file" / "plan.json"
    ran = run_here("plan", *SMALL, *WORK, "--no-store", "--plan-out", str(bad), "-o", "json")
    assert ran.exit_code == 2
    assert ran.json()["fastest"]["status"] == "optimal"
    assert ran.error()["where"] == str(bad)


def test_a_real_process_prints_only_json_on_stdout(tmp_path: Path) -> None:
    ran = run_process("plan", *SMALL, *WORK, "-o", "json", environment={"XDG_DATA_HOME": str(tmp_path)}, cwd=tmp_path)
    assert ran.exit_code == 0, ran.stderr
    assert set(ran.json()) >= CONTRACT_KEYS
    assert "checked:" in ran.stderr
    quiet = run_process("plan", *SMALL, *WORK, "-q", "--no-store", cwd=tmp_path)
    assert quiet.stderr == ""
    assert "\x1b[" not in quiet.stdout


def test_catalogues_are_listed_and_shown() -> None:
    models = ok(run_here("models", "list", "-o", "json")).json()
    assert "llama-3.1-70b" in {row["name"] for row in models}
    shown = ok(run_here("models", "show", "llama-3.1-8b", "-o", "json")).json()
    assert shown["parameters"] == 8_030_261_248
    assert sum(shown["parameters_by_module"].values()) == shown["parameters"]
    clusters = ok(run_here("clusters", "list", "-o", "json")).json()
    assert {"dgx-a100-80g", "dgx-h100", "gb200-nvl72", "mi300x-8", "trn2"} <= {row["name"] for row in clusters}
    assert ok(run_here("clusters", "show", "dgx-h100", "-n", "64", "-o", "json")).json()["num_devices"] == 64
    for words in (("models", "list"), ("models", "show", "deepseek-v3"), ("clusters", "show", "tpu-v5p")):
        assert len(ok(run_here(*words)).stdout.splitlines()) > 5
    assert "h100-sxm5-80gb" in ok(run_here("devices", "list")).stdout
    assert "TFLOP/s" in ok(run_here("devices", "show", "h100-sxm5-80gb")).stdout
