"""A launch of MindSpeed whose empty layers fill DualPipeV's chunks up is estimated."""

from __future__ import annotations

from pathlib import Path

from tests.command_line import run_here

SCRIPT = """#!/bin/bash
export HCCL_CONNECT_TIMEOUT=1800
torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --num-layers 16 --hidden-size 1024 --num-attention-heads 8 \\
    --seq-length 2048 --max-position-embeddings 2048 --position-embedding-type rope --vocab-size 32000 --bf16 \\
    --swiglu --disable-bias-linear --normalization RMSNorm --untie-embeddings-and-output-weights \\
    --micro-batch-size 1 --global-batch-size 64 --pipeline-model-parallel-size 4 --schedules-method dualpipev \\
    --noop-layers 13,15
"""


def test_a_launch_with_empty_layers(tmp_path: Path) -> None:
    file = tmp_path / "train.sh"
    words = ("estimate", "--from", str(file), "--cluster", "ascend-910b-8", "-o", "json", "--quiet")
    file.write_text(SCRIPT, encoding="utf-8")
    found = run_here(*words).json()
    assert found["strategy"]["schedule"] == "dualpipev"
    assert found["script"]["model"]["num_layers"] == 14
    assert found["script"]["strategy"]["chunk_layers"] == "2,2,2,2,2,2,1,1"
    file.write_text(SCRIPT.replace("13,15", "12,13"), encoding="utf-8")
    assert "mindspeed.S1" in run_here(*words).error()["what"], "a chunk without any layer"
