"""PEFT itself reads the adapters' file, finds every target, and makes as many parameters as the planner counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.backends.accelerate.validator import request
from planner.backends.checking.emitted import read_folder
from planner.backends.checking.worker import Worker
from planner.backends.emission.write import write_emission
from planner.evidence.runs.row_training import learned_parameters
from planner.question.problem import Workload
from planner.question.training import Training
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_cluster, make_model, make_plan
from tests.round_trip import as_spelled
from tests.validators import SharedWorkers

emit = emitter("accelerate")
pytestmark = pytest.mark.slow
KINDS: tuple[dict[str, Any], ...] = (
    {"kind": "lora", "rank": 8},
    {"kind": "qlora", "targets": "q,v"},
    {"kind": "lora", "dora": True, "targets": "q,gate,down"},
    {"kind": "lora", "ends": True},
)


@pytest.fixture(scope="module")
def accelerate(shared_workers: SharedWorkers) -> Worker:
    return shared_workers.worker("accelerate")


@pytest.mark.parametrize("said", KINDS, ids=str)
def test_peft_makes_the_parameters_that_the_plan_counts(
    said: dict[str, Any], tmp_path: Path, accelerate: Worker
) -> None:
    s = Strategy(dp_shard=4, zero_stage=3, num_microbatches=4)
    workload = Workload(
        global_batch_size=s.global_batch_size, sequence_length=4096, training=Training.model_validate(said)
    )
    cluster, model = make_cluster(s.world_size, devices_per_node=4), make_model(num_kv_heads=4)
    plan = as_spelled(make_plan(s, model, cluster, workload, backend="accelerate", release="1.15.0"), "accelerate")
    path = write_emission(emit(plan, "torchrun"), tmp_path / "out")
    verdict = accelerate.ask(request(read_folder(path)))
    assert verdict.accepted, verdict
    if "adapters" in verdict.facts:
        pytest.skip(f"install the validator again: {verdict.facts['adapters']}")
    assert verdict.facts["trained_parameters"] == sum(learned_parameters(model, workload.trained))
