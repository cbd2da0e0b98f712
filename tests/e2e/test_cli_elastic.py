"""``throughput`` and ``replan`` on this machine: what they keep, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Ran, run_here
from tests.running_service import SMALL_MODEL

WORK = ("--global-batch-size", "16", "--sequence-length", "2048")


@pytest.fixture
def small(tmp_path: Path) -> tuple[str, ...]:
    file = tmp_path / "small.json"
    file.write_text(json.dumps(SMALL_MODEL), encoding="utf-8")
    return ("--model", str(file), "--cluster", "dgx-a100-80g", *WORK)


def answer(*words: str) -> Any:
    ran = run_here(*words, "-o", "json")
    assert ran.exit_code == 0, ran.stderr
    return ran.json()


def refused(*words: str) -> Ran:
    ran = run_here(*words, "-o", "json")
    assert ran.stdout == ""
    return ran


def test_a_stored_proof_answers_the_curve(small: tuple[str, ...], tmp_path: Path) -> None:
    where = ("--database", str(tmp_path / "plans.db"))
    (quick,) = answer("throughput", *small, "--devices", "8", "--budget", "60", *where)["points"]
    assert answer("plans", "show", quick["plan_id"], *where)["plan_id"] == quick["plan_id"]
    proved = answer("plan", *small, "--devices", "8", "--prefer", "fastest", *where)
    assert proved["step_time_s"] <= quick["step_time_s"]
    (again,) = answer("throughput", *small, "--devices", "8", "--budget", "60", *where)["points"]
    assert (again["plan_id"], again["proved"]) == (proved["plan_id"], True)
    assert quick["lower_bound_s"] <= proved["step_time_s"] * (1 + 1e-9)


def test_nothing_is_kept_unless_it_may_be(small: tuple[str, ...], tmp_path: Path) -> None:
    where = ("--database", str(tmp_path / "plans.db"))
    answer("throughput", *small, "--devices", "8,16", "--budget", "60", "--no-store")
    file = str(tmp_path / "plan.json")
    answer("plan", *small, "--devices", "8", "--no-store", "--plan-out", file)
    new = str(tmp_path / "new.json")
    made = answer("replan", file, "--devices", "16", "--no-store", "--plan-out", new, *where)
    assert answer("plans", "list", *where) == []
    assert answer("plans", "show", new, *where)["plan_id"] == made["new_plan_id"]
    kept = answer("replan", file, "--devices", "16", *where)
    assert [each["plan_id"] for each in answer("plans", "list", *where)] == [kept["new_plan_id"]]
    table = run_here("replan", file, "--devices", "16", "--no-store")
    assert "What must move" in table.stdout
    assert "stored" not in table.stderr


def test_a_missed_target_is_part_of_the_row(small: tuple[str, ...]) -> None:
    words = ("throughput", *small, "--devices", "8", "--budget", "60", "--no-store", "--min-tokens-per-s", "1e15")
    (point,) = answer(*words)["points"]
    assert (point["fits"], point["meets_target"]) == (True, False)
    assert "yes, too slow" in run_here(*words).stdout


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (("--devices", "8,x"), "--devices"),
        (("--devices", "0"), "--devices"),
        (("--devices", ",".join("8" for _ in range(65))), "--devices"),
        (("--devices", "8", "--budget", "0"), "--budget"),
        (("--devices", "8", "--budget", "nan"), "--budget"),
        (("--devices", "8", "--price", "-1"), "--price"),
    ],
)
def test_a_curve_of_what(words: tuple[str, ...], where: str, small: tuple[str, ...]) -> None:
    ran = refused("throughput", *small, *words)
    assert (ran.exit_code, ran.error()["where"]) == (2, where)


@pytest.mark.parametrize("words", [(), ("--devices", "8", "--lost-nodes", "1"), ("--lost-nodes", "1,x")])
def test_replan_needs_one_of_two(words: tuple[str, ...]) -> None:
    ran = refused("replan", "abcdef", *words)
    assert ran.exit_code == 2
    assert "--lost-nodes" in ran.error()["where"]
