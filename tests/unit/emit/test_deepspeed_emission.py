"""What is in the files, what is given up, and what is refused on the way back."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.backends.deepspeed.adapters import ADAPTER_FILE
from planner.backends.deepspeed.config import ds_config
from planner.backends.deepspeed.config_keys import config_findings
from planner.backends.deepspeed.model_config import model_config, why_not_buildable
from planner.backends.deepspeed.read import read_back
from planner.backends.deepspeed.write import TRAIN_SCRIPT, training_script
from planner.backends.emission.write import write_emission
from planner.backends.folders.directory import check_directory
from planner.errors import BackEndRefused, DocumentInvalid
from planner.model.builtin import builtin_model, builtin_models
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.question.training import Training
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_mla_model, make_model, make_moe_model, make_plan

emit = emitter("deepspeed")

PLAIN = Strategy(dp_shard=4, num_microbatches=4, overlap_grad_reduce=False, overlap_param_gather=False)
PIPELINE = replace(PLAIN, pp=2, dp_shard=2, recompute="full")


def uneven() -> Plan:
    return make_plan(PIPELINE, layers_per_chunk=(3, 5), recompute_layers_per_chunk=(1, 2))


def files_of(plan: Plan) -> dict[str, str]:
    return dict(emit(plan, "torchrun").files)


def edited(files: dict[str, str], name: str, change: Callable[[dict[str, Any]], object]) -> dict[str, str]:
    data = json.loads(files[name])
    change(data)
    return {**files, name: json.dumps(data)}


def test_the_batch_identity_and_the_stages_are_in_the_files() -> None:
    files = files_of(uneven())
    config, training = json.loads(files["ds_config.json"]), json.loads(files["training.json"])
    assert config["train_batch_size"] == 1 * 4 * 2
    assert (config["train_micro_batch_size_per_gpu"], config["gradient_accumulation_steps"]) == (1, 4)
    assert config["zero_optimization"]["stage"] == 1
    assert config["data_types"] == {"grad_accum_dtype": "fp32"}
    assert [
        (c["first_layer"], c["num_layers"], c["recomputed_layers"]) for s in training["stages"] for c in s["chunks"]
    ] == [
        (0, 3, 1),
        (3, 5, 2),
    ]
    assert list(training["mesh"]) == ["pipe", "data_replicate", "data_shard", "sequence", "tensor"]


def test_offload_precision_and_parallel_sections() -> None:
    offload = ds_config(make_plan(replace(PLAIN, optimizer_offload=True)))
    assert offload["zero_optimization"]["offload_optimizer"]["device"] == "cpu"
    assert "torch_adam" not in offload["optimizer"]["params"]
    workload = Workload(global_batch_size=16, sequence_length=4096, precision="fp16", gradient_dtype="bf16")
    half = ds_config(make_plan(PLAIN, workload=workload))
    assert half["fp16"]["enabled"]
    assert "bf16" not in half
    assert half["data_types"]["grad_accum_dtype"] == "fp16"
    assert ds_config(make_plan(replace(PLAIN, tp=4)))["tensor_parallel"]["autotp_size"] == 4
    experts = ds_config(make_plan(replace(PLAIN, ep=2), make_moe_model()))["expert_parallel"]
    assert (experts["enabled"], experts["autoep_size"], experts["preset_model"]) == (True, 2, "mixtral")
    split = ds_config(make_plan(replace(PLAIN, zero_stage=3, overlap_grad_reduce=True)))["zero_optimization"]
    assert (split["overlap_comm"], split["stage3_prefetch_bucket_size"]) == (True, 0)


def test_what_the_files_cannot_say_is_refused_with_every_reason() -> None:
    wanted = Strategy(
        pp=2, vpp=2, schedule="interleaved", microbatch_group_size=2, dp_replicate=2, dp_shard=2, zero_stage=2,
        num_microbatches=4, recompute="selective", recompute_modules=("mlp",), axis_order="tp-cp-ep-pp-dp",
    )  # fmt: skip
    with pytest.raises(BackEndRefused) as caught:
        emit(make_plan(wanted), "torchrun")
    for rule in ("P1", "P2", "E1", "P9", "P10", "P13", "P14", "P17"):
        assert f"deepspeed.{rule}:" in caught.value.what
    assert caught.value.hint is not None


def test_ring_activation_offload_and_axes_apart_are_refused() -> None:
    with pytest.raises(BackEndRefused, match=r"deepspeed\.P7.*Ulysses") as caught:
        emit(make_plan(replace(PLAIN, cp=2, cp_kind="ring", activation_offload=True)), "torchrun")
    assert "deepspeed.P11" in caught.value.what
    with pytest.raises(BackEndRefused, match=r"deepspeed\.P4.*tp=2") as caught:
        emit(make_plan(replace(PIPELINE, tp=2, cp=3, dp_shard=1)), "torchrun")
    assert "deepspeed.P3" in caught.value.what
    assert "deepspeed.E4" in caught.value.what


def test_launchers_start_the_planned_ranks() -> None:
    emission = emit(make_plan(replace(PIPELINE, dp_shard=8)), "slurm")
    assert "--nodes=2" in emission.files["job.sbatch"]
    assert "./train_deepspeed.py" in emission.files["launch.sh"]
    assert emission.launch_command == "sbatch job.sbatch"


def test_a_written_emission_checks_clean_until_it_is_edited(tmp_path: Path) -> None:
    path = write_emission(emit(uneven(), "torchrun"), tmp_path / "out")
    assert check_directory(path) == []
    training = path / "training.json"
    training.write_text(training.read_text().replace('"recomputed_layers": 1', '"recomputed_layers": 0'))
    assert {finding.rule for finding in check_directory(path)} == {"emission.edited", "emission.read_back"}


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("ds_config.json", lambda d: d.update(bogus=1), "#/bogus"),
        ("ds_config.json", lambda d: d.update(train_batch_size=9), "train_batch_size 9"),
        ("ds_config.json", lambda d: d["zero_optimization"].update(mics_shard_size=2), "mics_shard_size"),
        ("ds_config.json", lambda d: d["pipeline"].update(stages=4), "pipeline.stages"),
        ("ds_config.json", lambda d: d.update(tensor_parallel={"autotp_size": 2}), "autotp_size is 2"),
        ("training.json", lambda d: d["mesh"].update(data_shard=4), "train_batch_size 8 is not"),
        ("training.json", lambda d: d["mesh"].update(sequence=2), "the mesh has 8 ranks"),
        ("training.json", lambda d: d["mesh"].update(pipe=0), "#/mesh/pipe"),
        ("training.json", lambda d: d["stages"].pop(), "1 stages"),
        ("training.json", lambda d: d["stages"][1]["chunks"][0].update(first_layer=4), "do not join"),
        ("training.json", lambda d: d["stages"][0]["chunks"][0].update(recomputed_layers=9), "recomputes more"),
        ("training.json", lambda d: d.update(extra=1), "#/extra"),
    ],
)
def test_edited_files_are_refused(name: str, change: Callable[[dict[str, Any]], object], message: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        read_back(edited(files_of(uneven()), name, change))
    assert message in caught.value.what


@pytest.mark.parametrize("name", ["ds_config.json", "training.json", "launch.sh"])
@pytest.mark.parametrize("text", [None, "", "{", "[]", "[" * 50_000])
def test_missing_and_malformed_files_are_refused(name: str, text: str | None) -> None:
    files = files_of(uneven())
    if text is None:
        del files[name]
    else:
        files[name] = text
    with pytest.raises(DocumentInvalid) as caught:
        read_back(files)
    assert caught.value.where == name


def test_an_emitted_config_has_no_finding_and_all_findings_come_at_once() -> None:
    config = ds_config(uneven())
    assert config_findings(config, 2) == []
    config.update(bogus=1, elasticity={}, fp16={"enabled": True, "what": 1}, train_batch_size=0)
    config["zero_optimization"].update(stage=5, nope=1)
    found = config_findings(config, 2)
    assert {finding.rule.split(".")[1] for finding in found} == {"S1", "F1", "F3", "F4", "F5", "F7"}
    assert len(found) == 7


def test_models_that_a_class_cannot_build_are_named() -> None:
    assert why_not_buildable(make_model()) is None
    assert why_not_buildable(make_moe_model()) is None
    assert "layers differ" in (why_not_buildable(make_mla_model()) or "")
    assert "no transformers class" in (why_not_buildable(make_model().model_copy(update={"family": "x"})) or "")


@pytest.mark.parametrize("name", builtin_models())
def test_a_built_in_model_is_either_buildable_or_refused_for_its_family(name: str) -> None:
    model = builtin_model(name)
    reason = why_not_buildable(model)
    if reason is not None:
        assert "no transformers class" in reason, reason
    else:
        config = model_config(model)
        assert config.get("model_type", config.get("_class_name")) in {model.family, "deepseek_v3"}


def test_the_script_is_clean_python() -> None:
    text = training_script()
    ast.parse(text)
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--line-length=120", "--select=E,F,W,B,UP", "-"]
    lint = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert lint.returncode == 0, lint.stdout
    assert "YOUR data" in text


def test_adapters_are_in_pefts_own_file_and_come_back() -> None:
    training = Training.model_validate({"kind": "lora", "rank": 8, "targets": "q,v"})
    s = PLAIN
    workload = Workload(global_batch_size=s.global_batch_size, sequence_length=4096, training=training)
    files = dict(emit(make_plan(s, workload=workload), "torchrun").files)
    plain = emit(make_plan(s, workload=workload.model_copy(update={"training": None})), "torchrun").files
    compile(files[TRAIN_SCRIPT], TRAIN_SCRIPT, "exec")
    assert "peft" in files[TRAIN_SCRIPT]
    assert "peft" not in plain[TRAIN_SCRIPT]
    assert "training" not in json.loads(plain["training.json"])
    assert json.loads(files[ADAPTER_FILE])["target_modules"] == ["q_proj", "v_proj"]
    assert read_back(files)[0] == s
    with pytest.raises(DocumentInvalid, match="not as"):
        read_back(files | {ADAPTER_FILE: files[ADAPTER_FILE].replace('"r": 8', '"r": 4')})
    with pytest.raises(DocumentInvalid, match="trains no adapters"):
        read_back({**plain, ADAPTER_FILE: files[ADAPTER_FILE]})
