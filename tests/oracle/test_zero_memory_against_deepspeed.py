"""What the planner counts for DeepSpeed's ZeRO is alive in DeepSpeed itself, run on a CPU.

One rank of 64 trains a stack of twelve matrices with almost no activations (``tests.deepspeed_memory_worker``), so that
all that is alive is weights, gradients, optimizer states, buckets and copies.
"""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.backends.deepspeed.physics import DEEPSPEED
from planner.predict.memory.states import state_bytes
from planner.predict.memory.zero_memory import working_copy_bytes, zero_states
from planner.question.problem import Workload
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Relief, Strategy
from tests.deepspeed_memory_worker import BUCKET_ELEMENTS, LAYERS, LIVE_ELEMENTS, RANKS, WIDTH
from tests.rank_launch import cpu_environment, launched
from tests.warm_python.interpreters import DEEPSPEED as DEEPSPEED_PYTHON
from tests.warm_python.interpreters import WarmPythons

if any(importlib.util.find_spec(name) is None for name in ("deepspeed", "torch")):
    pytest.skip("needs DeepSpeed", allow_module_level=True)

pytestmark = pytest.mark.slow

CASES: tuple[dict[str, Any], ...] = (
    {"stage": 0, "gradients": "bf16", "overlap": False},
    {"stage": 1, "gradients": "fp32", "overlap": False},
    {"stage": 1, "gradients": "bf16", "overlap": False},
    {"stage": 1, "gradients": "bf16", "overlap": True},
    {"stage": 2, "gradients": "fp32", "overlap": False},
    {"stage": 2, "gradients": "fp32", "overlap": True},
    {"stage": 2, "gradients": "bf16", "overlap": True},
    {"stage": 3, "gradients": "fp32", "overlap": True},
    {"stage": 3, "gradients": "bf16", "overlap": False},
)
TRAITS = replace(DEEPSPEED, reduce_bucket_elements=float(BUCKET_ELEMENTS), live_elements=float(LIVE_ELEMENTS))


def counted(case: dict[str, Any]) -> float:
    """Bytes a parameter at the fullest moment, by the planner."""
    strategy = Strategy(
        dp_shard=RANKS,
        zero_stage=case["stage"],
        overlap_grad_reduce=case["overlap"],
        overlap_param_gather=case["overlap"],
    )
    workload = Workload(global_batch_size=RANKS, sequence_length=64, gradient_dtype=case["gradients"])
    rows = StrategyRows.of([strategy], (Relief(),))
    shards, none = np.array([float(RANKS)]), np.zeros(1)
    plain = state_bytes(workload, rows.zero, shards, rows.optimizer_offload, TRAITS)
    state = zero_states(TRAITS, plain, rows, workload, none)
    layer = np.array([float(WIDTH * WIDTH)])
    parameters = LAYERS * layer
    copies = working_copy_bytes(TRAITS, rows, workload, parameters, (layer, none, layer))
    return float((state.total + copies / parameters)[0])


@pytest.fixture(scope="module")
def alive(warm_pythons: WarmPythons) -> list[dict[str, float]]:
    """All cases in one process: importing DeepSpeed is what takes time."""
    worker = Path(__file__).parents[1] / "deepspeed_memory_worker.py"
    environment = cpu_environment(DS_ACCELERATOR="cpu")
    python = warm_pythons.python(DEEPSPEED_PYTHON, environment).executable
    done = launched([python, str(worker), *map(json.dumps, CASES)], environment, timeout_s=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: str(CASES[number]))
def test_as_many_bytes_are_alive(number: int, alive: list[dict[str, float]]) -> None:
    """Within 5 %; the rest are fp32 copies of single tensors."""
    assert counted(CASES[number]) == pytest.approx(max(alive[number].values()), rel=0.05)
