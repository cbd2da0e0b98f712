from __future__ import annotations

import ast
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.backends.emission.emission import Emission
from planner.backends.emission.layout import layout_of
from planner.backends.emission.write import write_emission
from planner.backends.folders.directory import check_directory
from planner.backends.torchtitan.config_module import NAMES, read_module
from planner.backends.torchtitan.degrees import SCHEDULES, SPLIT_BACKWARD_SCHEDULES
from planner.backends.torchtitan.read import read_back
from planner.backends.torchtitan.toml_config import read_config, read_model
from planner.backends.torchtitan.version import VERSIONS
from planner.errors import BackEndRefused, DocumentInvalid
from planner.question.problem import Workload
from planner.strategy.schedules import GROUPED_SCHEDULES, LOOPED_SCHEDULES, V_SCHEDULES
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_model, make_moe_model, make_plan
from tests.torchtitan_cases import deepseek_like, qwen_like

emit = emitter("torchtitan")

PIPELINE = Strategy(tp=2, sp=True, pp=2, dp_shard=2, micro_batch_size=2, num_microbatches=4, overlap_grad_reduce=False)


def emitted(strategy: Strategy = PIPELINE, version: str = VERSIONS[0], **more: Any) -> Emission:
    plan = make_plan(strategy, backend="torchtitan", release=version, **more)
    return emit(plan, "torchrun", version)


def test_a_pipeline_is_written_with_uneven_stages_and_all_its_micro_batches() -> None:
    given = read_module(emitted(layers_per_chunk=[3, 5]).files["titan_plan.py"])
    parallelism, training = given["PARALLELISM"], given["TRAINING"]
    assert parallelism["module_fqns_per_model_part"] == [
        ["tok_embeddings", "layers.0", "layers.1", "layers.2"],
        ["layers.3", "layers.4", "layers.5", "layers.6", "layers.7", "norm", "lm_head"],
    ]
    assert parallelism["pipeline_parallel_schedule"] == "1F1B"
    assert parallelism["pipeline_parallel_microbatch_size"] == 2
    assert parallelism["fsdp_reshard_after_forward"] == "never"
    assert training == {
        "local_batch_size": 8,
        "global_batch_size": 16,
        "seq_len": 4096,
        "disable_cuda_graphs": True,
    }


def test_the_toml_release_names_the_same_plan_in_its_words() -> None:
    files = emitted(version="0.2.2", layers_per_chunk=[3, 5]).files
    given = read_config(files["titan.toml"])
    assert given["parallelism"]["module_fqns_per_model_part"][1][-1] == "output"
    assert "enable_sequence_parallel" not in given["parallelism"]
    assert "disable_cuda_graphs" not in given["training"]
    assert given["experimental"] == {"custom_import": "titan_model"}
    assert read_model(files["titan_model.py"])["n_layers"] == 8
    assert "--job.config_file titan.toml" in files["train.sh"]


@pytest.mark.parametrize(
    ("strategy", "replicate", "shard", "policy"),
    [
        (Strategy(dp_shard=8, zero_stage=0), 8, 1, "default"),
        (Strategy(dp_shard=8, zero_stage=2), 1, 8, "never"),
        (Strategy(dp_shard=8, zero_stage=3), 1, 8, "always"),
        (Strategy(dp_replicate=2, dp_shard=4, zero_stage=3), 2, 4, "always"),
    ],
)
def test_zero_stages_are_degrees_and_a_policy(strategy: Strategy, replicate: int, shard: int, policy: str) -> None:
    emission = emitted(strategy)
    values = read_module(emission.files["titan_plan.py"])["PARALLELISM"]
    assert values["data_parallel_replicate_degree"] == replicate
    assert values["data_parallel_shard_degree"] == shard
    assert values["fsdp_reshard_after_forward"] == policy


@pytest.mark.parametrize("schedule", sorted(set(SCHEDULES) - SPLIT_BACKWARD_SCHEDULES))
def test_every_schedule_comes_back(schedule: str) -> None:
    vpp = 2 if schedule in LOOPED_SCHEDULES | V_SCHEDULES else 1
    group = 2 if schedule in GROUPED_SCHEDULES else 0
    strategy = Strategy.from_dict(
        PIPELINE.to_dict() | {"schedule": schedule, "vpp": vpp, "microbatch_group_size": group}
    )
    for version in VERSIONS:
        emission = emitted(strategy, version)
        assert read_back(emission.files) == (strategy, layout_of(emission.plan))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("schedule", sorted(SPLIT_BACKWARD_SCHEDULES))
