"""Whatever a person types or feeds, they get one clear error: what, where, how to repair; never a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.operations.plan_reference import full_document
from tests.command_line import run_here
from tests.plan_factory import make_plan

MEASURED = """\
# Collective test starting: all_reduce_perf
#  Rank  0 Group  0 Pid  1 on  a device  0 [0x1b] NVIDIA A100-SXM4-80GB
#  Rank  1 Group  0 Pid  1 on  a device  1 [0x1c] NVIDIA A100-SXM4-80GB
#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong
#  (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)
1048576 262144 float sum -1 20.00 52.43 52.43 0 20.00 52.43 52.43 0
"""
WORKLOAD = "schema_version: 1\nglobal_batch_size: 64\nsequence_length: 4096\n"


def plan(*more: str, model: str = "llama-3.1-8b", cluster: str = "dgx-h100", workload: str = "good.yaml") -> list[str]:
    return ["plan", "--model", model, "--cluster", cluster, "--workload", workload, "--no-store", *more]


FLAGS_ONLY = ["plan", "--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--no-store"]
BATCH, LENGTH = "--global-batch-size", "--sequence-length"

CASES: dict[str, tuple[list[str], int, str, str]] = {
    # name: words, exit code, part of what, part of where
    "no command": (["pln"], 2, "No such command 'pln'", "meshwright"),
    "no subcommand": (["plans", "lst"], 2, "No such command 'lst'", "meshwright plans"),
    "unknown flag": (plan("--devces", "8"), 2, "No such option: --devces", "--devces"),
    "no model": (["plan", "--cluster", "dgx-h100"], 2, "Missing option", "--model"),
    "unknown output": (plan("-o", "jsn"), 2, "'jsn' is not one of", "--output"),
    "words as devices": (plan("--devices", "many"), 2, "not a whole number", "--devices"),
    "extra words": (plan("and", "more"), 2, "unexpected extra argument", "meshwright plan"),
    "unknown model": (plan(model="lama-3.1-8b"), 3, "no model 'lama-3.1-8b'", "--model"),
    "unknown cluster": (plan(cluster="dgx-h10"), 3, "no cluster 'dgx-h10'", "--cluster"),
    "unknown device": (["devices", "show", "h100-sxm5-80g"], 3, "no device 'h100-sxm5-80g'", "devices show"),
    "zero devices": (plan("--devices", "0"), 2, "0 is out of range", "--devices"),
    "negative devices": (plan("--devices", "-8"), 2, "-8 is out of range", "--devices"),
    "half a node more": (plan("--devices", "12"), 2, "cannot have 12 devices", "--devices"),
    "absurd devices": (plan("--devices", str(10**30)), 2, "out of range", "--devices"),
    "no workload": (FLAGS_ONLY, 2, "workload is not described", BATCH),
    "half a workload": ([*FLAGS_ONLY, BATCH, "8"], 2, "workload is not described", LENGTH),
    "negative batch": ([*FLAGS_ONLY, BATCH, "-1", LENGTH, "4096"], 2, "-1 is out of range", BATCH),
    "zero length": ([*FLAGS_ONLY, BATCH, "8", LENGTH, "0"], 2, "0 is out of range", LENGTH),
    "unknown precision": (plan("--precision", "bf61"), 2, "not one of", "--precision"),
    "unknown pin": (plan("--pin", "foo=3"), 2, "unknown strategy field 'foo'", "--pin"),
    "mistyped pin": (plan("--pin", "zero_stge=1"), 2, "unknown strategy field 'zero_stge'", "--pin"),
    "pin without value": (plan("--pin", "tp"), 2, "not FIELD=VALUE", "--pin"),
    "negative pin": (plan("--pin", "tp=-8"), 2, "tp = -8 is out of range", "--pin"),
    "pin and forbid": (plan("--pin", "cp=2", "--forbid", "cp"), 2, "pinned to 2 and forbidden", "constraints"),
    "unknown forbid": (plan("--forbid", "tpp"), 2, "cannot forbid 'tpp'", "--forbid"),
    "NaN time limit": (plan("--time-limit", "nan"), 2, "not a positive number", "--time-limit"),
    "infinite price": (plan("--objective", "cost", "--price", "inf"), 2, "not a positive number", "--price"),
    "price without cost": (plan("--price", "2"), 2, "matters only to the cost objective", "--price"),
    "margin above one": (plan("--memory-margin", "1.5"), 2, "a part of the memory", "--memory-margin"),
    "NaN margin": (plan("--memory-margin", "nan"), 2, "a part of the memory", "--memory-margin"),
    "certain to fit": (plan("--fits", "1"), 2, "lies between 0 and 1", "--fits"),
    "NaN chance": (plan("--fits", "nan"), 2, "lies between 0 and 1", "--fits"),
    "negative top": (plan("--top", "-1"), 2, "-1 runners-up", "--top"),
    "negative seed": (plan("--seed", "-1"), 2, "-1 is no seed", "--seed"),
    "unknown back-end": (plan("--backend", "megatrn"), 3, "no back-end is called 'megatrn'", "--backend"),
    "unknown release": (plan("--backend", "megatron==1"), 3, "no release '1' here", "--backend"),
    "several unknown back-ends": (plan("--backend", "megatrn,jax"), 3, "'jax'", "--backend"),
    "back-end named twice": (plan("--backend", "torchtitan,torchtitan==0.2.2"), 2, "named twice", "--backend"),
    "any beside others": (plan("--backend", "any,native"), 2, "any stands alone", "--backend"),
    "no back-end": (plan("--backend", ""), 2, "a name is missing", "--backend"),
    "emit to an unknown one": (plan("--emit", "megatrn", "--out", "x"), 3, "called 'megatrn'", "--emit"),
    "emit without emitter": (plan("--emit", "nanotron", "--out", "x"), 3, "no files can be written", "--emit"),
    "emit the best of who writes nothing": (
        plan("--backend", "nemo", "--emit", "best", "--out", "x"),
        3,
        "no files can be written for NeMo",
        "--emit",
    ),
    "emit to nobody": (plan("--emit", "", "--out", "x"), 2, "a name is missing", "--emit"),
    "emit without folder": (plan("--emit", "megatron"), 2, "need a folder", "--out"),
    "folder without emit": (plan("--out", "x"), 2, "without launch files", "--out"),
    "an old flag": (plan("--target", "native"), 2, "--target is --backend now", "--target"),
    "missing workload": (plan(workload="god.yaml"), 3, "no such file", "god.yaml"),
    "folder as workload": (plan(workload="folder"), 2, "a folder, not a file", "folder"),
    "empty workload": (plan(workload="empty.yaml"), 2, "empty", "empty.yaml"),
    "binary workload": (plan(workload="binary.yaml"), 2, "not UTF-8", "binary.yaml"),
    "list as workload": (plan(workload="list.yaml"), 2, "mapping is expected", "list.yaml"),
    "unknown key": (plan(workload="typo.yaml"), 2, "unknown key 'sequence_lenght'", "typo.yaml"),
    "YAML alias": (plan(workload="alias.yaml"), 2, "not allowed", "alias.yaml:"),
    "YAML tag": (plan(workload="tag.yaml"), 2, "not allowed", "tag.yaml:"),
    "deep YAML": (plan(workload="deep.yaml"), 2, "nested deeper", "deep.yaml"),
    "broken YAML": (plan(workload="broken.yaml"), 2, "not valid YAML", "broken.yaml:"),
    "NaN workload": (plan(workload="nan.yaml"), 2, "not a finite number", "nan.yaml:"),
    "negative workload": (plan(workload="negative.yaml"), 2, "greater than 0", "#/global_batch_size"),
    "missing config": (plan(model="no/config.json"), 3, "no file no/config.json", "no/config.json"),
    "broken config": (plan(model="broken.json"), 2, "not valid JSON", "broken.json:"),
    "folder as model": (plan(model="./folder"), 3, "no config.json", "folder"),
    "unknown architecture": (plan(model="alien.json"), 2, "alien", "alien.json"),
    "empty script": (plan(model="empty.sh"), 2, "empty", "empty.sh"),
    "missing cluster": (plan(cluster="./no.yaml"), 3, "no file", "no.yaml"),
    "broken cluster": (plan(cluster="./list.yaml"), 2, "mapping", "list.yaml"),
    "missing profile": (plan("--profile", "no.json"), 3, "no such file", "no.json"),
    "broken profile": (plan("--profile", "broken.json"), 2, "no importer recognises this file", "broken.json"),
    "foreign profile": (plan("--profile", "alien.json"), 2, "no importer recognises this file", "alien.json"),
    "profile of another device": (plan("--profile", "measured.log"), 2, "the file measured a100", "measured.log"),
    "no target for devices": (plan("--objective", "devices"), 2, "fewest devices for which speed", "--objective"),
    "unknown plan": (["explain", "0123456789ab"], 3, "no plan '0123456789ab'", "0123456789ab"),
    "missing plan file": (["explain", "no/plan.json"], 3, "no such plan file", "no/plan.json"),
    "broken plan file": (["diff", "broken.json", "plan.json"], 2, "not valid JSON", "broken.json:"),
    "empty folder as plan": (["emit", "folder", "--backend", "megatron", "--out", "x"], 3, "no such file", "folder"),
    "emit a plan to nobody": (["emit", "plan.json", "--backend", "jax", "--out", "x"], 3, "'jax'", "--backend"),
    "emit a plan of no files": (["emit", "plan.json", "--out", "x"], 3, "no files can be written", "--backend"),
    "bad why-not": (["explain", "plan.json", "--why-not", "tpp=2"], 2, "unknown strategy field", "--why-not"),
    "bad changes": (["sensitivity", "plan.json", "--changes", "ten"], 2, "not a percentage", "--changes"),
    "impossible change": (["sensitivity", "plan.json", "--changes", "-100"], 2, "makes no input", "--changes"),
    "no change": (["sensitivity", "plan.json", "--changes", "0"], 2, "makes no input", "--changes"),
    "not an emission": (["check", "folder"], 2, "manifest.json", "folder"),
    "no strategy": (
        ["estimate", "--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--workload", "good.yaml"],
        2,
        "no strategy is given",
        "--strategy",
    ),
    "strategy does not divide": (
        ["estimate", *plan()[1:-1], "--strategy", "tp=3"],
        2,
        "does not divide the 8 devices",
        "--strategy",
    ),
    "bad layers": (
        ["estimate", *plan()[1:-1], "--strategy", "tp=2", "--layers", "a,b"],
        2,
        "not a list of layer counts",
        "--layers",
    ),
    "unwritable database": (["plans", "list", "--database", "/proc/no/plans.db"], 2, "", "/proc/no"),
    "unknown database": (["plans", "list", "--database", "mysql://host/db"], 2, "'mysql'", "--database"),
    "bad label": (["plans", "label", "0123456789ab", "two words"], 3, "no plan", "0123456789ab"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with good and bad files, and the place where commands run."""
    monkeypatch.chdir(tmp_path)
    texts = {
        "good.yaml": WORKLOAD,
        "empty.yaml": "",
        "empty.sh": "  \n",
        "list.yaml": "- 1\n- 2\n",
        "typo.yaml": WORKLOAD.replace("length", "lenght"),
        "alias.yaml": "a: &x 1\nb: *x\n",
        "tag.yaml": "a: !!python/object:os.system 1\n",
        "deep.yaml": "[" * 200 + "]" * 200,
        "broken.yaml": "a: [1\nb: }\n",
        "nan.yaml": "global_batch_size: .nan\n",
        "negative.yaml": WORKLOAD.replace("64", "-64"),
        "broken.json": '{"model_type": "llama",,}',
        "alien.json": '{"model_type": "alien", "architectures": ["AlienForCausalLM"]}',
        "measured.log": MEASURED,
        "plan.json": json.dumps(full_document(make_plan())),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x80")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", CASES)
