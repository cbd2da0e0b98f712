from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from planner.backends.asked import software_of
from planner.backends.emission.write import write_emission
from planner.backends.folders.directory import check_directory
from planner.backends.folders.emit import emit_plan
from planner.backends.registry import names_with_files
from planner.errors import DocumentInvalid, NotFound
from planner.strategy.strategy import Strategy
from tests.plan_factory import make_plan

STRATEGY = Strategy(tp=2, sp=True, pp=2, dp_shard=2, num_microbatches=4, recompute="full")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    plan = make_plan(STRATEGY, layers_per_chunk=(3, 5), recompute_layers_per_chunk=(3, 4), backend="megatron")
    named = plan.model_copy(update={"release": software_of(plan).release.version})
    return write_emission(emit_plan(named, "torchrun"), tmp_path / "out")


def rehash(out: Path, name: str) -> None:
    """Make the manifest agree with an edited file, as a careful forger would."""
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["files"][name]["sha256"] = hashlib.sha256((out / name).read_bytes()).hexdigest()
    (out / "manifest.json").write_text(json.dumps(manifest))


def edit(out: Path, name: str, old: str, new: str) -> None:
    text = (out / name).read_text()
    assert old in text
    (out / name).write_text(text.replace(old, new))


def test_what_was_emitted_is_right(out: Path) -> None:
    assert check_directory(out) == []


def test_results_of_a_run_are_not_a_finding(out: Path) -> None:
    (out / "job-1.log").write_text("step 1\n")
    assert check_directory(out) == []


def test_an_edited_flag_is_found_twice(out: Path) -> None:
    edit(out, "megatron.args", "--micro-batch-size 1", "--micro-batch-size 2")
    findings = check_directory(out)
    assert [finding.rule for finding in findings] == ["emission.edited"] + ["emission.read_back"] * 2
    assert "micro_batch_size=2" in findings[1].message


def test_a_forged_manifest_does_not_help(out: Path) -> None:
    edit(out, "megatron.args", "Et*3|t*5L", "Et*4|t*4L")
    rehash(out, "megatron.args")
    findings = check_directory(out)
    assert {finding.rule for finding in findings} == {"emission.read_back"}
    assert len(findings) == 2


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Et*3|t*5L", "Et*3|t*4L", "does not place all 8 layers"),
        ("Et*3|t*5L", "Et*3|t*99999999L", "repeats more than"),
        ("Et*3|t*5L", "Et*3|x*5L", "unknown signs"),
        ("--num-layers 8", "--num-layers eight", "takes a whole number"),
        ("--num-layers 8", "", "--num-layers is missing"),
        ("--bf16", "bf16", "is not a flag"),
        ("--bf16", "--bf16\n--bf16", "given twice"),
        ("--global-batch-size 8", "--global-batch-size 7", "not a multiple"),
        ("--recompute-granularity full", "--recompute-granularity half", "not a recompute granularity"),
        ("--tensor-model-parallel-size 2", "--tensor-model-parallel-size 0", "do not divide"),
    ],
)
def test_arguments_that_make_no_sense_are_one_finding(out: Path, old: str, new: str, words: str) -> None:
    edit(out, "megatron.args", old, new)
    rehash(out, "megatron.args")
    (finding,) = check_directory(out)
    assert finding.rule == "emission.read_back"
    assert words in finding.message


def test_a_missing_file_is_found(out: Path) -> None:
    (out / "launch.sh").unlink()
    rules = [finding.rule for finding in check_directory(out)]
    assert rules == ["emission.edited", "emission.read_back"]


def test_another_plan_is_found(out: Path) -> None:
    edit(out, "plan.json", '"zero_stage": 1', '"zero_stage": 2')
    rehash(out, "plan.json")
    rules = {finding.rule for finding in check_directory(out)}
    assert {"emission.plan", "emission.read_back"} == rules


def test_a_plan_that_breaks_a_rule_is_found(out: Path) -> None:
    edit(out, "plan.json", '"sequence_length": 4096', '"sequence_length": 4095')
    rehash(out, "plan.json")
    assert "megatron.U1" in {finding.rule for finding in check_directory(out)}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"strategy": {}}'])
def test_a_broken_plan_is_a_finding(out: Path, text: str) -> None:
    (out / "plan.json").write_text(text)
    assert [finding.rule for finding in check_directory(out)] == ["emission.edited", "emission.plan"]


@pytest.mark.parametrize("value", ["0", "-1", '"two"', "null"])
def test_an_impossible_degree_is_a_finding(out: Path, value: str) -> None:
    edit(out, "plan.json", '"tp": 2', f'"tp": {value}')
    rehash(out, "plan.json")
    (finding,) = check_directory(out)
    assert finding.rule == "emission.plan"
    assert "strategy/tp" in finding.message


def test_no_manifest_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match=r"no readable manifest\.json"):
        check_directory(tmp_path)


def test_an_unknown_back_end_is_an_error(out: Path) -> None:
    manifest = json.loads((out / "manifest.json").read_text())
    (out / "manifest.json").write_text(json.dumps({**manifest, "backend": "caffe"}))
    with pytest.raises(NotFound, match="caffe") as caught:
        check_directory(out)
    assert all(name in str(caught.value.hint) for name in names_with_files())


def test_a_manifest_of_the_future_is_an_error(out: Path) -> None:
    manifest = json.loads((out / "manifest.json").read_text())
    (out / "manifest.json").write_text(json.dumps({**manifest, "schema_version": 3}))
    with pytest.raises(DocumentInvalid, match="schema_version 3"):
        check_directory(out)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("backend", "megatron-bridge", "megatron-bridge 0.19.2"),
        ("release", "2.5", "megatron 2.5"),
        ("release", "0.18.0", "megatron 0.18.0"),
    ],
)
def test_a_manifest_of_another_back_end_or_release_than_the_plan_is_found(
    out: Path, key: str, value: str, said: str
) -> None:
    manifest = json.loads((out / "manifest.json").read_text())
    (out / "manifest.json").write_text(json.dumps({**manifest, key: value}))
    (found,) = (each for each in check_directory(out) if each.rule == "emission.backend")
    assert f"plan.json is a plan for megatron 0.19.2, manifest.json says that the files are for {said}" in found.message
    assert "emit the plan again" in found.message
    assert str(out / "manifest.json") in found.where


def test_a_plan_of_another_release_than_the_manifest_is_found(out: Path) -> None:
    edit(out, "plan.json", '"release": "0.19.2"', '"release": "2.5"')
    rehash(out, "plan.json")
    assert "emission.backend" in {each.rule for each in check_directory(out)}


def test_a_manifest_of_version_1_says_a_target_that_its_plan_need_not_name(out: Path) -> None:
    manifest = json.loads((out / "manifest.json").read_text())
    old = {**manifest, "schema_version": 1, "target": "megatron", "target_version": "0.18.0", "projections": []}
    del old["backend"], old["release"]
    (out / "manifest.json").write_text(json.dumps(old))
    assert check_directory(out) == []
