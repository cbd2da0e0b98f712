"""Megatron still makes an outer weight the output of its recomputed part, on which a part of rule megatron.P2 rests."""

from __future__ import annotations

import subprocess
import sys

import pytest

from planner.backends.checking.environment import overlay
from tests.rank_launch import REPOSITORY, cpu_environment
from tests.validators import worker_or_skip

pytest.importorskip("torch", reason="torch is not installed")
SCRIPT = """
import contextlib, sys
sys.path.insert(0, sys.argv[1])
from planner.backends.megatron.tiny_run_worker import feign_packages
feign_packages()
import torch
from megatron.core.tensor_parallel import random
random._get_all_rng_states = lambda: (None,)
weight, bias = torch.nn.Parameter(torch.ones(2, 2)), torch.nn.Parameter(torch.zeros(2))
given = torch.ones(1, 2, requires_grad=True)
# As core/transformer/mlp.py returns the bias of its last matrix beside its output.
random.CheckpointFunction.apply(lambda x: (x @ weight, bias), False, given)
print(bias.is_leaf, weight.is_leaf, type(bias.grad_fn).__name__)
"""


@pytest.mark.slow
def test_a_bias_that_is_returned_goes_back_into_the_checkpoint() -> None:
    with worker_or_skip("megatron-core") as worker:
        megatron = overlay(worker.validator, worker.version)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, str(megatron)],
        cwd=REPOSITORY,
        env=cpu_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    # Its backward pass asks the same checkpoint again, without end; the weight inside stays a leaf.
    assert done.stdout.splitlines()[-1] == "False True CheckpointFunctionBackward"
