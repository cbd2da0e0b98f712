"""Weights stored in 8 bit: who can, what it saves, how it is written and read, and that a search takes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.backends.megatron.flags import precision_flags
from planner.backends.registry import backend
from planner.backends.rules.rule import RuleInput
from planner.model.load import load_model
from planner.model.megatron_flags import MegatronFlags
from planner.model.megatron_strategy import read_strategy
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.row_cost import CostModel
from planner.question.problem import Constraints, Problem, Workload
from planner.search.backend_rules import BackEndRules
from planner.search.find import find_plan
from planner.search.space import Space
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Relief, Strategy
from profiles.catalogue import load_cluster
from profiles.scaling import scale_cluster
from tests.plan_factory import make_model

STORED = Strategy(dp_shard=8, zero_stage=1, fp8_parameters=True)


def workload(**more: Any) -> Workload:
    said = {"global_batch_size": 8, "sequence_length": 4096, "precision": "fp8", "fp8_recipe": "tensorwise"}
    return Workload.model_validate(said | more)


@pytest.mark.parametrize(
    ("strategy", "more", "taken"),
    [
        (STORED, {}, True),
        (replace(STORED, zero_stage=0), {}, False),
        (replace(STORED, zero_stage=3), {}, False),
        (STORED, {"precision": "bf16", "fp8_recipe": None}, False),
        (STORED, {"optimizer": "muon"}, False),
        (replace(STORED, optimizer_offload=True), {}, False),
        (replace(STORED, optimizer_offload=True), {"fp8_recipe": "delayed"}, True),
    ],
)
@pytest.mark.parametrize("room", ["megatron", "megatron-bridge"])
def test_the_release_stores_8_bit_weights_with_its_distributed_optimizer(
    room: str, strategy: Strategy, more: dict[str, Any], *, taken: bool
) -> None:
    given = RuleInput(strategy, make_model(), workload(**more), "hopper")
    found = {each.rule for each in backend(room).releases[0].space.rules.violations(given)}
    assert (f"{room}.A27" not in found) is taken


def cost_of(strategy: Strategy, recipe: str | None = "tensorwise", device: str = "hopper") -> tuple[float, float]:
    """Bytes on the fullest device of weights, and of the gather of a step."""
    asked = workload(fp8_recipe=recipe)
    physics = backend("megatron").releases[0].physics
    hardware = replace(hardware_of(scale_cluster(load_cluster("dgx-h100"), 8), "fp8"), physics=physics)
    costs = CostModel(load_model("llama-3.1-8b"), asked, hardware, (Relief("none", (), False),))
    rows = StrategyRows.of([strategy], (Relief("none", (), False),))
    found = costs.rows(rows)
    layers = float(found.frozen.layer[0, 0] + found.dense_state.weights[0] * found.layer_dense[0, 0])
    from planner.predict.cost.step_payload import step_exchanges

    gather = step_exchanges(np.array([1.0]), found.dense_parallel, asked, physics, device)[2]
    return layers, float(gather.size_bytes[0])


def test_16_bit_weights_are_gone_and_less_is_gathered() -> None:
    """2 bytes of 16-bit weights and 2 of 8-bit copies become 2; of 8.03e9 parameters 6.98e9 are in layers."""
    wide, narrow = cost_of(replace(STORED, fp8_parameters=False)), cost_of(STORED)
    assert narrow[0] == pytest.approx(wide[0] / 2)
    assert wide[1] == 2.0
    assert narrow[1] == pytest.approx(2.0 - 6.98e9 / 8.03e9, rel=2e-3)


def test_mxfp8_weights_are_gathered_in_16_bit() -> None:
    assert cost_of(STORED, "mxfp8")[1] == 2.0


def test_without_a_recipe_what_is_gathered_follows_the_recipe_that_is_written() -> None:
    written = {each: precision_flags(STORED, workload(fp8_recipe=None), each) for each in ("hopper", "blackwell")}
    assert [flags["--fp8-recipe"] for flags in written.values()] == [("tensorwise",), ("mxfp8",)]
    assert cost_of(STORED, None) == cost_of(STORED, "tensorwise")
    assert cost_of(STORED, None, "blackwell")[1] == 2.0


@pytest.mark.parametrize(("recipe", "reused"), [("tensorwise", False), ("blockwise", False), ("mxfp8", True)])
def test_megatron_writes_and_reads_it(recipe: str, *, reused: bool) -> None:
    flags = precision_flags(STORED, workload(fp8_recipe=recipe), "blackwell")
    assert flags["--fp8-param-gather"] == ()
    assert ("--reuse-grad-buf-for-mxfp8-param-ag" in flags) is reused
    words = [word for flag, values in flags.items() for word in (flag, *values)]
    assert read_strategy(MegatronFlags([*words, "--use-distributed-optimizer"], ""))[0]["fp8_parameters"] is True
    assert "fp8_parameters" not in read_strategy(MegatronFlags(words, ""))[0]
    assert "--fp8-param-gather" not in precision_flags(replace(STORED, fp8_parameters=False), workload(), "hopper")


def problem(software: str, **pins: Any) -> Problem:
    return Problem(
        model=load_model("llama-3.1-8b"),
        cluster=scale_cluster(load_cluster("dgx-h100"), 8),
        workload=workload(),
        constraints=Constraints(backends=(software,), pins=pins),
    )


@pytest.mark.parametrize(
    ("software", "pins", "expected"),
    [
        ("megatron", {}, {(0, 0), (1, 1), (2, 0), (3, 0)}),
        ("megatron", {"fp8_parameters": False}, {(0, 0), (1, 0), (2, 0), (3, 0)}),
        ("nemo", {}, {(0, 0), (1, 0), (2, 0), (3, 0)}),
    ],
)
def test_the_space_has_8_bit_weights_where_they_can_be(
    software: str, pins: dict[str, Any], expected: set[tuple[int, int]]
) -> None:
    space = Space(problem(software, tp=1, pp=1, **pins), 8)
    layouts, key = space.layouts(space.cores, np.arange(len(space.cores)))
    rows, _ = space.shardings(layouts, key)
    without_offload = rows.take(rows.optimizer_offload == 0)
    assert set(zip(without_offload.zero.tolist(), without_offload.fp8_parameters.tolist(), strict=True)) == expected


def test_a_back_end_without_them_refuses_them() -> None:
    rules = BackEndRules(problem("nemo"))
    assert rules.refuses(STORED)
    assert "nemo.fp8_parameters" in {each.rule for each in rules.broken(STORED)}


def test_a_pin_on_them_leaves_such_a_back_end_nothing_to_search() -> None:
    space = Space(problem("nemo", tp=1, pp=1, fp8_parameters=True), 8)
    layouts, key = space.layouts(space.cores, np.arange(len(space.cores)))
    assert len(space.shardings(layouts, key)[0]) == 0


@pytest.mark.parametrize(("pinned", "said"), [(True, "kept in 8 bit"), (False, "kept and gathered in bf16")])
def test_bridge_says_how_weights_are_kept(pinned: bool, said: str) -> None:
    asked = problem("megatron-bridge", tp=1, pp=1, zero_stage=1, fp8_parameters=pinned)
    room = backend("megatron-bridge")
    assert room.files is not None
    assumptions = room.files().write(find_plan(asked), room.releases[0].version).assumptions
    assert any(f"weights of layers are {said}" in line for line in assumptions)
