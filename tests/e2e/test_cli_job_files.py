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
MODEL = ("--model", "llama-3.1-8b", "--sequence-length", "2048")
EIGHT = ("--devices", "8")
CASES = (
    ("train.sh", MINDSPEED, "ascend-910b-8", (), "mindspeed", {"tp": 2, "dp": 4, "activation_offload": True}),
    ("train.toml", TITAN, "dgx-h100", EIGHT, "torchtitan", {"dp_shard": 8, "zero_stage": 3, "recompute": "selective"}),
    ("train.yml", MAXTEXT, "dgx-h100", EIGHT, "maxtext", {"dp_shard": 8, "zero_stage": 3, "recompute": "full"}),
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


def test_a_file_without_a_model_asks_for_one(tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text(DEEPSPEED, encoding="utf-8")
    ran = run_here("estimate", "--from", str(file), "--cluster", "dgx-h100", "-o", "json", "--quiet")
    assert "which model is trained" in ran.error()["what"]
