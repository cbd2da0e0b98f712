"""What a published recipe says of router and positions is in the files of Megatron-LM and Megatron-Bridge."""

from __future__ import annotations

import pytest

from planner.backends.megatron.model_flags import model_flags, moe_flags, recipe_reasons
from planner.backends.megatron_bridge.write import fusions
from planner.backends.rules.training_recipe import routing, stretch
from planner.model.builtin import builtin_model, builtin_models
from planner.model.spec import ModelSpec
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_gpt, make_mla_model, make_model, make_plan

WORKLOAD = Workload(global_batch_size=8, sequence_length=4096)
DEEPSEEK = {
    "--moe-router-score-function": ("sigmoid",),
    "--moe-router-enable-expert-bias": (),
    "--moe-router-bias-update-rate": ("0.001",),
    "--moe-router-num-groups": ("8",),
    "--moe-router-group-topk": ("4",),
    "--moe-router-topk-scaling-factor": ("2.5",),
    "--moe-router-load-balancing-type": ("seq_aux_loss",),
    "--moe-aux-loss-coeff": ("0.0001",),
    "--rotary-scaling-factor": ("40",),
    "--mscale": ("1",),
    "--mscale-all-dim": ("1",),
}


def flags_of(name: str) -> dict[str, tuple[str, ...]]:
    model = builtin_model(name)
    return model_flags(model, WORKLOAD) | moe_flags(model)


def test_deepseek_v3_is_routed_as_published() -> None:
    flags = flags_of("deepseek-v3")
    assert {flag: flags.get(flag) for flag in DEEPSEEK} == DEEPSEEK


@pytest.mark.parametrize(
    ("name", "balancing", "coefficient"),
    [
        ("mixtral-8x7b", "aux_loss", "0.01"),
        ("qwen3-30b-a3b", "aux_loss", "0.001"),
        ("glm-4.5", "seq_aux_loss", "0.001"),
        ("kimi-k2", "seq_aux_loss", "0.001"),
        ("deepseek-v2", "seq_aux_loss", "0.001"),
    ],
)
def test_every_mixture_is_balanced(name: str, balancing: str, coefficient: str) -> None:
    flags = flags_of(name)
    assert flags["--moe-router-load-balancing-type"] == (balancing,)
    assert flags["--moe-aux-loss-coeff"] == (coefficient,)


def test_gpt_oss_is_as_in_megatron_bridge_and_the_file_says_what_to_set() -> None:
    flags = flags_of("gpt-oss-20b")
    assert flags["--moe-router-load-balancing-type"] == ("none",)
    assert "--moe-aux-loss-coeff" not in flags
    assert "YOURS" in recipe_reasons(builtin_model("gpt-oss-20b"))["--moe-router-load-balancing-type"]


@pytest.mark.parametrize(
    ("name", "experts", "factor"),
    [
        ("deepseek-v2", 160, "16"),
        ("deepseek-v2", 64, None),
        ("deepseek-v2", 32, None),
        ("deepseek-v3", 64, None),
        ("kimi-k2", 384, "2.827"),
        ("glm-4.5", 160, "2.5"),
        ("glm-4.5-air", 128, None),
    ],
)
def test_the_scale_of_the_routed_output_goes_by_the_size(name: str, experts: int, factor: str | None) -> None:
    """64 experts are DeepSeek-V2-Lite with a scale of 1; other sizes are not known and are asked for."""
    model = with_experts(builtin_model(name), experts)
    assert moe_flags(model).get("--moe-router-topk-scaling-factor") == (None if factor is None else (factor,))
    asked = "--moe-router-topk" in recipe_reasons(model)
    assert asked is ((name, experts) in {("deepseek-v2", 32), ("deepseek-v3", 64)})


def with_experts(model: ModelSpec, experts: int) -> ModelSpec:
    kinds = [
        kind.model_copy(update={"moe": kind.moe.model_copy(update={"num_experts": experts})}) if kind.moe else kind
        for kind in model.layer_kinds
    ]
    return model.model_copy(update={"layer_kinds": tuple(kinds)})


@pytest.mark.parametrize(
    ("name", "positions", "factor"),
    [
        ("deepseek-v3", 163_840, 40.0),
        ("deepseek-v3", 8_192, None),
        ("kimi-k2", 131_072, 32.0),
        ("kimi-k2", 262_144, 64.0),
    ],
)
def test_latent_attention_is_stretched_by_the_positions_it_has(name: str, positions: int, factor: float | None) -> None:
    model = builtin_model(name).model_copy(update={"max_sequence_length": positions})
    found = stretch(model)
    assert (found.factor if found else None) == factor
    assert found is None or found.factor * found.original_positions == positions


def test_every_value_names_the_place_where_it_was_read() -> None:
    for name in builtin_models():
        for found in (routing(builtin_model(name)), stretch(builtin_model(name))):
            assert found is None or any(mark in found.source for mark in (".py", ".yaml", ".sh", "hf-model-inspector"))


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("llama-3.1-70b", ("8",)),
        ("llama-3.2-1b", ("32",)),
        ("llama-2-70b", None),
        ("qwen3-8b", None),
    ],
)
def test_llama_3_1_is_stretched_and_others_are_not(name: str, factor: tuple[str, ...] | None) -> None:
    flags = flags_of(name)
    assert flags.get("--rope-scaling-factor") == factor
    assert ("--use-rope-scaling" in flags) is (factor is not None)


def test_a_comment_says_why_a_flag_is_there() -> None:
    plan = make_plan(Strategy(ep=8, dp_shard=8), make_mla_model())
    for backend, name in (("megatron", "megatron.args"), ("megatron-bridge", "overrides.txt")):
        lines = emitter(backend)(plan, "torchrun").files[name].splitlines()
        at = next(index for index, line in enumerate(lines) if "load" in line and "balancing" in line)
        assert lines[at].startswith("# --moe-router-load-balancing-type: the plan takes experts to be balanced")


def test_bridge_turns_on_what_megatron_lm_has_on() -> None:
    plan = make_plan(Strategy(dp_shard=8), make_model())
    assert all(fusions(plan).values())
    assert f"FUSIONS = {fusions(plan)}" in emitter("megatron-bridge")(plan, "torchrun").files["bridge_recipe.py"]
    assert not fusions(make_plan(Strategy(), make_gpt(1024, 16, 4096)))["apply_rope_fusion"]
