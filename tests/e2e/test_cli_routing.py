"""``--routing`` as a user meets it: the load of the experts is in the question, in the time and in the assumptions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import run_here

ASK = (
    "--model", "mixtral-8x7b", "--cluster", "dgx-h100", "--global-batch-size", "64", "--sequence-length", "4096",
    "--profile", "none",
)  # fmt: skip
ONE = (
    "estimate",
    *ASK,
    "--devices",
    "16",
    "--strategy",
    "ep=8,dp=16,mbs=1",
    "--backend",
    "megatron",
    "--memory-margin",
    "0",
)
HISTOGRAM = (900, 100, 100, 100, 100, 100, 100, 100)


def step_s(*words: str) -> float:
    ran = run_here(*ONE, *words, "-o", "json", "-q")
    assert ran.exit_code in (0, 5), ran.stderr
    return float(ran.json()["step_time_s"])


def test_the_hotter_the_experts_the_longer_the_step(tmp_path: Path) -> None:
    counts = tmp_path / "counts.txt"
    counts.write_text(" ".join(map(str, HISTOGRAM)), encoding="utf-8")
    listed = tmp_path / "counts.json"
    listed.write_text(json.dumps(HISTOGRAM), encoding="utf-8")
    even, some, hot = step_s("--routing", "even"), step_s("--routing", "zipf:0.3"), step_s("--routing", str(counts))
    assert even < some < hot
    assert step_s("--routing", str(listed)) == hot
    assert step_s("--routing", "zipf:0") == even
    assert even < step_s() < hot


def test_the_question_says_it_and_the_even_case_stands_beside_it() -> None:
    ran = run_here(*ONE, "--routing", "zipf:0.5", "-o", "json", "-q", "--full")
    data = ran.json()
    assert data["problem"]["workload"]["routing"] == {"kind": "zipf", "exponent": 0.5}
    assert any("Zipf exponent of 0.5" in line for line in data["assumptions"])


def test_every_cell_of_a_sweep_has_it(tmp_path: Path) -> None:
    ask = ("sweep", *ASK, "--devices", "8,16", "--backend", "megatron", "--database", f"sqlite:///{tmp_path / 'p.db'}")
    even, hot = (run_here(*ask, "--routing", word, "-o", "json", "-q").json() for word in ("even", "zipf:1.5"))
    for cold_cell, hot_cell in zip(even["cells"], hot["cells"], strict=True):
        if cold_cell["outcome"] == hot_cell["outcome"] == "planned":
            assert cold_cell["step_time_s"] < hot_cell["step_time_s"]
    assert any(cell["outcome"] == "planned" for cell in even["cells"])


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("uneven", "no routing is called uneven"),
        ("zipf:much", "'much' is no number"),
        ("zipf:nan", "is no number"),
        ("zipf:9", "less than or equal to 4"),
        ("zipf:-1", "greater than or equal to 0"),
        ("{missing}", "cannot be read"),
        ("{words}", "is no number"),
        ("{empty}", "holds no number"),
        ("{object}", "is no number"),
        ("{nested}", "no list of numbers"),
        ("{three}", "3 experts"),
        ("{negative}", "not negative"),
    ],
)
def test_bad_input_gets_one_clear_error(word: str, said: str, tmp_path: Path) -> None:
    files = {
        "words": "a b c", "empty": "\n", "object": '{"a": 1}', "nested": "[[1], 2]", "three": "1 2 3",
        "negative": "-1 1 1 1 1 1 1 1",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    paths = {name: str(tmp_path / f"{name}.txt") for name in (*files, "missing")}
    ran = run_here(*ONE, "--routing", word.format(**paths))
    assert (ran.exit_code, ran.stdout) == (2, ""), ran.stderr
    assert said in ran.stderr
    assert ran.stderr.count("error[") == 1
    assert "routing" in ran.stderr


def test_a_histogram_of_other_experts_is_a_refusal_of_its_cells_alone(tmp_path: Path) -> None:
    counts = tmp_path / "counts.txt"
    counts.write_text(" ".join(map(str, HISTOGRAM)), encoding="utf-8")
    ask = ["sweep", *ASK, "--devices", "16", "--backend", "megatron", "--database", f"sqlite:///{tmp_path / 'p.db'}"]
    ask[ask.index("mixtral-8x7b")] = "mixtral-8x7b,qwen3-30b-a3b"
    data = run_here(*ask, "--routing", str(counts), "-o", "json", "-q").json()
    outcomes = {cell["model"]: cell["outcome"] for cell in data["cells"]}
    assert outcomes["mixtral-8x7b"] != "refused"
    assert outcomes["qwen3-30b-a3b"] == "refused"
