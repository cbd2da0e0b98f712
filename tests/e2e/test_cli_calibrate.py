"""``meshwright profile calibrate``: shown, stored, applied when asked, never otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.accuracy_rows import csv_text
from tests.command_line import Ran, run_here
from tests.training_logs import megatron_log

SMALL = ("--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--devices", "8")
WORK = ("--global-batch-size", "32", "--sequence-length", "4096")
STRATEGY = ("--strategy", "tp=8,mbs=1", "-o", "json")
OLD = Path(__file__).parents[1] / "golden" / "documents" / "calibrations" / "tuned.json"
"""A stored calibration of the last release whose back-ends had no physics of their own."""
TUNED = ("--backend", "unrestricted")
"""The back-end with the physics that runs are predicted under whose rows name no software."""


def ok(ran: Ran) -> Any:
    assert ran.exit_code == 0, ran.stderr
    return ran.json()


def estimated(*words: str) -> Any:
    return ok(run_here("estimate", *SMALL, *WORK, *STRATEGY, *words))


def calibrate(*words: str) -> Ran:
    return run_here("profile", "calibrate", *words, "-q", "-o", "json")


@pytest.fixture
def slow_runs(tmp_path: Path) -> str:
    """Ten single-device runs, each 1.6 times as slow as predicted: only operators can be the reason."""
    from planner.evidence.runs.prediction import predict_rows
    from tests.accuracy_rows import rows_of

    settings = [
        {"num_devices": "1", "tp": "1", "pp": "1", "mbs": str(mbs), "gbs": "8", "seq_len": str(length)}
        for mbs in (1, 2)
        for length in (512, 1024, 2048, 4096, 8192)
    ]
    predictions, _ = predict_rows(rows_of(*settings))
    slow = [
        {**setting, "step_time_s": repr(1.6 * each.step_time_s)}
        for setting, each in zip(settings, predictions, strict=True)
    ]
    path = tmp_path / "truth.csv"
    path.write_text(csv_text(*slow))
    return str(path)


def test_calibrate_then_estimate_changes_the_step_time_by_the_factor(slow_runs: str, tmp_path: Path) -> None:
    plain = estimated(*TUNED)
    out = tmp_path / "slow.json"
    (found,) = ok(calibrate(slow_runs, "--out", str(out)))["calibrations"]
    factor = found["factors"]["compute"]["value"]
    assert factor == pytest.approx(1.6, rel=0.02)
    assert found["factors"]["compute"]["unit"] == "ratio"
    assert found["time"]["before"]["median"] == pytest.approx(1 - 1 / 1.6, rel=1e-6)
    assert found["time"]["after_leave_one_out"]["median"] < 0.02
    assert estimated(*TUNED) == plain, "a stored calibration was applied without being asked for"
    corrected = estimated(*TUNED, "--calibration", str(out))
    assert corrected["breakdown_s"]["compute"] == pytest.approx(factor * plain["breakdown_s"]["compute"], rel=1e-9)
    assert corrected["breakdown_s"]["tp"] == pytest.approx(plain["breakdown_s"]["tp"], rel=0.05)
    assert corrected["step_time_s"] > plain["step_time_s"]
    assert any(found["calibration_id"][:12] in note for note in corrected["assumptions"])
    assert corrected["provenance"]["calibration"]["factors"] == {"compute": factor}
    assert corrected["problem_id"] != plain["problem_id"]
    assert estimated(*TUNED, "--calibration", found["calibration_id"][:12])["plan_id"] == corrected["plan_id"]


def test_a_plan_uses_it_and_says_so(slow_runs: str) -> None:
    (found,) = ok(calibrate(slow_runs))["calibrations"]
    words = ("plan", *SMALL, *WORK, *TUNED, "--prefer", "fastest", "--no-store", "-q", "-o", "json")
    plain, corrected = (
        ok(run_here(*words)),
        ok(run_here(*words, "--calibration", found["calibration_id"])),
    )
    assert corrected["step_time_s"] > plain["step_time_s"]
    assert corrected["lower_bound_s"] <= corrected["step_time_s"]
    assert (corrected["status"], corrected["gap"]) == ("optimal", 0)
    width = [answer["step_time_interval_s"][1] / answer["step_time_interval_s"][0] for answer in (plain, corrected)]
    assert width[1] < width[0]


def test_a_dry_run_stores_nothing_and_list_shows_what_is_stored(slow_runs: str) -> None:
    (dry,) = ok(calibrate(slow_runs, "--dry-run"))["calibrations"]
    assert dry["file"] is None
    assert ok(run_here("profile", "calibrate", "--list", "-o", "json")) == []
    (kept,) = ok(calibrate(slow_runs))["calibrations"]
    assert Path(kept["file"]).exists()
    (listed,) = ok(run_here("profile", "calibrate", "--list", "-o", "json"))
    assert listed["calibration_id"] == kept["calibration_id"] == dry["calibration_id"]
    assert "compute x 1.59" in run_here("profile", "calibrate", "--list").stdout
    ok(calibrate(slow_runs))
    assert len(ok(run_here("profile", "calibrate", "--list", "-o", "json"))) == 1


def test_another_device_is_refused(slow_runs: str, tmp_path: Path) -> None:
    out = str(tmp_path / "slow.json")
    ok(calibrate(slow_runs, "--out", out))
    ran = run_here(
        "estimate", "--model", "llama-3.1-8b", "--cluster", "dgx-a100-80g", "-n", "8", *WORK, *STRATEGY,
        *TUNED, "--calibration", out,
    )  # fmt: skip
    assert ran.exit_code == 4
    assert "h100-sxm5-80gb" in ran.error()["what"]


def test_a_factor_out_of_range_in_a_file_is_refused(slow_runs: str, tmp_path: Path) -> None:
    out = tmp_path / "slow.json"
    ok(calibrate(slow_runs, "--out", str(out)))
    data = json.loads(out.read_text())
    data["factors"]["communication"] = 100
    out.write_text(json.dumps(data))
    ran = run_here("estimate", *SMALL, *WORK, *STRATEGY, *TUNED, "--calibration", str(out))
    assert ran.exit_code == 2
    assert "communication" in ran.stderr


@pytest.mark.parametrize("name", ["torchtitan", "nanotron"])
def test_a_calibration_belongs_to_the_physics_whose_predictions_it_corrects(
    slow_runs: str, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "c.json"
    ok(calibrate(slow_runs, "--out", str(out)))
    ran = run_here("estimate", *SMALL, *WORK, *STRATEGY, "--calibration", str(out), "--backend", name)
    assert ran.exit_code == 4
    assert "physics tuned" in ran.stderr
    assert "add --backend megatron,megatron-bridge" in ran.stderr


def test_an_old_calibration_corrects_megatron_and_any_is_narrowed_to_what_it_corrects() -> None:
    plain = estimated("--backend", "megatron")
    for words in (("--backend", "megatron"), ()):
        corrected = estimated(*words, "--calibration", str(OLD))
        assert corrected["backend"] == "megatron"
        assert corrected["breakdown_s"]["compute"] == pytest.approx(1.597 * plain["breakdown_s"]["compute"])


def test_an_unknown_calibration_is_not_found() -> None:
    assert run_here("estimate", *SMALL, *WORK, *STRATEGY, *TUNED, "--calibration", "abc").exit_code == 3
    assert run_here("estimate", *SMALL, *WORK, *STRATEGY, *TUNED, "--calibration", "no/such.json").exit_code == 3


def test_a_megatron_log_calibrates_with_model_and_cluster(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(megatron_log())
    assert run_here("profile", "import", str(log), "-o", "json").exit_code == 0
    words = ("--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--software-version", "core 0.12.0")
    answer = ok(calibrate(*words))
    (found,) = answer["calibrations"]
    assert (found["framework"], found["framework_version"]) == ("megatron-lm", "core 0.12.0")
    assert found["device"] == "h100-sxm5-80gb"
    assert found["time"]["n"] == 1
    assert found["time"]["after_leave_one_out"] is None
    assert set(found["factors"]) == {"compute"}
    assert found["sources"][0]["rows"] == 1
    assert len(found["sources"][0]["sha256"]) == 64
    table = run_here("profile", "calibrate", *words, "-q", "--dry-run")
    assert "unknown" in table.stdout


def test_a_log_that_cannot_be_mapped_is_named_with_the_reason(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(megatron_log({"num_layers": 40}))
    run_here("profile", "import", str(log), "-o", "json")
    ran = calibrate("--model", "llama-3.1-8b", "--cluster", "dgx-h100")
    assert ran.exit_code == 2
    assert "40 layers" in ran.error()["what"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), 2),
        (("--model", "llama-3.1-8b"), 2),
        (("--cluster", "dgx-h100"), 2),
        (("--model", "llama-3.1-8b", "--cluster", "dgx-h100"), 3),
        (("no-such.csv",), 3),
    ],
)
def test_what_cannot_be_calibrated_is_refused(words: tuple[str, ...], code: int) -> None:
    assert calibrate(*words).exit_code == code


@pytest.mark.parametrize("name", ["megatron", "torchtitan==0.2.2"])
def test_runs_of_a_back_end_are_predicted_as_its_and_correct_it(slow_runs: str, name: str) -> None:
    """The rows name no software; the one that the user names is believed."""
    (found,) = ok(calibrate(slow_runs, "--backend", name))["calibrations"]
    assert found["framework"] == name
    assert name.partition("==")[0] in found["backends"]
    again = ("--calibration", found["calibration_id"], "--backend", name)
    how = ("--strategy", "zero_stage=2")
    plain = estimated("--backend", name, *how)
    corrected = estimated(*again, *how)
    factor = found["factors"]["compute"]["value"]
    assert corrected["breakdown_s"]["compute"] == pytest.approx(factor * plain["breakdown_s"]["compute"], rel=1e-9)


def test_runs_that_name_another_back_end_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "mixed.csv"
    text = csv_text({}, {"source": "https://example.org/nanotron"}, {"source": "https://example.org/vTrain"})
    header, mine, *others = text.splitlines()
    lines = [f"{header},framework", f"{mine},", *(f"{other}," for other in others)]
    lines.append(f"{mine.replace('run-0', 'run-3')},nanotron")
    path.write_text("\n".join(lines) + "\n")
    (found,) = ok(calibrate(str(path), "--backend", "nanotron", "--dry-run"))["calibrations"]
    assert (found["traits"], found["time"]["n"]) == ("nanotron", 3)
    (found,) = ok(calibrate(str(path), "--backend", "megatron", "--dry-run"))["calibrations"]
    assert (found["framework"], found["traits"], found["time"]["n"]) == ("megatron", "megatron-core", 1)


@pytest.mark.parametrize(
    ("text", "code", "what"),
    [
        ("any", 2, "belongs to one back-end"),
        ("megatron,nanotron", 2, "belongs to one back-end"),
        ("titan", 3, "no back-end is called"),
    ],
)
def test_a_calibration_is_of_one_known_back_end(slow_runs: str, text: str, code: int, what: str) -> None:
    ran = calibrate(slow_runs, "--backend", text)
    assert ran.exit_code == code
    assert what in ran.error()["what"]


def test_out_needs_one_calibration(slow_runs: str, tmp_path: Path) -> None:
    assert calibrate(slow_runs, "--device", "nothing-like-it").exit_code == 2
    perfect = tmp_path / "perfect.csv"
    perfect.write_text(csv_text({"step_time_s": "", "peak_mem_gib": ""}))
    assert calibrate(str(perfect)).exit_code == 2
    rows = Path(slow_runs).read_text().splitlines()
    other = [line.replace("H100-SXM-80GB", "A100-SXM-80GB").replace("run-", "other-") for line in rows[1:]]
    both = tmp_path / "both.csv"
    both.write_text("\n".join([*rows, *other]) + "\n")
    ran = calibrate(str(both), "--out", str(tmp_path / "out.json"))
    assert ran.exit_code == 2
    assert "2 calibrations" in ran.error()["what"]
    assert not (tmp_path / "out.json").exists()
    ok(calibrate(str(both), "--device", "h100-sxm5-80gb", "--out", str(tmp_path / "out.json")))
