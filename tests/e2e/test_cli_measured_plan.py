"""A plan uses what was imported, says so, and refuses what it cannot use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import run_here

QUESTION = (
    "--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--devices", "8", "--global-batch-size", "32",
    "--sequence-length", "4096",
)  # fmt: skip
PINS = ("--pin", "tp=8", "--pin", "sp=false")
DEVICE = "h100-sxm5-80gb"


@pytest.fixture
def nccl_log(tmp_path: Path) -> Path:
    """An all_reduce sweep over 8 devices in the form of nccl-tests."""
    lines = ["# nThread 1 nGpus 8 minBytes 1048576 maxBytes 1073741824 step: 4(factor) warmup iters: 5 iters: 20"]
    lines += [
        f"#  Rank {rank:2} Group  0 Pid 1 on host-a device {rank:2} [0x1b] NVIDIA H100 80GB HBM3" for rank in range(8)
    ]
    lines += [
        "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong",
        "# (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)",
    ]
    for power in range(20, 31, 2):
        size, time_us = 2**power, 1000.0 + 2**power / 300e3
        algorithm = size / time_us / 1e3
        cells = f"{time_us:.2f} {algorithm:.2f} {algorithm * 1.75:.2f} 0"
        lines.append(f"{size:12} {size // 4:12} float sum -1 {cells} {cells}")
    path = tmp_path / "all_reduce_perf.log"
    path.write_text("# Collective test starting: all_reduce_perf\n" + "\n".join(lines) + "\n")
    return path


def test_imported_measurements_are_used_and_named(nccl_log: Path, tmp_path: Path) -> None:
    before = run_here("plan", *QUESTION, *PINS, "-o", "json").json()
    assert before["provenance"]["time_by_input"] == {"datasheet": 1.0}
    assert run_here("profile", "import", str(nccl_log)).exit_code == 0
    after = run_here("plan", *QUESTION, *PINS, "--plan-out", str(tmp_path / "plan.json"), "-o", "json").json()
    # A millisecond of latency on every collective of tp=8 cannot go unnoticed.
    assert after["step_time_s"] > before["step_time_s"]
    shares = after["provenance"]["time_by_input"]
    assert shares.get("measured", 0) + shares.get("interpolated", 0) + shares.get("transferred", 0) > 0.1
    ignored = run_here("plan", *QUESTION, *PINS, "--profile", "none", "-o", "json").json()
    assert ignored["step_time_s"] == before["step_time_s"]
    text = run_here("plan", *QUESTION, *PINS).stdout
    assert f"profile {after['provenance']['profile'][:12]}" in text


def test_coverage_names_what_a_plan_leans_on(nccl_log: Path, tmp_path: Path) -> None:
    run_here("profile", "import", str(nccl_log))
    plan = tmp_path / "plan.json"
    run_here("plan", *QUESTION, *PINS, "--plan-out", str(plan))
    found = run_here("profile", "coverage", str(plan), "-o", "json")
    assert found.exit_code == 0
    data = found.json()
    assert data["device"] == DEVICE
    assert data["lookups"][0]["share_of_step"] >= data["lookups"][-1]["share_of_step"]
    gains = [each["sigma_gain"] for each in data["measure_next"]]
    assert gains == sorted(gains, reverse=True)
    assert any("profile measure" in command for command in data["commands"])
    assert {table["operator"] for table in data["tables"]} == {"all_reduce"}
    plain = run_here("profile", "coverage", str(plan), "--profile", "none", "-o", "json").json()
    assert plain["time_by_input"] == {"datasheet": pytest.approx(1.0)}
    assert "Measure next" in run_here("profile", "coverage", str(plan)).stdout


def test_one_file_can_be_the_profile_without_being_stored(nccl_log: Path) -> None:
    plan = run_here("estimate", *QUESTION, "--strategy", "tp=8,dp=1", "--profile", str(nccl_log), "-o", "json")
    assert plan.exit_code == 0
    assert plan.json()["provenance"]["profile"]
    assert run_here("profile", "list", "-o", "json").json() == []


def test_a_profile_is_given_by_the_beginning_of_its_id(nccl_log: Path) -> None:
    words = ("estimate", *QUESTION, "--strategy", "tp=8,dp=1", "-o", "json", "--profile")
    first = run_here(*words, str(nccl_log)).json()
    again = run_here(*words, first["provenance"]["profile"][:16]).json()
    assert again["step_time_s"] == first["step_time_s"]


@pytest.mark.parametrize(
    ("profile", "code", "says"),
    [("feedfeed", 3, "there is no profile"), ("nowhere/file.json", 3, "no such file"), ("x.log", 3, "no such file")],
)
def test_a_profile_that_does_not_exist_is_one_clear_error(profile: str, code: int, says: str) -> None:
    ran = run_here("estimate", *QUESTION, "--strategy", "tp=8,dp=1", "--profile", profile)
    assert ran.exit_code == code
    assert says in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_file_of_another_device_is_refused(nccl_log: Path) -> None:
    ran = run_here(
        "plan", "--model", "llama-3.1-8b", "--cluster", "dgx-a100-80g", "--devices", "8", "--global-batch-size", "32",
        "--sequence-length", "4096", "--profile", str(nccl_log),
    )  # fmt: skip
    assert ran.exit_code == 2
    assert "nothing in it can be looked up for a100-sxm4-80gb" in ran.stderr


def test_a_plan_whose_profile_is_gone_says_what_is_missing(
    nccl_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here("profile", "import", str(nccl_log))
    plan = tmp_path / "plan.json"
    run_here("plan", *QUESTION, *PINS, "--plan-out", str(plan))
    monkeypatch.setenv("MESHWRIGHT_PROFILES", str(tmp_path / "elsewhere"))
    ran = run_here("explain", str(plan), "-o", "json")
    assert ran.exit_code == 7
    assert json.loads(ran.stderr[ran.stderr.index('{\n  "error"') :])["error"]["slug"] == "profile-missing"
