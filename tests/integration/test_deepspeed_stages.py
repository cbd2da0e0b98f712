"""The stages that the emitted script cuts are the whole transformers model, for every family that we claim."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from planner.backends.deepspeed.engine_rules import AUTOTP_FAMILIES
from planner.backends.deepspeed.expressible_rules import PIPELINE_FAMILIES
from planner.backends.deepspeed.version import DEEPSPEED_VERSION
from planner.backends.emission.write import write_emission
from planner.model.hf_config import model_from_hf_config
from planner.model.parameters import total_parameters
from planner.model.spec import ModelSpec
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_plan
from tests.rank_launch import cpu_environment, launched
from tests.warm_python.interpreters import DEEPSPEED, WarmPythons

emit = emitter("deepspeed")

if any(importlib.util.find_spec(name) is None for name in ("deepspeed", "torch", "transformers")):
    pytest.skip(f"deepspeed=={DEEPSPEED_VERSION}, torch and transformers are not installed", allow_module_level=True)

pytestmark = pytest.mark.slow

TINY = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 128,
    "max_position_embeddings": 128,
}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 32}
ROUTED = EXPERTS | {"n_routed_experts": 8, "n_shared_experts": 1, "first_k_dense_replace": 1, "num_mtp_layers": 0}
LATENT = ROUTED | {
    "num_key_value_heads": 4,
    "q_lora_rank": 32,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16,
    "v_head_dim": 16,
    "n_group": 2,
    "topk_group": 1,
}
MODELS: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama-tied": {"tie_word_embeddings": True},
    "llama-biased": {"attention_bias": True, "mlp_bias": True},
    "mistral": {"sliding_window": 8},
    "qwen2": {},
    "qwen3": {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 2},
    "phi3": {"sliding_window": None},
    "olmo2": {},
    "granite": {},
    "glm4": {},
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen2_moe": EXPERTS | {"num_experts": 4, "shared_expert_intermediate_size": 64, "mlp_only_layers": [1]},
    "qwen3_moe": EXPERTS | {"num_experts": 4},
    "glm4_moe": ROUTED,
    "deepseek_v2": LATENT,
    "deepseek_v3": LATENT,
    "kimi_k2": LATENT,
    "gpt2": {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128},
    "gpt_neox": {},
}


def family_of(name: str) -> str:
    return name.partition("-")[0]


def tiny_model(name: str) -> ModelSpec:
    return model_from_hf_config(TINY | {"model_type": family_of(name)} | MODELS[name], name, "test")


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory, warm_pythons: WarmPythons) -> dict[str, dict[str, Any]]:
    """All models in one process: importing DeepSpeed is what takes time."""
    root = tmp_path_factory.mktemp("stages")
    strategy = Strategy(overlap_grad_reduce=False, overlap_param_gather=False)
    workload = Workload(global_batch_size=1, sequence_length=24)
    plans = {name: make_plan(strategy, tiny_model(name), workload=workload) for name in MODELS}
    paths = [write_emission(emit(plan, "torchrun"), root / name) for name, plan in plans.items()]
    worker = Path(__file__).parents[1] / "deepspeed_stage_worker.py"
    environment = cpu_environment(DS_ACCELERATOR="cpu")
    command = [warm_pythons.python(DEEPSPEED, environment).executable, str(worker), *map(str, paths)]
    done = launched(command, environment, timeout_s=600)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr[-3000:]
    return {name: json.loads(line) for name, line in zip(MODELS, lines, strict=True)}


@pytest.mark.parametrize("name", MODELS)
def test_the_model_has_the_planned_parameters(name: str, answers: dict[str, dict[str, Any]]) -> None:
    assert answers[name]["parameters"] == total_parameters(tiny_model(name))


@pytest.mark.parametrize("name", [name for name in MODELS if family_of(name) in PIPELINE_FAMILIES])
def test_the_units_in_a_row_are_the_whole_model(name: str, answers: dict[str, dict[str, Any]]) -> None:
    answer = answers[name]
    assert answer["unit_parameters"] == answer["parameters"]
    assert answer["difference"] < 1e-4 * answer["spread"], answer


def test_every_family_that_is_claimed_is_tried() -> None:
    assert {family_of(name) for name in MODELS} >= PIPELINE_FAMILIES | AUTOTP_FAMILIES


@pytest.mark.parametrize("name", MODELS)
def test_autotp_understands_the_families_of_its_rule_and_no_other(
    name: str, answers: dict[str, dict[str, Any]]
) -> None:
    assert answers[name]["autotp"] == (family_of(name) in AUTOTP_FAMILIES)
