"""``estimate``, ``plan`` and ``explain`` read the launch script that a person runs today."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Ran, run_here

MODEL = "--num-layers 8 --hidden-size 1024 --num-attention-heads 8 --seq-length 2048 --position-embedding-type rope"
TEXT = f"""#!/bin/bash
TP=${{TP:-1}}
PP=${{1:-2}}
if [ -n "$SAVE" ]; then EXTRA="--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"; fi
torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py {MODEL} --bf16 --swiglu --disable-bias-linear \\
    --micro-batch-size 1 --global-batch-size 64 --use-distributed-optimizer --lr 1e-4 --use-nccl-ub \\
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP \\
    --tokenizer-type HuggingFaceTokenizer --tokenizer-model $TOKENIZER $EXTRA
"""
CLUSTER = ("--cluster", "dgx-h100")
SIZED = ("--vocab-size", "32000")


@pytest.fixture
def script(tmp_path: Path) -> str:
    file = tmp_path / "train.sh"
    file.write_text(TEXT, encoding="utf-8")
    return str(file)


def answer(*words: str) -> Any:
    ran = run_here(*words, "-o", "json")
    assert ran.exit_code == 0, ran.stderr
    return ran.json()


def refused(*words: str) -> Any:
    ran = run_here(*words, "-o", "json", "--quiet")
    assert ran.stdout == ""
    return ran.error()


def test_an_estimate_holds_what_the_script_says_and_tells_what_it_read(script: str) -> None:
    found = answer("estimate", "--from", script, *CLUSTER, *SIZED)
    assert found["backend"] == "megatron"
    strategy = found["strategy"]
    assert (strategy["tp"], strategy["pp"], strategy["dp"], strategy["zero_stage"]) == (1, 2, 4, 1)
    assert (strategy["overlap_grad_reduce"], strategy["recompute"], strategy["vpp"]) == (False, "none", 1)
    read = found["script"]
    assert read["num_devices"] == 8
    assert read["model"]["vocabulary_from"] == "--vocab-size 32,000 as you say"
    assert read["arguments"]["not_modelled"] == ["--use-nccl-ub"]
    assert read["arguments"]["no_influence"] == ["--lr 1e-4"]
    assert {each["name"] for each in read["taken_as_unset"]} == {"TP", "$1", "SAVE"}


def test_the_environment_and_the_arguments_of_the_script(script: str) -> None:
    words = ("estimate", "--from", script, *CLUSTER, *SIZED, "--set", "TP=2", "--set", "SAVE=1", "-o", "json", "-q")
    behind, text = run_here(*words, "--", "4"), run_here(*words, "--script-args", "4")
    assert behind.json() == text.json()
    strategy = behind.json()["strategy"]
    assert (strategy["tp"], strategy["pp"], strategy["dp"], strategy["recompute"]) == (2, 4, 1, "full")
    assert behind.json()["script"]["taken_as_unset"] == []


def test_a_table_shows_the_fields_and_the_lists(script: str) -> None:
    ran = run_here("estimate", "--from", script, *CLUSTER, *SIZED)
    assert ran.exit_code == 0, ran.stderr
    before, plan = ran.stdout.split("\nPLAN ")
    assert "num_layers=8, hidden_size=1024" in before
    assert "tp=1, pp=2, micro_batch_size=1, zero_stage=1" in before
    assert "1 without influence on the plan, 1 not modelled" in before
    assert "not modelled" in before
    assert "--use-nccl-ub" in before
    assert "TP (line 2), SAVE (line 4); --set VAR=VALUE sets one" in before
    assert "$1 (line 3); -- ARGS or --script-args TEXT gives them" in before
    assert "an estimate: it fits" in plan


def test_a_vocabulary_that_nothing_tells_is_asked_for_by_a_flag_that_exists(script: str) -> None:
    error = refused("estimate", "--from", script, *CLUSTER)
    assert error["exit_code"] == 2
    assert "--vocab-size is missing" in error["what"]
    found = answer("estimate", "--from", script, *CLUSTER, "--set", "TOKENIZER=meta-llama/Llama-3.1-8B")
    assert found["script"]["model"]["vocab_size"] == 128256
    assert "Llama 3" in found["script"]["model"]["vocabulary_from"]


def test_a_better_plan_stands_beside_the_run(script: str, tmp_path: Path) -> None:
    words = ("--from", script, *CLUSTER, *SIZED, "--script-args", "4")
    ran = run_here("plan", *words, "--no-store", "-o", "json", "-q")
    found = ran.json()
    both = found["compared"]
    yours, ours = both["yours"], both["ours"]
    assert yours["step_time_s"] == answer("estimate", *words)["step_time_s"]
    assert ours["step_time_s"] == found["step_time_s"] < yours["step_time_s"]
    assert {"field": "pp", "a": 4, "b": found["strategy"]["pp"]} in both["strategy"]
    assert found["backend"] == "megatron"
    shown = run_here("plan", *words, "--no-store").stdout
    assert "Yours and ours" in shown
    assert "Read from" in shown


def test_emitted_files_read_back_as_the_plan(script: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("--from", script, *CLUSTER, *SIZED, "--emit", "megatron", "--out", str(out), "--pin", "pp=4,vpp=2")
    planned = answer("plan", *words, "--no-store", "-q")
    back = answer("estimate", "--from", str(out / "megatron.args"), *CLUSTER, "--devices", "8", *SIZED, "-q")
    assert back["strategy"] == planned["strategy"]
    assert back["step_time_s"] == pytest.approx(planned["step_time_s"], rel=1e-9)
    assert back["script"]["arguments"]["unknown"] == []


def test_why_not_my_run(script: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    words = ("--from", script, *CLUSTER, *SIZED, "--no-store", "--plan-out", str(file), "-q")
    planned = answer("plan", *words)
    found = answer("explain", str(file), "--why-not", script, "--script-args", "8")
    assert found["possible"]
    assert found["pins"]["pp"] == 8
    assert found["other"]["strategy"]["vpp"] == 1, "left out: Megatron-LM's default and not the best"
    assert found["other"]["strategy"]["overlap_param_gather"] is False
    assert found["slower_by"] > 0
    assert found["sentence"].startswith("Your run takes ")
    assert found["script"]["model"]["vocab_size"] == planned["script"]["model"]["vocab_size"], "that of the plan"
    table = run_here("explain", str(file), "--why-not", script)
    assert "Read from" in table.stdout
    assert "Time by term" in table.stdout


def test_a_run_that_does_not_divide_says_so_beside_the_plan(script: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    words = ("--from", script, *CLUSTER, *SIZED, "--script-args", "3", "--no-store")
    found = answer("plan", *words, "-q", "--plan-out", str(file))
    assert found["compared"]["yours"] is None
    assert "does not divide the 8 devices" in found["compared"]["reason"]
    why = answer("explain", str(file), "--why-not", script, "--script-args", "3")
    assert not why["possible"]
    assert "does not divide the 8 devices" in why["sentence"]


def test_a_script_of_another_model_is_refused(script: str, tmp_path: Path) -> None:
    file, other = tmp_path / "plan.json", tmp_path / "other.sh"
    other.write_text(TEXT.replace("--num-layers 8", "--num-layers 12"), encoding="utf-8")
    answer("plan", "--from", script, *CLUSTER, *SIZED, "--no-store", "--plan-out", str(file), "-q")
    error = refused("explain", str(file), "--why-not", str(other))
    assert (error["where"], error["exit_code"]) == ("--why-not", 2)
    assert "num_layers 12 and not 8" in error["what"]


def test_a_script_named_as_the_model_tells_its_open_places_too(script: str) -> None:
    ran = run_here("estimate", "--model", script, *CLUSTER, "-o", "json")
    assert ran.exit_code == 2, "no vocabulary"
    file = Path(script)
    file.write_text(TEXT.replace("$TOKENIZER", "openai/gpt2"), encoding="utf-8")
    ran = run_here("estimate", "--model", script, *CLUSTER, "-o", "json")
    assert "not modelled: --use-nccl-ub" in ran.stderr
    assert "taken as not set: TP (line 2), $1 (line 3), SAVE (line 4)" in ran.stderr
    assert "script" not in ran.json()


@pytest.mark.parametrize(
    ("words", "where", "what"),
    [
        (("--model", "llama-3.1-8b"), "--model", "the script says the model"),
        (("--set", "TPP=2"), "--set", "never names TPP"),
        (("--set", "TP"), "--set", "is not NAME=VALUE"),
        (("--set", "TP=1", "--set", "TP=2"), "--set", "given twice"),
        (("--script-args", "'4"), "--script-args", "quote is not closed"),
        (("--vocab-size", "0"), "--vocab-size", "out of range"),
    ],
)
def test_one_clear_error(script: str, words: tuple[str, ...], where: str, what: str) -> None:
    error = refused("estimate", "--from", script, *CLUSTER, *words)
    assert (error["where"], error["exit_code"]) == (where, 2)
    assert what in error["what"]


def test_flags_of_a_script_need_a_script() -> None:
    for words in (("--set", "A=1"), ("--script-args", "x"), ("--vocab-size", "5")):
        error = refused("estimate", "--model", "llama-3.1-8b", *CLUSTER, *words)
        assert error["where"] == words[0]
        assert "--from SCRIPT" in error["hint"]


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    assert refused("estimate", "--from", str(tmp_path / "no.sh"), *CLUSTER)["exit_code"] == 3


@pytest.mark.parametrize("words", [("--pareto",), ("--pool", "dgx-h100:8")])
def test_a_run_is_compared_with_one_plan(script: str, words: tuple[str, ...]) -> None:
    error = refused("plan", "--from", script, *CLUSTER, *SIZED, *words)
    assert error["where"] == words[0]


def test_the_example_of_the_manual() -> None:
    ran: Ran = run_here("estimate", "--from", "examples/megatron-script/train.sh", *CLUSTER, "-o", "json", "-q")
    assert ran.exit_code == 0, ran.stderr
    assert ran.json()["script"]["arguments"]["unknown"] == []


def test_a_variable_that_the_script_sets_itself_is_told_before_the_estimate_fails(tmp_path: Path) -> None:
    file = tmp_path / "fixed.sh"
    file.write_text(TEXT.replace("TP=${TP:-1}", "TP=16"), encoding="utf-8")
    words = ("estimate", "--from", str(file), *CLUSTER, *SIZED, "--set", "TP=2", "--set", "SAVE=1")
    ran = run_here(*words)
    told, *rest = ran.stderr.splitlines()
    assert ran.exit_code == 2
    assert told == "--set TP has no effect: the script sets TP itself"
    assert any("tp" in line for line in rest)
    assert "--set SAVE" not in ran.stderr
    assert "no effect" not in run_here(*words, "--quiet").stderr
