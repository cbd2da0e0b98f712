"""Diffusion transformers: diffusers builds what is emitted, and small forms train on CPU ranks as on one process."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Any

import pytest

from planner.backends.accelerate.validator import request
from planner.backends.accelerate.version import ACCELERATE_VERSION
from planner.backends.checking.emitted import read_folder
from planner.backends.checking.worker import Worker
from planner.backends.deepspeed.denoiser_config import FED_CLASSES
from planner.backends.emission.write import write_emission
from planner.backends.folders.tiny_run import TinyOptions, tiny_run
from planner.model.diffusers_config import model_from_diffusers_config
from planner.model.parameters import total_parameters
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.strategy.strategy import RecomputePolicy, Strategy
from tests.emitter import emitter
from tests.plan_factory import make_cluster, make_plan
from tests.round_trip import as_spelled
from tests.validators import SharedWorkers

if any(find_spec(name) is None for name in ("diffusers", "torch")):
    pytest.skip("diffusers and torch are not installed", allow_module_level=True)

pytestmark = pytest.mark.slow

emit = emitter("accelerate")
SHARDED = Strategy(dp_shard=2, zero_stage=3, num_microbatches=2)
REPLICATED = replace(SHARDED, zero_stage=0)
WAYS: tuple[tuple[str, Strategy, RecomputePolicy], ...] = (
    ("WanTransformer3DModel", SHARDED, "full"),
    ("LTXVideoTransformer3DModel", replace(SHARDED, zero_stage=2), "none"),
    ("FluxTransformer2DModel", SHARDED, "full"),
    ("SD3Transformer2DModel", REPLICATED, "full"),
    (
        "QwenImageTransformer2DModel",
        replace(SHARDED, zero_stage=1, overlap_grad_reduce=False, overlap_param_gather=False),
        "none",
    ),
    ("QwenImageTransformer2DModel", REPLICATED, "full"),
)
"""One way of Accelerate for each class: FSDP2 with and without resharding, DDP, DeepSpeed.

And DDP where the last layer's weights for text get no gradient.
"""


def plan_of(kind: str, strategy: Strategy = SHARDED, recompute: RecomputePolicy = "none", **keys: Any) -> Plan:
    """A plan of the class's default model."""
    model = model_from_diffusers_config({"_class_name": kind, **keys}, "m", "config.json")
    plan = make_plan(
        replace(strategy, recompute=recompute),
        model,
        make_cluster(2, devices_per_node=2),
        workload=Workload(global_batch_size=strategy.global_batch_size, sequence_length=model.max_sequence_length),
        backend="accelerate",
        release=ACCELERATE_VERSION,
    )
    return as_spelled(plan, "accelerate")


@pytest.fixture(scope="module")
def accelerate(shared_workers: SharedWorkers) -> Worker:
    return shared_workers.worker("accelerate")


@pytest.mark.parametrize("kind", FED_CLASSES)
def test_diffusers_builds_the_emitted_config(kind: str, tmp_path: Path, accelerate: Worker) -> None:
    plan = plan_of(kind)
    verdict = accelerate.ask(request(read_folder(write_emission(emit(plan, "torchrun"), tmp_path / "out"))))
    assert verdict.accepted, verdict
    assert verdict.facts["parameters"] == total_parameters(plan.problem.model)


@pytest.mark.parametrize(
    ("changes", "parameters", "said"),
    [
        ({"num_heads": 8}, None, "has no argument num_heads"),
        ({"_class_name": "WanTransformer4DModel"}, None, "no class of this name"),
        ({"ffn_dim": 64}, 14_288_491_584, "planned are 14,288,491,584"),
    ],
)
def test_diffusers_refuses_another_model(
    changes: dict[str, Any], parameters: int | None, said: str, tmp_path: Path, accelerate: Worker
) -> None:
    asked = request(read_folder(write_emission(emit(plan_of("WanTransformer3DModel"), "torchrun"), tmp_path / "out")))
    changed = {**asked, "model": json.dumps(json.loads(str(asked["model"])) | changes)}
    verdict = accelerate.ask(changed | ({"parameters": parameters} if parameters else {}))
    assert not verdict.accepted
    assert said in str(verdict)


@pytest.mark.parametrize(("kind", "strategy", "recompute"), WAYS)
def test_ranks_train_what_one_process_trains(kind: str, strategy: Strategy, recompute: RecomputePolicy) -> None:
    ran = tiny_run(plan_of(kind, strategy, recompute), TinyOptions(steps=3, max_ranks=2, timeout_s=900.0))
    assert ran.shrunk.plan.problem.model.family == kind
    losses = [step.loss for step in ran.steps]
    assert len(losses) == 3
    assert all(map(isfinite, losses))
    assert ran.parity
