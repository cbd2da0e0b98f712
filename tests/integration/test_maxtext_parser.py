"""MaxText's own parser takes what we emit, and refuses what our rules refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.environment import overlay
from planner.backends.checking.worker import Worker
from planner.backends.emission.emission import Emission
from planner.backends.emission.write import manifest
from planner.backends.maxtext.config_keys import KEYS_OF_A_PLAN, KEYS_OF_THE_USER
from planner.backends.maxtext.decoder_blocks import decoder_block, model_keys, rotary_keys
from planner.backends.maxtext.mesh_axes import KEYS
from planner.backends.maxtext.read import parse_config
from planner.backends.maxtext.validator import VALIDATOR, request
from planner.backends.maxtext.version import CONFIG_FILE, MAXTEXT_VERSION
from planner.backends.rules.training_recipe import routing, stretch
from planner.model.load import load_model
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.maxtext_plans import random_emissions
from tests.plan_factory import make_cluster, make_plan
from tests.validators import SharedWorkers

emit = emitter("maxtext")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def worker(shared_workers: SharedWorkers) -> Worker:
    return shared_workers.worker("maxtext")


def asked(emission: Emission) -> dict[str, Any]:
    folder = EmittedFolder(Path("emission"), manifest(emission), dict(emission.files))
    return dict(request(folder))


def test_random_emissions_are_accepted_and_mean_what_the_plan_says(worker: Worker) -> None:
    seen: set[str] = set()
    circular = 0
    for emission in random_emissions(40, seed=7):
        verdict = worker.ask(asked(emission))
        s = emission.plan.chosen()
        assert verdict.accepted, f"{verdict.stage}: {verdict.message}\n{emission.files[CONFIG_FILE]}"
        sizes = {axis: inside * across for axis, (inside, across) in verdict.facts["mesh"].items()}
        assert sizes.get("stage", 1) == s.pp
        assert sizes.get("tensor", 1) == s.tp
        assert sizes.get("context", 1) == s.cp
        assert sizes.get("data", 1) * sizes.get("fsdp", 1) * sizes.get("expert", 1) == s.dp
        assert verdict.facts["global_batch_size"] == emission.plan.problem.workload.global_batch_size
        assert verdict.facts["num_pipeline_microbatches"] == (s.num_microbatches if s.pp > 1 else 0)
        circular += s.vpp > 1
        seen |= {axis for axis, size in sizes.items() if size > 1}
    assert {"stage", "data", "fsdp", "expert", "tensor"} <= seen <= set(KEYS)
    assert circular >= 3


def test_every_key_that_a_plan_or_a_user_may_set_is_in_the_release(worker: Worker) -> None:
    text = (overlay(VALIDATOR, MAXTEXT_VERSION) / "maxtext" / "configs" / "base.yml").read_text(encoding="utf-8")
    keys = set(parse_config(text))
    assert (set(KEYS_OF_A_PLAN) | KEYS_OF_THE_USER) - keys == {"base_config"}


PLAN = make_plan(
    Strategy(tp=2, sp=True, pp=2, dp_shard=2, zero_stage=3, num_microbatches=4, schedule="gpipe", recompute="full"),
    cluster=make_cluster(8),
)
EDITS: list[tuple[str, Callable[[str], str], str]] = [
    ("product of the mesh", lambda t: t.replace("ici_tensor_parallelism: 2", "ici_tensor_parallelism: 4"), "mesh"),
    ("unknown key", lambda t: t + "tensor_parallelism: 2\n", "config"),
    ("wrong type", lambda t: t.replace("scan_layers: false", "scan_layers: [1]"), "config"),
    ("layers of stages", lambda t: t.replace("per_pipeline_stage: 4", "per_pipeline_stage: 3"), "config"),
    (
        "micro-batches of stages",
        lambda t: t.replace("num_pipeline_microbatches: 4", "num_pipeline_microbatches: 3"),
        "config",
    ),
    (
        "ZeRO-1 with fsdp",
        lambda t: t.replace("shard_optimizer_over_data: false", "shard_optimizer_over_data: true"),
        "config",
    ),
    ("slices", lambda t: t.replace("num_slices: 1", "num_slices: 3"), "mesh"),
    ("decoder block", lambda t: t.replace('decoder_block: "llama2"', 'decoder_block: "llama9"'), "config"),
]


@pytest.mark.parametrize(("edit", "stage"), [each[1:] for each in EDITS], ids=[each[0] for each in EDITS])
def test_broken_configs_are_refused(worker: Worker, edit: Callable[[str], str], stage: str) -> None:
    emission = emit(PLAN, "torchrun")
    files = {**emission.files, CONFIG_FILE: edit(emission.files[CONFIG_FILE])}
    assert files[CONFIG_FILE] != emission.files[CONFIG_FILE]
    wanted = asked(emission) | {"config": files[CONFIG_FILE]}
    verdict = worker.ask(wanted)
    assert not verdict.accepted
    assert verdict.stage == stage, verdict.message
    assert worker.ask(asked(emission)).accepted


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("llama-3.1-8b", "llama3.1-8b"),
        ("llama-3.1-405b", "llama3.1-405b"),
        ("mixtral-8x7b", "mixtral-8x7b"),
        ("qwen3-8b", "qwen3-8b"),
        ("qwen3-30b-a3b", "qwen3-30b-a3b"),
        ("qwen3-235b-a22b", "qwen3-235b-a22b"),
        ("deepseek-v2", "deepseek2-236b"),
        ("deepseek-v3", "deepseek3-671b"),
        ("kimi-k2", "kimi-k2-1t"),
        ("gemma-2-27b", "gemma2-27b"),
    ],
)
def test_model_sizes_are_those_of_the_shipped_configs(worker: Worker, ours: str, theirs: str) -> None:
    path = overlay(VALIDATOR, MAXTEXT_VERSION) / "maxtext" / "configs" / "models" / f"{theirs}.yml"
    shipped = parse_config(path.read_text(encoding="utf-8"))
    model = load_model(ours)
    block = decoder_block(model)
    assert block is not None
    keys = model_keys(model, block, 4096)
    # Padded vocabularies and numbers that a description does not hold are the release's own; rope scaling is ours too.
    free = {"vocab_size", "head_dim", "logits_via_embedding", "rope_max_timescale", "n_routing_groups"}
    different = {
        key: (value, shipped[key])
        for key, value in keys.items()
        if key in shipped and key not in free and json.loads(json.dumps(value)) != json.loads(json.dumps(shipped[key]))
    }
    assert different == {}
    assert block.name == shipped["decoder_block"]


@pytest.mark.parametrize("name", ["deepseek-v3", "deepseek-v2", "kimi-k2", "qwen3-30b-a3b", "llama-3.1-8b"])
def test_the_published_recipe_is_taken(name: str, worker: Worker) -> None:
    model = load_model(name).model_copy(update={"mtp": None})
    emission = emit(make_plan(Strategy(dp_shard=8, zero_stage=3, recompute="full"), model), "torchrun")
    config = parse_config(emission.files[CONFIG_FILE])
    recipe, stretched = routing(model), stretch(model)
    assert config.get("load_balance_loss_weight") == (recipe.coefficient if recipe else None)
    assert config.get("routed_bias_update_rate") == (recipe.bias_update_rate if recipe else None)
    assert config.get("rope_type") == ({"yarn": "yarn", "llama3": "llama3.1"}[stretched.kind] if stretched else None)
    verdict = worker.ask(asked(emission))
    assert verdict.accepted, verdict
    text = emission.files[CONFIG_FILE]
    assert not worker.ask(asked(emission) | {"config": text.replace("rope_", "ropes_")}).accepted
    assert not worker.ask(asked(emission) | {"config": text + "load_balance_loss_weights: 0.1\n"}).accepted


@pytest.mark.parametrize("name", ["deepseek-v3", "kimi-k2"])
def test_latent_attention_without_a_stretch_scales_nothing(name: str) -> None:
    """Its softmax is scaled where more positions are declared than there were before the stretch."""
    model = load_model(name).model_copy(update={"max_sequence_length": 8192})
    keys = rotary_keys(model)
    assert keys["max_position_embeddings"] == keys["original_max_position_embeddings"]
    assert "rope_type" not in keys
