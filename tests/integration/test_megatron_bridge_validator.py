"""Bridge's real config classes take the overrides that we write, and refuse what was edited."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planner.backends.checking.emitted import read_folder
from planner.backends.checking.worker import Worker
from planner.backends.emission.write import write_emission
from planner.backends.megatron_bridge.overrides import OVERRIDES_FILE
from planner.backends.megatron_bridge.read import read_back
from planner.backends.megatron_bridge.validator import request
from planner.backends.megatron_bridge.write import RECIPE_FILE, fusions
from planner.errors import DocumentInvalid
from planner.model.spec import ModelSpec
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.hybrid_models import hybrid
from tests.plan_factory import make_cluster, make_mla_model, make_model, make_moe_model, make_plan
from tests.round_trip import plans_of_the_space, question
from tests.validators import SharedWorkers

emit = emitter("megatron-bridge")

pytestmark = pytest.mark.slow

BASE = Strategy(tp=2, sp=True, pp=2, dp_shard=2, num_microbatches=8)


@pytest.fixture(scope="module")
def bridge(shared_workers: SharedWorkers) -> Worker:
    worker = shared_workers.worker("megatron-bridge")
    worker.timeout_s = 400.0  # the first answer waits for Bridge's imports
    return worker


def folder(path: Path, s: Strategy, model: ModelSpec | None = None, layers: tuple[int, ...] | None = None) -> Path:
    plan = make_plan(
        s,
        model or make_model(),
        make_cluster(s.world_size, devices_per_node=min(8, s.world_size)),
        workload=Workload(global_batch_size=s.global_batch_size, sequence_length=4096),
        layers_per_chunk=layers,
    )
    return write_emission(emit(plan, "torchrun"), path)


CASES: dict[str, tuple[Strategy, ModelSpec | None, tuple[int, ...] | None]] = {
    "dense": (BASE, None, None),
    "uneven": (BASE, None, (3, 5)),
    "interleaved": (replace(BASE, vpp=2, schedule="interleaved", microbatch_group_size=2), None, None),
    "ZeRO-3": (replace(BASE, pp=1, tp=1, sp=False, zero_stage=3), None, None),
    "cp": (replace(BASE, cp=2, cp_kind="ring"), None, None),
    "experts": (replace(BASE, ep=4), make_moe_model(), None),
    "latent": (replace(BASE, pp=1, ep=2), make_mla_model(), None),
    "selective": (replace(BASE, recompute="selective", recompute_modules=("attention_core",)), None, None),
    "gated DeltaNet, MTP": (BASE, hybrid("qwen3_next"), (3, 5)),
    "pattern": (BASE, hybrid("nemotron_h").model_copy(update={"mtp": None}), (3, 5)),
    "indexed": (replace(BASE, ep=2), hybrid("deepseek_v32"), (1, 3)),
    "optimizer offload": (replace(BASE, optimizer_offload=True), None, None),
}


@pytest.mark.parametrize("name", CASES)
def test_what_we_emit_is_accepted_and_understood(name: str, tmp_path: Path, bridge: Worker) -> None:
    s, model, layers = CASES[name]
    path = folder(tmp_path / "out", s, model, layers)
    verdict = bridge.ask(request(read_folder(path)))
    assert verdict.accepted, verdict
    emitted = read_back(read_folder(path).files)[0]
    facts = verdict.facts
    assert (facts["tp"], facts["pp"], facts["vpp"]) == (emitted.tp, emitted.pp, emitted.vpp)
    assert facts["data_parallel_size"] == emitted.dp
    assert facts["distributed_optimizer"] == (emitted.zero_stage >= 1)
    assert facts["fusions"] == fusions(read_folder(path).plan())


@pytest.mark.parametrize(
    ("model", "cluster", "devices"), [("llama-3.1-8b", "dgx-h100", 24), ("qwen3-30b-a3b", "dgx-b200", 16)]
)
def test_plans_of_the_space_are_accepted(
    model: str, cluster: str, devices: int, tmp_path: Path, bridge: Worker
) -> None:
    found = list(plans_of_the_space(question(model, cluster, devices), "megatron-bridge", seed=2, wanted=5))
    assert len(found) == 5
    for index, plan in enumerate(found):
        path = write_emission(emit(plan, "torchrun"), tmp_path / str(index))
        verdict = bridge.ask(request(read_folder(path)))
        assert verdict.accepted, (verdict, plan.chosen())


EDITS: dict[str, tuple[str, str, str]] = {
    "misspelt": ("model.context_parallel_size=1", "model.context_parallel_sizes=1", "fields"),
    "degrees": ("model.tensor_model_parallel_size=2", "model.tensor_model_parallel_size=3", "validate"),
    "pattern": ("model.hybrid_layer_pattern='MEM|*-MEM'", "model.hybrid_layer_pattern='MEM|*-ME'", "validate"),
    "delta": ("model.linear_num_value_heads=8", "model.linear_num_value_heads=7", "validate"),
    "heads": ("model.num_attention_heads=16", "model.num_attention_heads=15", "validate"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_folder_is_refused(name: str, tmp_path: Path, bridge: Worker) -> None:
    old, new, stage = EDITS[name]
    models = {"pattern": hybrid("nemotron_h"), "delta": hybrid("qwen3_next")}
    path = folder(tmp_path / "out", BASE, models.get(name), (3, 5) if name in models else None)
    text = (path / OVERRIDES_FILE).read_text()
    assert old in text
    (path / OVERRIDES_FILE).write_text(text.replace(old, new))
    verdict = bridge.ask(request(read_folder(path)))
    assert (verdict.accepted, verdict.stage) == (False, stage), verdict


def test_unknown_overrides_are_refused_by_reading_back(tmp_path: Path) -> None:
    path = folder(tmp_path / "out", BASE)
    (path / OVERRIDES_FILE).write_text((path / OVERRIDES_FILE).read_text() + "model.tp=2\n")
    with pytest.raises(DocumentInvalid, match=r"model\.tp is not a field"):
        read_back(read_folder(path).files)


FUSIONS: dict[str, tuple[str, str, str]] = {
    "misspelt": ("'apply_rope_fusion'", "'apply_rotary_fusion'", "has no field apply_rotary_fusion"),
    "no switch": ("'apply_rope_fusion': True", "'apply_rope_fusion': 'yes'", "apply_rope_fusion is a switch"),
    "another field": ("'apply_rope_fusion'", "'num_layers'", "num_layers is a switch"),
    "computed": ("FUSIONS = {", "FUSIONS = dict() or {", "FUSIONS is no mapping"),
}


@pytest.mark.parametrize("name", FUSIONS)
def test_fusions_that_the_provider_does_not_have_are_refused(name: str, tmp_path: Path, bridge: Worker) -> None:
    old, new, message = FUSIONS[name]
    path = folder(tmp_path / "out", BASE)
    text = (path / RECIPE_FILE).read_text()
    assert old in text
    (path / RECIPE_FILE).write_text(text.replace(old, new))
    verdict = bridge.ask(request(read_folder(path)))
    assert (verdict.accepted, verdict.stage) == (False, "fields"), verdict
    assert message in verdict.message