def test_one_clear_error_and_nothing_written(name: str, folder: Path) -> None:
    words, code, what, where = CASES[name]
    before = sorted(path.name for path in folder.rglob("*"))
    ran = run_here(*words)
    assert sorted(path.name for path in folder.rglob("*")) == before
    assert ran.stdout == "", "an error leaves stdout to answers"
    lines = [line for line in ran.stderr.splitlines() if not line.startswith(("checked:", "filled in:"))]
    assert lines[0].startswith("error["), ran.stderr
    assert what in ran.stderr
    assert any(line.startswith("  --> ") and where in line for line in lines), ran.stderr
    assert any(line.startswith("  hint: ") and len(line) > 12 for line in lines), ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.exit_code == code


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", [name for name in CASES if "-o" not in CASES[name][0]])
def test_the_same_error_as_json(name: str) -> None:
    words, code, what, _ = CASES[name]
    error = run_here(*words, "-o", "json").error()
    assert set(error) >= {"slug", "what", "where", "hint", "exit_code"}
    assert error["exit_code"] == code
    assert what in error["what"]
    assert error["where"]
    assert error["hint"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["pln"], "'plan'"),
        (plan("--devces", "8"), "'--devices'"),
        (plan("--pin", "zero_stge=1"), "'zero_stage'"),
        (plan("--forbid", "recomput"), "'recompute'"),
        (plan(model="llama3.1-70b"), "'llama-3.1-70b'"),
        (plan(cluster="dgx_h10"), "'dgx-h100'"),
        (plan("--emit", "megatrn", "--out", "x"), "'megatron'"),
        (plan("--backend", "torchtitn"), "'torchtitan'"),
        (plan("-o", "jsn"), "'json'"),
        (plan(workload="typo.yaml"), "'sequence_length'"),
        (plan(workload="god.yaml"), "'good.yaml'"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_did_you_mean(words: list[str], hint: str) -> None:
    assert f"did you mean {hint}" in run_here(*words).stderr


@pytest.mark.parametrize("make", [lambda: RuntimeError("boom"), lambda: KeyError("x"), AssertionError])
def test_a_bug_is_one_line_and_exit_code_1(make: Callable[[], Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise make()

    monkeypatch.setattr("planner.operations.operation.Session.named", broken)
    ran = run_here("clusters", "list")
    assert ran.exit_code == 1
    assert ran.stderr.startswith("error[internal]: unexpected ")
    assert "Traceback" not in ran.stderr
    monkeypatch.setenv("MESHWRIGHT_DEBUG", "1")
    assert "Traceback" in run_here("clusters", "list").stderr
