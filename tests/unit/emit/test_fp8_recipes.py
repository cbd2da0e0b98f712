"""Recipes of 8-bit products: which back-end has them on which device, how they are written, and what a cast moves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from planner.backends.megatron.flags import precision_flags
from planner.backends.registry import backend, backends
from planner.backends.rules.rule import RuleInput
from planner.model.load import load_model
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.row_cost import CostModel
from planner.question.fp8_recipes import FP8_RECIPES
from planner.question.problem import Workload
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from tests.plan_factory import make_model
from tests.reliefs import RELIEFS

HAVE = {
    ("megatron", "hopper"): {"delayed", "tensorwise", "blockwise"},
    ("megatron", "blackwell"): {"delayed", "tensorwise", "mxfp8"},
    ("megatron", "ampere"): set[str](),
    ("megatron-bridge", "hopper"): {"delayed", "tensorwise", "blockwise"},
    ("nemo", "hopper"): {"delayed", "tensorwise", "blockwise"},
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
