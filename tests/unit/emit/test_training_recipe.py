"""What a published recipe says of router and positions is in the files of Megatron-LM and Megatron-Bridge."""

from __future__ import annotations

import pytest

from planner.backends.megatron.model_flags import model_flags, moe_flags
from planner.backends.megatron_bridge.write import fusions
from planner.model.builtin import builtin_model
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
        ("glm-4.5", "seq_aux_loss", "0.0001"),
    ],
)
def test_every_mixture_is_balanced(name: str, balancing: str, coefficient: str) -> None:
    flags = flags_of(name)
    assert flags["--moe-router-load-balancing-type"] == (balancing,)
    assert flags["--moe-aux-loss-coeff"] == (coefficient,)


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
