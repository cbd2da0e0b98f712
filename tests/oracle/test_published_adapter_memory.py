"""Memory of LoRA and QLoRA of large models, as plans under PyTorch FSDP have it, against what torchtune publishes.

torchtune README.md, "Memory and training speed" (pytorch/torchtune@0031bfb080): peak memory a GPU on 8 A100, sequences
packed to 2,048 tokens; what learns: recipes/configs/llama3_1/70B_lora.yaml, 405B_qlora.yaml.  torch's own peak leaves
the process itself out, which the prediction has.
"""

from __future__ import annotations

import pytest

from planner.model.builtin import builtin_model
from planner.predict.cost.hardware import FRAMEWORK_BYTES
from planner.question.problem import Constraints, Problem, Workload
from planner.question.training import Training
from planner.search.estimate import estimate
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster

TARGETS = ("q", "v", "o", "gate", "up", "down")


@pytest.mark.parametrize(
    ("model", "kind", "samples", "published_bytes"),
    [("llama-3.1-70b", "lora", 2, 27.6 * 2**30), ("llama-3.1-405b", "qlora", 1, 44.8e9)],
)
def test_published_peaks_are_predicted(model: str, kind: str, samples: int, published_bytes: float) -> None:
    training = Training.model_validate({"kind": kind, "rank": 16, "targets": TARGETS})
    problem = Problem(
        model=builtin_model(model),
        cluster=load_cluster("dgx-a100-80g", 8),
        workload=Workload(global_batch_size=8 * samples, sequence_length=2048, training=training),
        constraints=Constraints(backends=("pytorch-fsdp",)),
    )
    strategy = Strategy(dp_shard=8, micro_batch_size=samples, zero_stage=3, recompute="full")
    tensors = estimate(problem, strategy).peak_memory_bytes - FRAMEWORK_BYTES
    assert tensors == pytest.approx(published_bytes, rel=0.10)
