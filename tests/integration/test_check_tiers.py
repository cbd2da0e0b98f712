"""``meshwright check`` in tiers: our rules, then real validators, several folders at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.backends.emission.write import write_emission
from planner.strategy.strategy import Strategy
from tests.command_line import run_here
from tests.emitter import emitter
from tests.plan_factory import make_plan

emit = emitter("megatron")

pytest.importorskip("torch", reason="torch is not installed, torchrun's parser is part of it")
# torchrun's parser is that of the installed torch; Megatron-LM, where it is installed, would be asked as well.
pytestmark = pytest.mark.usefixtures("no_validators")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    plan = make_plan(Strategy(tp=2, sp=True, dp_shard=2, num_microbatches=4), backend="megatron")
    return write_emission(emit(plan, "torchrun"), tmp_path / "out")


def validators(data: dict[str, object]) -> dict[str, bool]:
    found = data["validators"]
    assert isinstance(found, list)
    return {each["name"]: each["accepted"] for each in found}


def test_a_refusal_carries_the_parsers_own_words(out: Path) -> None:
    script = out / "launch.sh"
    script.write_text(script.read_text().replace("--nnodes=", "--nnodez="))
    ran = run_here("check", str(out), "--with", "torchrun", "-o", "json")
    assert ran.exit_code == 8
    said = next(each for each in ran.json()["validators"] if each["name"] == "torchrun")
    assert not said["accepted"]
    assert "--nnodez" in said["message"]
    assert any("launch.sh (edited)" in each["message"] and "line" in each["message"] for each in ran.json()["findings"])


def test_several_folders_are_checked_with_one_process(out: Path, tmp_path: Path) -> None:
    other = write_emission(emit(make_plan(Strategy(dp_shard=2)), "torchrun"), tmp_path / "other")
    ran = run_here("check", str(out), str(other), "--with", "torchrun", "-o", "json")
    assert ran.exit_code == 0, ran.stderr
    checks = ran.json()["checks"]
    assert [each["directory"] for each in checks] == [str(out), str(other)]
    assert all(each["ok"] and validators(each)["torchrun"] for each in checks)


def test_an_unknown_validator_is_bad_input(out: Path) -> None:
    ran = run_here("check", str(out), "--with", "nothing==1", "-o", "json")
    assert ran.exit_code == 2
    assert ran.error()["where"] == "--with"


def test_a_person_reads_who_was_asked(out: Path) -> None:
    ran = run_here("check", str(out), "--with", "torchrun")
    assert ran.exit_code == 0, ran.stderr
    assert "torchrun 2.13.0 accepts" in ran.stdout
