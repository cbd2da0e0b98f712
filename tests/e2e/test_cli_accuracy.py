"""``meshwright accuracy`` as a script meets it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.accuracy_rows import SHARED, csv_text
from tests.command_line import run_here

GROUP_KEYS = {
    "n", "mape", "median_ape", "p90_ape", "bias", "kendall_tau", "regret", "interval_coverage", "oom", "memory",
    "baseline", "baseline_within_source", "unmapped", "plan_interval_coverage", "coverage_curve", "top3_regret",
    "good_picks", "median_kendall_tau",
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
    assert "![" not in text
    assert max(len(line) for line in ran.stdout.splitlines() if "  " in line) <= 120


def test_calibration_prints_both(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    path.write_text(csv_text(*({"gbs": str(32 * batch)} for batch in range(1, 9))), encoding="utf-8")
    data = run_here("accuracy", str(path), "--calibrate-fraction", "0.25", "-o", "json", "-q").json()
    (group, _) = data["calibration"]["groups"]
    assert (group["num_fitted"], group["calibrated"]["n"], group["uncalibrated"]["n"]) == (2, 6, 6)
    assert list(group["stages"]) == ["factors", "factors + residual model"]
    assert group["stages"]["factors + residual model"] == group["calibrated"]
    assert [row["held_out"] for row in data["rows"]].count(False) == 2
    for row in data["rows"]:
        assert row["calibrated_step_time_s"] > 0
        assert row["calibrated_peak_memory_bytes"] > 0


def test_rows_that_chose_constants_are_judged_apart(truth: Path, tmp_path: Path) -> None:
    own = tmp_path / "mine.txt"
    own.write_text("# mine\nrun-1\n", encoding="utf-8")
    data = run_here("accuracy", str(truth), "--fitted-rows", str(own), "-o", "json", "-q").json()
    assert [row["fitted"] for row in data["rows"]] == [False, True, False]
    assert (data["groups"][-1]["n"], data["fitted_groups"][-1]["n"]) == (2, 1)
    assert "Fitted on, judged on" in run_here("accuracy", str(truth), "--fitted-rows", str(own), "-q").stdout
    plain = run_here("accuracy", str(truth), "-o", "json", "-q").json()
    assert (plain["num_fitted"], plain["groups"][-1]["n"]) == (0, 3), "rows of an unknown file all judge"


@pytest.mark.parametrize(("content", "code"), [(None, 3), ("", 2), ("run-1\tnot a digest\n", 2)])
def test_a_list_of_fitted_rows_that_cannot_be_read(truth: Path, tmp_path: Path, content: str | None, code: int) -> None:
    own = tmp_path / "mine.txt"
    if content is not None:
        own.write_text(content, encoding="utf-8")
    ran = run_here("accuracy", str(truth), "--fitted-rows", str(own), "-o", "json")
    assert (ran.exit_code, ran.stdout) == (code, "")
    assert str(own) in ran.error()["where"]


def test_figures_page_and_html_are_written_together(truth: Path, tmp_path: Path) -> None:
    page, html, plots = tmp_path / "docs" / "page.md", tmp_path / "report.html", tmp_path / "docs" / "figures"
    asked = ("accuracy", str(truth), "--html", str(html), "--plot", str(plots), "--markdown", str(page))
    data = run_here(*asked, "-o", "json", "-q").json()
    names = [Path(each["file"]).name for each in data["figures"]]
    assert sorted(path.name for path in plots.iterdir()) == sorted(names)
    assert "step-time.svg" in names
    for name in names:
        assert f"](figures/{name})" in page.read_text(encoding="utf-8")
    assert html.read_text(encoding="utf-8").count("<svg ") == len(names)
    first = {path: path.read_bytes() for path in (page, html, *plots.iterdir())}
    assert run_here(*asked, "-o", "json", "-q").exit_code == 0
    assert {path: path.read_bytes() for path in first} == first


def test_figures_as_png(truth: Path, tmp_path: Path) -> None:
    assert run_here("accuracy", str(truth), "--plot", str(tmp_path / "p"), "--format", "png", "-q").exit_code == 0
    assert (tmp_path / "p" / "errors.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("flag", ["--html", "--plot"])
def test_without_matplotlib_one_error_says_what_to_install(
    truth: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name.startswith("matplotlib.")]:
        monkeypatch.delitem(sys.modules, name)
    ran = run_here("accuracy", str(truth), flag, str(tmp_path / "out"), "-o", "json")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert (ran.error()["where"], ran.error()["hint"]) == (flag, "pip install 'meshwright[plot]'")
    assert not (tmp_path / "out").exists()
    page = tmp_path / "page.md"
    assert run_here("accuracy", str(truth), "--markdown", str(page), "-q").exit_code == 0


@pytest.mark.parametrize("flag", ["--html", "--plot", "--markdown"])
def test_output_that_cannot_be_written_is_one_error(truth: Path, tmp_path: Path, flag: str) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way", encoding="utf-8")
    ran = run_here("accuracy", str(truth), flag, str(blocked / "below"), "-o", "json", "-q")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "cannot write the file" in ran.error()["what"]
    assert blocked.read_text(encoding="utf-8") == "in the way"


def test_groups_file_beside_the_truth_is_used(truth: Path) -> None:
    (truth.parent / "ranking_groups_dev.csv").write_text("id,ranking_group\nrun-0,a\nrun-1,b\nrun-2,c\n")
    data = run_here("accuracy", str(truth), "-o", "json", "-q").json()
    assert data["groups"][0]["num_groups"] == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        ("id,source\nx,y\n", "missing columns"),
        (csv_text().splitlines()[0] + "\n", "a header and no rows"),
        (csv_text({"gbs": "many"}), "gbs = 'many' is not a number"),
        (csv_text({"id": "same"}, {"id": "same"}), "id 'same' was used on line 2"),
        (csv_text({"notes": "x" * 200_000}), "not a CSV file"),
        ("\x00\x01\x02", "missing columns"),
    ],
)
def test_bad_files_give_one_clear_error(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content, encoding="utf-8")
    ran = run_here("accuracy", str(path), "-o", "json")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert message in ran.error()["what"]


def test_a_row_with_an_impossible_cell_is_counted_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    text = csv_text({}, {"step_time_s": "nan"}, {"gbs": "-4"}, {"step_time_s": "inf"}, {"device": ""})
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    data = run_here("accuracy", str(path), "-o", "json", "-q").json()
    assert [row["id"] for row in data["rows"]] == ["run-0"]
    assert data["unmapped"]["reasons"] == {
        "step_time_s = nan is out of range": 1,
        "gbs = -4 is out of range": 1,
        "step_time_s = inf is out of range": 1,
        "device is blank": 1,
    }
    assert [row["line"] for row in data["unmapped"]["rows"]] == [3, 4, 5, 6]
    by_device = run_here("accuracy", str(path), "--by", "device", "-o", "json", "-q").json()
    assert "not stated" in [group["group"] for group in by_device["groups"]]


def test_text_in_another_encoding_and_folders_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes(csv_text({"notes": "é"}).encode("latin-1"))
    for asked, message in ((path, "not UTF-8"), (tmp_path, "a folder")):
        ran = run_here("accuracy", str(asked), "-o", "json")
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert message in ran.error()["what"]


@pytest.mark.parametrize("fraction", ["0", "1", "nan", "-0.1", "inf", "2"])
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


@pytest.mark.budget(20)
@pytest.mark.slow
def test_all_published_runs() -> None:
    files = [SHARED / "training_dev.csv", SHARED / "oom_dev.csv"]
    if not all(file.is_file() for file in files):
        pytest.skip(f"the measured runs are not in {SHARED}")
    ran = run_here("accuracy", *map(str, files), "--calibrate-fraction", "0.1", "-o", "json", "-q")
    data = ran.json()
    assert len(data["rows"]) + data["unmapped"]["n"] == 3827 + 1477
    assert len(data["rows"]) > 4800
    judged, fitted = data["groups"][-1], data["fitted_groups"][-1]
    assert sum(group["oom"][name] for group in (judged, fitted) for name in ("tp", "fn")) == 1475
    assert judged["n"] > 1700
    assert fitted["n"] > 1500
    (after,) = (group for group in data["calibration"]["groups"] if group["group"] == "vTrain, one node")
    assert after["calibrated"]["median_ape"] < min(0.08, after["uncalibrated"]["median_ape"])
