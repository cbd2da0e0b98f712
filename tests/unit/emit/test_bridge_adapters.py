"""Adapters through Megatron-Bridge: the recipe, the rules, and what Bridge's own classes make of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.backends.checking.emitted import read_folder
from planner.backends.checking.worker import Worker
from planner.backends.emission.write import write_emission
from planner.backends.megatron_bridge.adapters import read_adapters, recipe_adapters
from planner.backends.megatron_bridge.read import read_back
from planner.backends.megatron_bridge.space import TABLE
from planner.backends.megatron_bridge.validator import request
from planner.backends.megatron_bridge.write import RECIPE_FILE
from planner.backends.rules.rule import rule_input
from planner.errors import DocumentInvalid
from planner.model.operators import embedding_operators, head_operators, layer_operators, mtp_operators
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan
from planner.predict.trained_operators import adapter_parameters
from planner.question.problem import Workload
from planner.question.training import Training
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.hybrid_models import hybrid
from tests.plan_factory import make_cluster, make_gpt, make_mla_model, make_model, make_moe_model, make_plan
from tests.round_trip import as_spelled
from tests.validators import SharedWorkers

emit = emitter("megatron-bridge")
BASE = Strategy(tp=2, sp=True, pp=2, dp_shard=2, num_microbatches=8, zero_stage=1)


def plan_of(said: dict[str, Any] | None, s: Strategy = BASE, model: ModelSpec | None = None) -> Plan:
    workload = Workload(
        global_batch_size=s.global_batch_size,
        sequence_length=4096,
        training=None if said is None else Training.model_validate(said),
    )
    cluster = make_cluster(s.world_size, devices_per_node=min(8, s.world_size))
    plan = make_plan(s, model or make_model(), cluster, workload, backend="megatron-bridge", release="0.6.2")
    return as_spelled(plan, "megatron-bridge")


def rules_of(said: dict[str, Any], s: Strategy = BASE, model: ModelSpec | None = None) -> set[str]:
    return {finding.rule.split(".")[1] for finding in TABLE.violations(rule_input(plan_of(said, s, model)))}


def recipe_of(said: dict[str, Any] | None, model: ModelSpec | None = None) -> str:
    return emit(plan_of(said, model=model), "torchrun").files[RECIPE_FILE]


def test_lora_is_one_adapter_for_each_matrix() -> None:
    recipe = recipe_of({"kind": "lora", "rank": 64, "targets": "q,k,v,down"})
    compile(recipe, RECIPE_FILE, "exec")
    assert "from megatron.bridge.peft.canonical_lora import CanonicalLoRA\n" in recipe
    assert recipe_adapters(recipe, "") == (
        "CanonicalLoRA",
        {"target_modules": ["linear_q", "linear_k", "linear_v", "linear_fc2"], "dim": 64, "alpha": 128, "dropout": 0.0},
    )
    assert 'CheckpointConfig(pretrained_checkpoint=os.environ.get("MODEL_PATH"))' in recipe
    assert "peft=ADAPTERS(**ADAPTER_FIELDS)" in recipe


def test_without_adapters_the_recipe_says_nothing_of_them() -> None:
    for said in (None, {"kind": "full"}):
        recipe = recipe_of(said)
        assert not [word for word in ("peft", "ADAPTER", "import os", "MODEL_PATH", "@") if word in recipe]
        assert read_adapters(recipe, "") is None


@pytest.mark.parametrize(
    "said",
    [{"kind": "lora"}, {"kind": "lora", "rank": 8, "targets": "o,gate,up"}, {"kind": "lora", "dora": True}],
    ids=str,
)
def test_what_learns_comes_back(said: dict[str, Any]) -> None:
    plan = plan_of(said)
    files = emit(plan, "torchrun").files
    assert Training.model_validate(read_adapters(files[RECIPE_FILE], "")) == plan.problem.workload.training
    assert read_back(files)[0] == plan.chosen()


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('"linear_proj"', '"linear_fc9"', "linear_fc9 is no matrix"),
        ("ADAPTERS = CanonicalLoRA", "ADAPTERS = VLMLoRA", "VLMLoRA"),
        ('"dim": 16', '"dim": 1.5', "not a rank"),
        ('"dim": 16', '"dim": len(HERE)', "no class with ADAPTER_FIELDS"),
    ],
)
def test_an_edited_recipe_is_refused(old: str, new: str, what: str) -> None:
    files = dict(emit(plan_of({"kind": "lora"}), "torchrun").files)
    assert old in files[RECIPE_FILE]
    files[RECIPE_FILE] = files[RECIPE_FILE].replace(old, new)
    with pytest.raises(DocumentInvalid, match=what):
        read_back(files)


PLAIN_MLP = make_gpt(1024, 16, 4096)
SELECTIVE = replace(BASE, recompute="selective", recompute_modules=("mlp",))
BROKEN: dict[str, tuple[dict[str, Any], Strategy, ModelSpec | None]] = {
    "K1": ({"kind": "qlora"}, BASE, None),
    "X4": ({"kind": "lora", "targets": "q,v"}, BASE, None),
    "X4 gate": ({"kind": "lora", "targets": "up,down", "dora": True}, BASE, None),
    "X5": ({"kind": "lora", "ends": True}, BASE, None),
    "X6": ({"kind": "lora", "targets": "up"}, BASE, PLAIN_MLP),
    "X7": ({"kind": "lora"}, BASE, hybrid("qwen3_next")),
    "X8": ({"kind": "lora", "rank": 3}, BASE, None),
    "X9": ({"kind": "lora"}, replace(BASE, pp=1, zero_stage=3), None),
    "X10": ({"kind": "lora", "targets": "gate,up,down"}, SELECTIVE, None),
    "X11": ({"kind": "lora", "targets": "gate,up,down"}, BASE, make_moe_model()),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_bridge_cannot_train_is_refused(name: str) -> None:
    said, s, model = BROKEN[name]
    assert name.split(maxsplit=1)[0] in rules_of(said, s, model)
    assert name.split(maxsplit=1)[0] not in rules_of({"kind": "full"}, s, model)


RUNS: dict[str, tuple[dict[str, Any], ModelSpec]] = {
    "lora": ({"kind": "lora"}, make_model()),
    "attention": ({"kind": "lora", "rank": 64, "targets": "q,k,v,o"}, make_model(tie_embeddings=True)),
    "experts": ({"kind": "lora"}, make_moe_model(shared=512, num_dense=2)),
    "latent": ({"kind": "lora"}, make_mla_model()),
    "latent, MTP": ({"kind": "lora", "targets": "q,k,v,o,down"}, make_mla_model(num_mtp_layers=1)),
    "plain MLP": ({"kind": "lora", "targets": "q,k,v,o,down"}, PLAIN_MLP),
    "dora, plain MLP": ({"kind": "lora", "targets": "o,up,down", "dora": True}, PLAIN_MLP),
    "dora, output alone": ({"kind": "lora", "targets": "o,down", "dora": True}, make_model()),
}


@pytest.mark.parametrize("name", RUNS)
def test_what_bridge_can_train_is_not_refused(name: str) -> None:
    said, model = RUNS[name]
    s = replace(BASE, pp=1) if model.num_layers == 1 else BASE
    assert not {rule for rule in rules_of(said, s, model) if rule[0] in "KX"}


@pytest.fixture(scope="module")
def bridge(shared_workers: SharedWorkers) -> Worker:
    worker = shared_workers.worker("megatron-bridge")
    worker.timeout_s = 400.0  # the first answer waits for Bridge's imports
    return worker


def learns(model: ModelSpec, said: dict[str, Any]) -> int:
    """What the plan counts."""
    training = Training.model_validate(said)
    parts = [(run.count, layer_operators(model, run.kind)) for run in model.layer_runs]
    parts += [(1, embedding_operators(model)), (1, head_operators(model))]
    if model.mtp is not None:
        parts.append((model.mtp.num_layers, (*mtp_operators(model), *layer_operators(model, model.mtp.kind))))
    return sum(count * adapter_parameters(operators, training) for count, operators in parts)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_bridges_own_classes_train_as_many_parameters(name: str, tmp_path: Path, bridge: Worker) -> None:
    said, model = RUNS[name]
    s = replace(BASE, pp=1) if model.num_layers == 1 else BASE
    path = write_emission(emit(plan_of(said, s, model), "torchrun"), tmp_path / "out")
    verdict = bridge.ask(request(read_folder(path)))
    assert verdict.accepted, verdict
    assert verdict.facts["trained_parameters"] == learns(model, said)


@pytest.mark.slow
def test_doras_shared_matrices_are_as_said(tmp_path: Path, bridge: Worker) -> None:
    said, model = {"kind": "lora", "dora": True}, make_model()
    path = write_emission(emit(plan_of(said), "torchrun"), tmp_path / "out")
    verdict = bridge.ask(request(read_folder(path)))
    shared = 3 * 16 * model.hidden_size * model.num_layers  # k and v beside q, up beside gate
    assert verdict.facts["trained_parameters"] == learns(model, said) - shared


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "stage"),
    [
        ('"dropout"', '"drop_out"', "fields"),
        ('"linear_q"', '"linear_qkv"', "fields"),
        ('"linear_proj"', '"linear_q_proj"', "adapters"),
        ("ADAPTERS = CanonicalLoRA", "ADAPTERS = Magic", "fields"),
    ],
)
def test_bridge_refuses_what_was_edited(old: str, new: str, stage: str, tmp_path: Path, bridge: Worker) -> None:
    path = write_emission(emit(plan_of({"kind": "lora"}), "torchrun"), tmp_path / "out")
    text = (path / RECIPE_FILE).read_text()
    assert old in text
    (path / RECIPE_FILE).write_text(text.replace(old, new))
    verdict = bridge.ask(request(read_folder(path)))
    assert (verdict.accepted, verdict.stage) == (False, stage), verdict