def test_a_schedule_that_splits_backward_passes_is_never_written(schedule: str, version: str) -> None:
    group = 2 if schedule in GROUPED_SCHEDULES else 0
    wanted = Strategy.from_dict(PIPELINE.to_dict() | {"schedule": schedule, "vpp": 2, "microbatch_group_size": group})
    with pytest.raises(BackEndRefused, match=r"torchtitan\.P6: .* compiled layers"):
        emitted(wanted, version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("schedule", sorted(SPLIT_BACKWARD_SCHEDULES))
def test_files_with_a_compiled_model_and_a_split_backward_pass_are_refused(schedule: str, version: str) -> None:
    files = emitted(replace(PIPELINE, schedule="interleaved", vpp=2, microbatch_group_size=2), version).files
    name = "titan_plan.py" if "titan_plan.py" in files else "titan.toml"
    edited = files[name].replace('"Interleaved1F1B"', f'"{SCHEDULES[schedule]}"')  # type: ignore[index]
    assert edited != files[name]
    with pytest.raises(DocumentInvalid, match=r"splits backward passes"):
        read_back({**files, name: edited})


def test_what_torchtitan_cannot_say_is_refused_rule_by_rule() -> None:
    wanted = replace(
        PIPELINE, schedule="zb_h1", zero_stage=3, optimizer_offload=True, cp=2, cp_kind="all_to_all", overlap_tp=True,
        sp=False,
    )  # fmt: skip
    with pytest.raises(BackEndRefused) as caught:
        emitted(wanted)
    for rule in ("P1", "Z1", "R3", "C2", "T4"):
        assert f"torchtitan.{rule}:" in caught.value.what


def test_the_old_release_has_no_tensor_parallelism_without_sequence_parallelism() -> None:
    plain = replace(PIPELINE, sp=False)
    assert emitted(plain).plan.chosen().sp is False
    with pytest.raises(BackEndRefused, match=r"torchtitan\.V7"):
        emitted(plain, "0.2.2")


def test_a_refusal_lists_every_rule() -> None:
    strategy = Strategy(tp=16, sp=True, dp_shard=2, num_microbatches=2, zero_stage=3)
    workload = Workload(global_batch_size=5, sequence_length=4096, precision="fp16")
    with pytest.raises(BackEndRefused) as caught:
        emit(make_plan(strategy, make_moe_model(), workload=workload), "torchrun")
    for rule in ("M3", "M7", "G1", "T1"):
        assert f"torchtitan.{rule}:" in caught.value.what


def test_the_module_is_python_that_assigns_literals_first() -> None:
    for model in (make_model(), qwen_like(), qwen_like(experts=8), deepseek_like()):
        text = emitted(Strategy(dp_shard=2, zero_stage=3), model=model).files["titan_plan.py"]
        tree = ast.parse(text)
        assigned = [each.targets[0].id for each in tree.body if isinstance(each, ast.Assign) and each.lineno < 60]  # type: ignore[attr-defined]
        assert tuple(assigned[: len(NAMES)]) == NAMES
        compile(text, "titan_plan.py", "exec")


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("titan_plan.py", '"tensor_parallel_degree": 2', '"tensor_parallel_degree": 4', "16"),
        ("titan_plan.py", '"tensor_parallel_degree": 2', '"tensor_parallel_degree": 0', "positive"),
        ("titan_plan.py", '"tensor_parallel_degree": 2', '"tensor_parallel_degree": True', "positive"),
        ("titan_plan.py", '"seq_len": 4096', '"seqlen": 4096', "training.seqlen"),
        ("titan_plan.py", "FAMILY = ", "FAMILY = str()  # ", "literals"),
        ("titan_plan.py", 'FAMILY = "llama3"', 'FAMILY = "llama4"', "llama4"),
        ("titan_plan.py", "COMPILE = {", "COMPILED = {", "COMPILED"),
        ("titan_plan.py", '"layers.4"', '"layers.5"', "next modules"),
        ("titan_plan.py", '"n_layers": 8', '"n_layers": 9', "8 of 9"),
        ("titan_plan.py", '"1F1B"', '"2F2B"', "no strategy"),
        ("titan_plan.py", '"1F1B"', '"ZBVZeroBubble"', "do not fit"),
        ("titan_plan.py", '"local_batch_size": 8', '"local_batch_size": 9', "do not fit"),
        ("titan_plan.py", '"disable_cuda_graphs": True', '"disable_cuda_graphs": False', "disable_cuda_graphs"),
        ("titan_plan.py", '"fsdp_reshard_after_forward": "never"', '"fsdp_reshard_after_forward": "default"', "always"),
        ("titan_plan.py", "import os", "import os, shutil", "edited"),
        ("titan_plan.py", "# Below this line", "# Under this line", "missing"),
        ("titan_plan.py", "{", "(", "literals"),
        ("train.sh", "titan_plan", "other_plan", "not the script"),
        ("launch.sh", "DEVICES_PER_NODE=8", "DEVICES_PER_NODE=4", "4 ranks"),
    ],
)
def test_an_edited_file_says_another_plan_or_none(name: str, old: str, new: str, message: str) -> None:
    files = dict(emitted().files)
    assert old in files[name]
    files[name] = files[name].replace(old, new, 1)
    with pytest.raises(DocumentInvalid, match=message):
        read_back(files)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("titan.toml", "tensor_parallel_degree = 2", "tensor_parallel_degree = 3", "12"),
        ("titan.toml", "[compile]", "[compiling]", r"\[compiling\]"),
        ("titan.toml", "seq_len", "sequence", "training.sequence"),
        ("titan.toml", "[training]", "[training", "not TOML"),
        ("titan.toml", "[activation_checkpoint]", "[job]", "job.mode"),
        ("titan_model.py", "import importlib", "import shutil", "edited"),
        ("titan_model.py", '"n_layers": 8', '"n_layers": 7', "8 of 7"),
        ("titan_model.py", 'FAMILY = "llama3"', "FAMILY = input()", "literals"),
    ],
)
def test_an_edited_toml_file_says_another_plan_or_none(name: str, old: str, new: str, message: str) -> None:
    files = dict(emitted(version="0.2.2").files)
    assert old in files[name]
    files[name] = files[name].replace(old, new, 1)
    with pytest.raises(DocumentInvalid, match=message):
        read_back(files)


