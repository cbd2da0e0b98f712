"""``meshwright accuracy`` as a script meets it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.accuracy_rows import SHARED, csv_text
from tests.command_line import run_here

GROUP_KEYS = {
    "n", "mape", "median_ape", "p90_ape", "bias", "kendall_tau", "regret", "interval_coverage", "oom", "memory",
    "baseline", "baseline_within_source", "unmapped",
}  # fmt: skip


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    path = tmp_path / "truth.csv"
    path.write_text(csv_text({"tp": "1"}, {"tp": "2"}, {"tp": "4"}, {"gbs": ""}), encoding="utf-8")
    return path


def test_json_answers_row_by_row_and_group_by_group(truth: Path) -> None:
    ran = run_here("accuracy", str(truth), "-o", "json", "-q")
    assert (ran.exit_code, ran.stderr) == (0, "")
    data = ran.json()
    assert [row["id"] for row in data["rows"]] == ["run-0", "run-1", "run-2"]
    for row in data["rows"]:
        low, high = row["interval"]
        assert low < row["predicted_step_time_s"] < high
        assert row["predicted_peak_memory_bytes"] > 10**9
        assert row["fits"] in (True, False)
        assert row["source"] == "github:someone/somewhere:table.md"
    assert [group["group"] for group in data["groups"]] == ["someone/somewhere", "all"]
    for group in data["groups"]:
        assert set(group) >= GROUP_KEYS
        assert (group["n"], group["unmapped"], group["num_groups"]) == (3, 1, 1)
        assert set(group["oom"]) >= {"tp", "fp", "tn", "fn"}
    assert data["unmapped"]["reasons"] == {"the global batch size is not stated": 1}


@pytest.mark.parametrize(("by", "name"), [("device", "H100-SXM-80GB"), ("model", "llama3.1-8b")])
def test_groups_by_device_and_model(truth: Path, by: str, name: str) -> None:
    data = run_here("accuracy", str(truth), "--by", by, "-o", "json", "-q").json()
    assert [group["group"] for group in data["groups"]] == [name, "all"]


def test_table_and_page_say_the_same(truth: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    ran = run_here("accuracy", str(truth), "--calibrate-fraction", "0.5", "--markdown", str(page))
    assert ran.exit_code == 0
    assert "the global batch size is not stated" in ran.stdout
    text = page.read_text(encoding="utf-8")
    assert "| the global batch size is not stated | 1 | someone/somewhere |" in text
    assert "Nothing was fitted on these rows" in text


def test_calibration_prints_both(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    path.write_text(csv_text(*({"gbs": str(32 * batch)} for batch in range(1, 9))), encoding="utf-8")
    data = run_here("accuracy", str(path), "--calibrate-fraction", "0.25", "-o", "json", "-q").json()
    (group, _) = data["calibration"]["groups"]
    assert (group["num_fitted"], group["calibrated"]["n"], group["uncalibrated"]["n"]) == (2, 6, 6)
    assert [row["held_out"] for row in data["rows"]].count(False) == 2


def test_groups_file_beside_the_truth_is_used(truth: Path) -> None:
    (truth.parent / "ranking_groups_dev.csv").write_text("id,ranking_group\nrun-0,a\nrun-1,b\nrun-2,c\n")
    data = run_here("accuracy", str(truth), "-o", "json", "-q").json()
    assert data["groups"][0]["num_groups"] == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        ("id,source\nx,y\n", "missing columns"),
        (csv_text({"gbs": "many"}), "gbs = 'many' is not a number"),
        ("\x00\x01\x02", "missing columns"),
    ],
)
def test_bad_files_give_one_clear_error(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content, encoding="utf-8")
    ran = run_here("accuracy", str(path), "-o", "json")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert message in ran.error()["what"]


@pytest.mark.parametrize("fraction", ["0", "1", "nan", "-0.1"])
def test_fraction_must_be_a_part(truth: Path, fraction: str) -> None:
    assert run_here("accuracy", str(truth), "--calibrate-fraction", fraction).exit_code == 2


def test_one_row_in_two_files_is_refused(truth: Path) -> None:
    other = truth.with_name("other.csv")
    other.write_text(truth.read_text(encoding="utf-8"), encoding="utf-8")
    ran = run_here("accuracy", str(truth), str(other), "-o", "json")
    assert ran.exit_code == 2
    assert "share row ids" in ran.error()["what"]


def test_missing_file_is_not_found(tmp_path: Path) -> None:
    assert run_here("accuracy", str(tmp_path / "none.csv")).exit_code == 3


@pytest.mark.slow
def test_all_published_runs_within_a_minute() -> None:
    files = [SHARED / "training_dev.csv", SHARED / "oom_dev.csv"]
    if not all(file.is_file() for file in files):
        pytest.skip(f"the measured runs are not in {SHARED}")
    start = time.process_time()
    data = run_here("accuracy", *map(str, files), "-o", "json", "-q").json()
    assert time.process_time() - start < 60
    assert len(data["rows"]) + data["unmapped"]["n"] == 3827 + 1477
    assert len(data["rows"]) > 4800
    everything = data["groups"][-1]
    assert everything["oom"]["tp"] + everything["oom"]["fn"] == 1475
