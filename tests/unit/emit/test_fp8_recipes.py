"""Recipes of 8-bit products: which back-end has them on which device, how they are written, and what a cast moves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from planner.backends.megatron.flags import precision_flags
from planner.backends.megatron.physics import MEGATRON_CORE
from planner.backends.registry import backend, backends
from planner.backends.rules.rule import RuleInput
from planner.model.load import load_model
from planner.model.megatron_flags import MegatronFlags
from planner.model.megatron_strategy import read_workload
from planner.predict.cost.efficiency import DEFAULT_MATMUL_FRACTION
from planner.predict.cost.hardware import Hardware, hardware_of
from planner.predict.cost.row_cost import CostModel
from planner.question.fp8_recipes import FP8_RECIPES
from planner.question.problem import Workload
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from profiles.errors import ProfileMissing
from tests.plan_factory import make_model
from tests.reliefs import RELIEFS

HAVE = {
    ("megatron", "hopper"): {"delayed", "tensorwise", "blockwise"},
    ("megatron", "blackwell"): {"delayed", "tensorwise", "mxfp8", "nvfp4"},
    ("megatron", "ampere"): set[str](),
    ("megatron-bridge", "hopper"): {"delayed", "tensorwise", "blockwise"},
    ("nemo", "hopper"): {"delayed", "tensorwise", "blockwise"},
    ("megatron-bridge", "blackwell"): {"delayed", "tensorwise", "mxfp8", "nvfp4"},
    ("nemo", "blackwell"): {"delayed", "tensorwise", "mxfp8"},
    ("maxtext", "hopper"): {"tensorwise"},
    ("torchtitan", "hopper"): set[str](),
    ("llm-foundry", "hopper"): {"delayed"},
    ("megascale", "hopper"): set[str](),
    ("nanotron", "hopper"): set[str](),
    ("nemo-automodel", "hopper"): {"tensorwise"},
    ("pytorch-fsdp", "hopper"): {"tensorwise"},
    ("hugging-face", "hopper"): set[str](),
}


def workload(recipe: str | None) -> Workload:
    said = {"global_batch_size": 8, "sequence_length": 4096, "precision": "fp8"}
    return Workload.model_validate(said | ({} if recipe is None else {"fp8_recipe": recipe}))


@pytest.mark.parametrize("recipe", FP8_RECIPES)
@pytest.mark.parametrize(("room", "device"), HAVE)
def test_each_back_end_has_what_release_and_device_have(room: str, device: str, recipe: str) -> None:
    given = RuleInput(Strategy(dp_shard=8), make_model(), workload(recipe), device)
    found = backend(room).releases[0].space.rules.violations(given)
    assert (f"{room}.K6" not in {each.rule for each in found}) is (recipe in HAVE[room, device])


@pytest.mark.parametrize("room", sorted(set(backends()) - {"unrestricted"}))
def test_every_back_end_has_a_word_on_recipes_or_on_8_bit(room: str) -> None:
    """A recipe that nothing refuses on Hopper is one that the table above gives the back-end."""
    for recipe in FP8_RECIPES:
        given = RuleInput(Strategy(dp_shard=8), make_model(), workload(recipe), "hopper")
        if not backend(room).releases[0].space.rules.violations(given):
            assert recipe in HAVE[room, "hopper"]


@pytest.mark.parametrize(
    ("recipe", "device", "written"),
    [
        (None, "hopper", ("hybrid", "tensorwise")),
        (None, "blackwell", ("e4m3", "mxfp8")),
        ("delayed", "blackwell", ("hybrid", "delayed")),
        ("blockwise", "hopper", ("e4m3", "blockwise")),
    ],
)
def test_megatron_writes_the_recipe(recipe: str | None, device: str, written: tuple[str, str]) -> None:
    flags = precision_flags(Strategy(), workload(recipe), device)
    assert (flags["--fp8-format"], flags["--fp8-recipe"]) == ((written[0],), (written[1],))


def test_a_cast_moves_what_the_recipe_says() -> None:
    """Read in 16 bit, written in 8 as it stands and transposed; scales of blocks come to that."""
    hardware = hardware_of(load_cluster("dgx-h100", 8), "fp8")
    model = load_model("llama-3.1-8b")
    seconds = {}
    for recipe in (None, "delayed", "tensorwise", "blockwise"):
        costs = CostModel(model, workload(recipe), hardware, RELIEFS)
        seconds[recipe] = float(costs.layers_s(StrategyRows.of([Strategy(dp_shard=8)], RELIEFS))[0])
        rates = hardware.under(workload(recipe)).rates
        elements = np.array([1e9])
        moved = FP8_RECIPES[recipe].cast_bytes if recipe else 4.0
        assert rates.cast_s(elements) == pytest.approx(moved * 1e9 / rates.memory_bytes_per_s, rel=1e-2)
    assert seconds[None] == seconds["delayed"] == seconds["tensorwise"] < seconds["blockwise"]
    assert replace(hardware, rates=hardware.rates).under(workload(None)) == hardware


def test_recipes_belong_to_8_bit_products() -> None:
    with pytest.raises(ValidationError, match="use precision fp8"):
        Workload.model_validate({"global_batch_size": 1, "sequence_length": 1, "fp8_recipe": "delayed"})


def test_megatron_writes_four_bit_and_reads_it_back() -> None:
    """fp4 and fp8 exclude each other there: no flag of the one stands beside those of the other."""
    flags = precision_flags(Strategy(), workload("nvfp4"), "blackwell")
    assert {name: words for name, words in flags.items() if name.startswith("--fp")} == {
        "--fp4-format": ("e2m1",),
        "--fp4-recipe": ("nvfp4",),
    }
    words = [word for name, values in flags.items() for word in (name, *values)]
    assert read_workload(MegatronFlags(words, "x")) == {"precision": "fp8", "fp8_recipe": "nvfp4", "optimizer": "adam"}


def four_bit(recipe: str) -> tuple[CostModel, Hardware]:
    said = workload(recipe)
    hardware = hardware_of(load_cluster("gb200-nvl72", 8), said.matmul_format, physics=MEGATRON_CORE)
    return CostModel(load_model("llama-3.1-8b"), said, hardware, RELIEFS), hardware


def test_four_bit_products_run_at_their_own_rate_and_keep_narrower_operands() -> None:
    rows = StrategyRows.of([Strategy(dp_shard=8, zero_stage=1)], RELIEFS)
    (eight, of_eight), (four, of_four) = four_bit("mxfp8"), four_bit("nvfp4")
    device = of_four.pool.device
    rates = [
        device.peak_flops_per_s[each] * device.achievable_matmul_fraction.get(each, DEFAULT_MATMUL_FRACTION)
        for each in ("fp8", "fp4")
    ]
    assert of_four.rates.matmul_flops_per_s / of_eight.rates.matmul_flops_per_s == pytest.approx(rates[1] / rates[0])
    # Head, router and attention stay in 16 bit, at the same rate.
    assert of_four.rates.wide_matmul_flops_per_s == of_eight.rates.wide_matmul_flops_per_s
    seconds = [float(costs.layers_s(rows)[0]) for costs in (eight, four)]
    assert seconds[1] < seconds[0]
    at = [costs.rows(rows) for costs in (eight, four)]
    kept = [float(each.saved_bytes.sum()) for each in at]
    copies = [float(each.frozen.layer.sum()) for each in at]
    assert kept[1] < kept[0]
    assert copies[1] == pytest.approx(copies[0] * (0.5 + 1 / 16))


def test_a_device_without_four_bit_units_is_refused() -> None:
    with pytest.raises(ProfileMissing, match="no fp4 peak rate"):
        hardware_of(load_cluster("dgx-h100", 8), workload("nvfp4").matmul_format)