def test_an_edited_folder_is_named_with_its_lines(tmp_path: Path) -> None:
    folder = write_emission(emitted(), tmp_path / "run")
    assert check_directory(folder) == []
    module = folder / "titan_plan.py"
    module.write_text(
        module.read_text(encoding="utf-8").replace('"micro', '"micro').replace('"seq_len": 4096', '"seq_len": 2048'),
        encoding="utf-8",
    )
    found = {finding.rule: finding.message for finding in check_directory(folder)}
    assert '"seq_len": 2048' in found["emission.edited"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_train_script_starts_the_trainer_in_its_folder(version: str, tmp_path: Path) -> None:
    folder = write_emission(emitted(version=version), tmp_path / "run")
    fake = tmp_path / "python"
    fake.write_text('#!/usr/bin/env bash\necho "$PWD|$PYTHONPATH|$*"\n', encoding="utf-8")
    fake.chmod(0o755)
    environment = {**os.environ, "PYTHON": str(fake), "TRAIN_ARGS": "--training.steps 7"}
    done = subprocess.run(
        ["bash", str(folder / "train.sh"), "more"], env=environment, capture_output=True, text=True, check=True
    )
    where, path, words = done.stdout.strip().split("|")
    assert (where, path.split(":")[0]) == (str(folder), str(folder))
    assert words.startswith("-u -m torchtitan.train --")
    assert words.endswith("--training.steps 7 more")


def started(folder: Path, torch: str) -> subprocess.CompletedProcess[str]:
    """``train.sh`` with an interpreter that says it has this torch, and trains nothing."""
    python = folder.parent / "python"
    python.write_text(f'#!/usr/bin/env bash\n[ "$1" = -c ] && {{ echo {torch}; exit; }}\necho trained\n', "utf-8")
    python.chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "PYTHON": str(python)}
    return subprocess.run(
        ["bash", str(folder / "train.sh")], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("torch", "runs"), [("2.13.0+cpu", False), ("2.9.1", False), ("2.14.0", True), ("2.15.0.dev20261101+cu130", True)]
)
def test_a_pipeline_starts_only_with_a_torch_that_takes_its_micro_batches(
    torch: str, runs: bool, tmp_path: Path
) -> None:
    done = started(write_emission(emitted(), tmp_path / "plan"), torch)
    assert (done.returncode == 0) is runs
    assert done.stdout == ("trained\n" if runs else "")
    told = f"train.sh: pipelines of torchtitan 0.3.0 need torch 2.14 or newer; this is {torch}\n"
    assert done.stderr == ("" if runs else told)


@pytest.mark.parametrize("version", VERSIONS)
def test_other_plans_do_not_ask_for_a_torch(version: str, tmp_path: Path) -> None:
    plain = Strategy(dp_shard=2, zero_stage=2, overlap_grad_reduce=True, overlap_param_gather=True)
    assert "2.14" not in emitted(plain, version).files["train.sh"]
    assert "2.14" not in emitted(version="0.2.2").files["train.sh"]
