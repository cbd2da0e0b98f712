"""``meshwright plan --pool``: the answer as JSON and table, and one clear error for each kind of bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import run_here

WORK = ("--global-batch-size", "16", "--sequence-length", "2048")
POOLS = ("--pool", "dgx-a100-40g:8", "--pool", "dgx-h100:8")
PLAN = ("plan", "--model", "llama-3.1-8b", *WORK)


def test_the_answer_is_json_and_table(tmp_path: Path) -> None:
    kept = tmp_path / "plan.json"
    ran = run_here(*PLAN, *POOLS, "--plan-out", str(kept), "-o", "json")
    assert ran.exit_code == 0, ran.stderr
    answer = ran.json()
    assert answer["gap"] == pytest.approx(1 - answer["lower_bound_s"] / answer["step_time_s"])
    assert (answer["status"] == "optimal") == (answer["gap"] == 0)
    assert sum(stage["layers"] for stage in answer["stages"]) == 32
    assert {stage["pool"] for stage in answer["stages"]} <= {"dgx-a100-40g", "dgx-h100"}
    assert answer["why"]
    assert kept.exists()
    table = run_here(*PLAN, *POOLS, "--pin", "num_microbatches=8")
    assert table.exit_code == 0, table.stderr
    for word in ("proved best", "Stages", "Pools", "Why", "dgx-h100"):
        assert word in table.stdout


def test_a_cluster_file_with_two_pools_is_planned_as_two_pools(tmp_path: Path) -> None:
    one = """
  - name: {name}
    device: {device}
    num_nodes: 1
    devices_per_node: 8
    scale_up: {{kind: switch, domain_size: 8, bandwidth_bytes_per_s: 300 GB/s, latency_s: 2 us}}
    nics_per_node: 8
    nic_bandwidth_bytes_per_s: 200 Gbit/s
    host: {{memory_bytes: 1 TiB, link_bandwidth_bytes_per_s: 25 GB/s}}"""
    pools = one.format(name="old", device="a100-sxm4-40gb") + one.format(name="new", device="h100-sxm5-80gb")
    path = tmp_path / "mixed.yaml"
    path.write_text(f"schema_version: 1\nname: mixed\npools:{pools}\n", encoding="utf-8")
    ran = run_here(*PLAN, "--cluster", str(path), "--pin", "num_microbatches=8", "-o", "json")
    assert ran.exit_code == 0, ran.stderr
    assert [use["pool"] for use in ran.json()["pools"]] == ["old", "new"]


@pytest.mark.parametrize(
    ("words", "exit_code", "said"),
    [
        (("--pool", "dgx-h100"), 2, "NAME:COUNT"),
        (("--pool", "dgx-h100:0"), 2, "0 is out of range"),
        (("--pool", "dgx-h100:12"), 2, "--devices 8 or 16"),
        (("--pool", "dgx-h1000:8"), 3, "no cluster"),
        ((*POOLS, "--cluster", "dgx-h100"), 4, "--cluster"),
        ((*POOLS, "--devices", "8"), 4, "--devices"),
        ((), 2, "--pool NAME:COUNT"),
        ((*POOLS, "--pareto"), 4, "--pareto"),
        ((*POOLS, "--emit", "megatron", "--out", "x"), 8, "unequal devices"),
        ((*POOLS, "--backend", "megatron"), 8, "native"),
        ((*POOLS, "--emit", "best", "--out", "x"), 8, "--backend native"),
        ((*POOLS, "--emit", "native,megatron", "--out", "x"), 8, "the one back-end"),
        ((*POOLS, "--backend", "native", "--emit", "megatron", "--out", "x"), 8, "the one back-end"),
        ((*POOLS, "--backend", "native,megatron"), 2, "2 back-ends"),
        ((*POOLS, "--pin", "schedule=zbv"), 2, "1f1b"),
        ((*POOLS, "--pin", "vpp=2"), 2, "1f1b"),
        (("--pool", "dgx-h100:8", "--pool", "v100.yaml:8"), 3, "v100.yaml"),
        (("--pool", "l40s-8:1", "--pool", "l40s-8:1", "--forbid", "offload,activation_offload"), 5, "fits on"),
    ],
)
def test_bad_input_gets_one_clear_error(words: tuple[str, ...], exit_code: int, said: str) -> None:
    ran = run_here(*PLAN, *words)
    assert ran.exit_code == exit_code, ran.stderr
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""


def test_a_device_without_the_precision_is_named() -> None:
    v100 = "examples/unequal-pools/v100-nodes.yaml:8"
    ran = run_here(*PLAN, "--pool", v100, "--pool", "dgx-h100:8", "--precision", "bf16")
    assert ran.exit_code == 2
    assert "v100-sxm2-32gb has no bf16 rate" in ran.stderr
    assert "--precision fp16" in ran.stderr


def test_a_back_end_that_runs_unequal_stages_gets_launch_files(tmp_path: Path) -> None:
    pins = ("--pin", "num_microbatches=8", "--pin", "tp=2")
    out = tmp_path / "files"
    ran = run_here(*PLAN, *POOLS, *pins, "--emit", "native", "--launcher", "slurm", "--out", str(out), "-o", "json")
    assert ran.exit_code == 0, ran.stderr
    answer = ran.json()
    assert answer["backend"] == "native"
    assert answer["strategy"]["tp"] == 2
    # One id: of the answer, of the files and of the stored plan, which commands take as any other.
    assert json.loads((out / "plan.json").read_text(encoding="utf-8"))["strategy"] == answer["strategy"]
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8"))["plan_id"] == answer["plan_id"]
    shown = run_here("plans", "show", answer["plan_id"])
    assert f"PLAN {answer['plan_id'][:12]}" in shown.stdout
    assert "h100-sxm5-80gb + 8 " in shown.stdout
    assert answer["plan_id"][:12] in run_here("plans", "list").stdout
    assert run_here("diff", answer["plan_id"], answer["plan_id"]).exit_code == 0
    written = run_here("emit", answer["plan_id"], "--launcher", "slurm", "--out", str(tmp_path / "again"))
    assert written.exit_code == 0, written.stderr
    files = [(folder / "job.sbatch").read_text(encoding="utf-8") for folder in (out, tmp_path / "again")]
    assert files[0] == files[1]
    why = run_here("explain", answer["plan_id"])
    assert why.exit_code == 0, why.stderr
    assert "sets the pace" in why.stdout
    [emission] = answer["emissions"]
    assert emission["launcher"] == "slurm"
    assert "#SBATCH hetjob" in (out / "job.sbatch").read_text(encoding="utf-8")
    again = run_here(*PLAN, *POOLS, *pins, "--backend", "native", "--emit", "best", "--out", str(out))
    assert again.exit_code == 0, again.stderr
    assert "native 2.13.0 files for torchrun" in again.stdout
    assert len([line for line in again.stdout.splitlines() if "bash launch.sh" in line]) == 2


def test_a_spent_time_limit_gives_a_gap_or_says_so() -> None:
    ran = run_here(*PLAN, *POOLS, "--time-limit", "0.001", "-o", "json")
    assert ran.exit_code in {0, 6}
    if ran.exit_code == 0:
        assert ran.json()["lower_bound_s"] <= ran.json()["step_time_s"]


def test_a_sample_over_pools_is_counted_and_then_refused_for_its_own_reason() -> None:
    ran = run_here("plan", "--model", "wan-2.1-14b", *POOLS, "--global-batch-size", "64", "--sample", "81x480x832")
    assert ran.exit_code == 2, ran.stderr
    assert "are not cut into stages" in ran.stderr
    assert "plan each pool by itself" in ran.stderr
    assert "--sequence-length" not in ran.stderr
    text = run_here(*PLAN[:3], *POOLS, "--global-batch-size", "64", "--sample", "81x480x832")
    assert "only a diffusion transformer has samples" in text.stderr
