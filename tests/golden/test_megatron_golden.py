"""The Megatron arguments of three plans, word for word.  ``UPDATE_GOLDEN=1 pytest tests/golden`` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planner.plan.plan import Plan
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_mla_model, make_model, make_moe_model, make_plan

emit = emitter("megatron")

FOLDER = Path(__file__).parent / "megatron"

PLANS: dict[str, Plan] = {
    "dense_uneven": make_plan(
        Strategy(tp=2, sp=True, pp=4, dp_shard=2, num_microbatches=8, recompute="full"),
        make_model(10, num_kv_heads=4),
        layers_per_chunk=(2, 3, 3, 2),
        recompute_layers_per_chunk=(1, 1, 1, 1),
    ),
    "experts_interleaved": make_plan(
        Strategy(
            pp=2,
            vpp=2,
            schedule="interleaved",
            microbatch_group_size=2,
            ep=4,
            dp_replicate=2,
            dp_shard=4,
            num_microbatches=4,
            recompute="selective",
            recompute_modules=("activation", "norm"),
        ),
        make_moe_model(8, shared=512),
    ),
    "latent_sharded": make_plan(Strategy(ep=8, dp_shard=8, zero_stage=3), make_mla_model(8, num_mtp_layers=1)),
}


@pytest.mark.parametrize("name", PLANS)
def test_arguments_are_as_recorded(name: str) -> None:
    text = emit(PLANS[name], "torchrun").files["megatron.args"]
    path = FOLDER / f"{name}.args"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
