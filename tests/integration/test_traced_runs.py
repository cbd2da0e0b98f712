"""A traced model is emitted for Accelerate and trains on CPU ranks as on one process."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from math import isfinite
from pathlib import Path

import pytest

from planner.backends.accelerate.version import ACCELERATE_VERSION
from planner.backends.folders.tiny_run import TinyOptions, tiny_run
from planner.errors import DocumentInvalid
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.plan_factory import make_cluster, make_plan
from tests.round_trip import as_spelled
from tests.traced_models import make_traced_model

if any(find_spec(name) is None for name in ("torch", "transformers")):
    pytest.skip("torch and transformers are not installed", allow_module_level=True)

pytestmark = pytest.mark.slow
SHARDED = Strategy(dp_shard=2, zero_stage=3, num_microbatches=2)


def test_two_ranks_train_what_one_process_trains(tmp_path: Path) -> None:
    model, strategy = make_traced_model(), replace(SHARDED, recompute="full")
    workload = Workload(global_batch_size=strategy.global_batch_size, sequence_length=128)
    cluster = make_cluster(2, devices_per_node=2)
    plan = make_plan(strategy, model, cluster, workload, backend="accelerate", release=ACCELERATE_VERSION)
    ran = tiny_run(
        as_spelled(plan, "accelerate"), TinyOptions(steps=2, max_ranks=2, timeout_s=900, keep=tmp_path / "k")
    )
    assert len(ran.steps) == 2
    assert all(isfinite(step.loss) for step in ran.steps)
    assert ran.parity, ran.steps


def test_a_large_traced_model_has_no_small_form() -> None:
    held = {"name": "unmet", "op_class": "embedding", "parameters": 10**9}
    model = make_traced_model(entry=[held])
    plan = make_plan(SHARDED, model, make_cluster(2, devices_per_node=2), backend="accelerate", release="1.15.0")
    with pytest.raises(DocumentInvalid, match="no small form"):
        tiny_run(plan, TinyOptions(steps=1))
