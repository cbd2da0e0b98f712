"""A plan for MaxText from the command line, on TPU and GPU clusters: planned, emitted, checked, edited."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.backends.folders.emit import plan_json
from planner.model.load import load_model
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from tests.command_line import run_here
from tests.plan_factory import make_plan

WORK = ("--global-batch-size", "64", "--sequence-length", "4096", "--no-store")


@pytest.mark.parametrize(("cluster", "devices"), [("tpu-v5p", "16"), ("dgx-h100", "16")])
def test_a_plan_is_emitted_and_its_edits_are_found(tmp_path: Path, cluster: str, devices: str) -> None:
    out = tmp_path / "out"
    asked = ("--model", "llama-3.2-1b", "--cluster", cluster, "--devices", devices)
    ran = run_here("plan", *asked, *WORK, "--backend", "maxtext", "--emit", "best", "--out", str(out), "-o", "json")
    assert ran.exit_code == 0, ran.stderr
    strategy = ran.json()["strategy"]
    assert strategy["zero_stage"] in (0, 1, 3)
    assert strategy["recompute"] != "none"
    checked = run_here("check", str(out))
    assert checked.exit_code == 0, checked.stdout + checked.stderr
    config = out / "maxtext.yml"
    config.write_text(config.read_text().replace("ici_fsdp_parallelism: ", "ici_fsdp_parallelism: 3"))
    edited = run_here("check", str(out))
    assert edited.exit_code != 0
    assert "ici_fsdp_parallelism" in edited.stdout


@pytest.mark.usefixtures("no_validators")
def test_a_plan_of_another_back_end_is_planned_again_in_maxtext(tmp_path: Path) -> None:
    wanted = make_plan(
        Strategy(dp_shard=8, zero_stage=2, num_microbatches=4),
        load_model("llama-3.2-1b"),
        load_cluster("dgx-h100", 8),
        backend="torchtitan",
    )
    document = tmp_path / "plan.json"
    document.write_text(plan_json(wanted), encoding="utf-8")
    out = tmp_path / "out"
    ran = run_here("emit", str(document), "--backend", "maxtext==0.2.5", "--out", str(out), "-o", "json")
    assert ran.exit_code == 0, ran.stderr
    data = ran.json()
    changed = {each["field"]: (each["a"], each["b"]) for each in data["difference"]["strategy"]}
    assert changed["zero_stage"][0] == 2
    assert changed["zero_stage"][1] != 2, "MaxText has no ZeRO-2"
    assert data["difference"]["a"] == wanted.plan_id
    assert data["plan_id"] == json.loads((out / "manifest.json").read_text(encoding="utf-8"))["plan_id"]
    assert run_here("check", str(out)).exit_code == 0
