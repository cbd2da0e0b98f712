"""``estimate --from`` reads the files of other back-ends than Megatron-LM, and asks the back-end that runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.command_line import run_here

MINDSPEED = """#!/bin/bash
export HCCL_CONNECT_TIMEOUT=1800
torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 8 \\
    --seq-length 2048 --max-position-embeddings 2048 --position-embedding-type rope --vocab-size 32000 --bf16 \\
    --swiglu \\
    --disable-bias-linear --micro-batch-size 1 --global-batch-size 64 --tensor-model-parallel-size 2 --swap-attention \\
    --normalization RMSNorm --untie-embeddings-and-output-weights
"""
TITAN = "[model]\nflavor = '8B'\n[training]\nlocal_batch_size = 1\nseq_len = 2048\n[compile]\nenable = true\n"
MAXTEXT = "base_config: base.yml\nmodel_name: llama3.1-8b\nper_device_batch_size: 1\nmax_target_length: 2048\n"
DEEPSPEED = '{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}}'
ACCELERATE = (
    "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\n"
    "fsdp_config:\n  fsdp_version: 2\n"
)
BRIDGE = (
    "from megatron.bridge.recipes.llama import llama3_8b_pretrain_config\n"
    "cfg = llama3_8b_pretrain_config()\ncfg.model.tensor_model_parallel_size = 2\ncfg.train.global_batch_size = 64\n"
)
BRIDGE_LAUNCH = (
    "torchrun --nproc_per_node=8 scripts/training/run_recipe.py --recipe llama3_8b_pretrain_config -pp 2 "
    "model.context_parallel_size=1 train.global_batch_size=32\n"
)
MODEL = ("--model", "llama-3.1-8b", "--sequence-length", "2048")
EIGHT = ("--devices", "8")
CASES = (
    ("train.sh", MINDSPEED, "ascend-910b-8", (), "mindspeed", {"tp": 2, "dp": 4, "activation_offload": True}),
    ("train.toml", TITAN, "dgx-h100", EIGHT, "torchtitan", {"dp_shard": 8, "zero_stage": 3, "recompute": "selective"}),
    ("train.yml", MAXTEXT, "dgx-h100", EIGHT, "maxtext", {"dp_shard": 8, "zero_stage": 3, "recompute": "full"}),
    ("recipe.py", BRIDGE, "dgx-h100", EIGHT, "megatron-bridge", {"tp": 2, "cp": 2, "dp": 2, "zero_stage": 1}),
    (
        "recipe.sh",
        BRIDGE_LAUNCH,
        "dgx-h100",
        (),
        "megatron-bridge",
        {"pp": 2, "cp": 1, "dp": 4, "overlap_grad_reduce": True},
    ),
    ("ds.json", DEEPSPEED, "dgx-h100", (*MODEL, *EIGHT), "deepspeed", {"dp": 8, "zero_stage": 3}),
    ("a.yaml", ACCELERATE, "dgx-h100", (*MODEL, "--global-batch-size", "8"), "accelerate", {"dp": 8, "zero_stage": 3}),
)


@pytest.mark.parametrize(("name", "text", "cluster", "more", "backend", "expected"), CASES, ids=[c[0] for c in CASES])
def test_an_estimate_of_a_job_file(
    tmp_path: Path,
    name: str,
    text: str,
    cluster: str,
    more: tuple[str, ...],
    backend: str,
    expected: dict[str, Any],
) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    ran = run_here("estimate", "--from", str(file), "--cluster", cluster, *more, "-o", "json")
    assert ran.exit_code in (0, 5), ran.stderr  # 5: it does not fit
    found = ran.json()
    assert found["backend"] == backend
    assert {key: found["strategy"].get(key) for key in expected} == expected
    assert found["script"]["arguments"]["unknown"] == []


def test_a_recipe_of_adapters_is_estimated_as_one(tmp_path: Path) -> None:
    peft = BRIDGE.replace("pretrain", "peft").replace("cfg.train", "cfg.peft.dim = 64\ncfg.train")
    files = {"peft.py": peft, "full.py": BRIDGE.replace("pretrain", "sft")}
    found = {}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        ran = run_here("estimate", "--from", str(tmp_path / name), "--cluster", "dgx-h100", *EIGHT, "-o", "json")
        found[name] = ran.json()
    training = found["peft.py"]["script"]["workload"]["training"]
    assert (training["kind"], training["rank"]) == ("lora", 64)
    held = {
        name: max(stage["peak_memory_bytes"]["optimizer"] for stage in plan["stages"]) for name, plan in found.items()
    }
    assert held["peft.py"] < 0.05 * held["full.py"]


def test_a_file_without_a_model_asks_for_one(tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text(DEEPSPEED, encoding="utf-8")
    ran = run_here("estimate", "--from", str(file), "--cluster", "dgx-h100", "-o", "json", "--quiet")
    assert "which model is trained" in ran.error()["what"]


def test_a_recipe_of_a_model_that_is_not_described_asks_for_one_that_stands_for_it(tmp_path: Path) -> None:
    file = tmp_path / "recipe.sh"
    file.write_text(BRIDGE_LAUNCH.replace("llama3_8b", "nemotron_3_nano"), encoding="utf-8")
    words = ("estimate", "--from", str(file), "--cluster", "dgx-h100", "-o", "json", "--quiet")
    error = run_here(*words).error()
    assert "Mamba layers" in error["what"]
    assert "--model" in error["hint"]


def test_a_model_beside_a_script_that_says_it_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "recipe.sh"
    file.write_text(BRIDGE_LAUNCH, encoding="utf-8")
    error = run_here("estimate", "--from", str(file), "--cluster", "dgx-h100", *MODEL, "-o", "json", "--quiet").error()
    assert error["what"] == "the script says the model"
