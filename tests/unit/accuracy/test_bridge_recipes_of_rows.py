"""A row of Megatron-Bridge's tables runs what the recipe of its container switches on."""

from __future__ import annotations

from typing import Any

import pytest

from planner.backends.megatron_bridge.physics import RECIPES
from planner.backends.nemo.physics import NEMO, NEMO_2_2
from planner.backends.registry import software
from planner.evidence.runs.bridge_recipes import (
    CAPTURED,
    LAYOUTS,
    REPLAYED,
    WHOLE_STEP,
    recipe_layers,
    recipes,
    switches_of_row,
)
from planner.evidence.runs.prediction import map_rows, predict_rows
from planner.model.builtin import builtin_model
from tests.accuracy_rows import rows_of

BRIDGE = {
    "source": "github:NVIDIA-NeMo/Megatron-Bridge:docs/performance-summary.md",
    "model": "deepseek-v3",
    "device": "GB200",
    "num_devices": "256",
    "seq_len": "4096",
    "gbs": "4096",
    "mbs": "1",
    "tp": "1",
    "pp": "4",
    "vpp": "4",
    "ep": "64",
    "dp": "64",
    "precision": "mxfp8",
    "recompute": "",
} | dict.fromkeys(("params_b", "layers", "hidden", "ffn_hidden", "heads", "kv_heads", "vocab"), "")
NOTHING_CAPTURED_BY = {"moe_preprocess", "mlp"}
"""Scopes that take no class of operators away: what prepares a dispatch is a part of it, dense layers are few."""


def note(container: str) -> dict[str, str]:
    return {**BRIDGE, "notes": f"NeMo container {container} NeMo Container; MoE router force-balanced"}


def test_each_release_has_its_own_switches() -> None:
    early, late = rows_of(note("26.04"), note("26.06"))
    scopes, whole = switches_of_row(early), switches_of_row(late)
    assert scopes is not None
    assert whole is not None
    assert (scopes.overlap_ep, scopes.recompute, scopes.dispatcher) == (False, ("mlp",), "hybridep")
    assert (whole.overlap_ep, whole.recompute, whole.dispatcher) == (True, ("mla_up_proj",), "hybridep")
    assert {"attention", "router"} <= scopes.applied(NEMO).graphed
    assert scopes.applied(NEMO).launch_s == NEMO.launch_s
    assert whole.applied(NEMO).launch_s == whole.applied(NEMO).each_expert_s == 0.0


def test_the_run_is_mapped_with_them() -> None:
    (run,), unmapped = map_rows(rows_of(note("26.06")))
    assert not unmapped
    assert run.strategy.overlap_ep
    assert run.strategy.recompute_modules == ("mla_up_proj",)
    assert run.chunk_layers == (4,) * 15 + (1,)
    assert run.traits.launch_s == 0.0


def test_what_a_row_says_itself_goes_first() -> None:
    (run,), _ = map_rows(rows_of({**note("26.06"), "recompute": "none"}))
    assert run.strategy.recompute == "none"


@pytest.mark.parametrize(
    "change",
    [
        {"notes": "MoE router force-balanced"},
        {"notes": "NeMo container 24.07"},
        {"model": "llama3-70b"},
        {"device": "A100-SXM-80GB"},
        {"model": "gpt-oss-120b", "ep": "16"},
        {"precision": "int8"},
    ],
)
def test_a_row_without_a_known_recipe_keeps_its_defaults(change: dict[str, str]) -> None:
    (row,) = rows_of({**note("26.06"), **change})
    assert switches_of_row(row) is None


def test_no_backend_and_no_graphs_mean_all_to_all_and_eager() -> None:
    (row,) = rows_of(
        {**note("26.04"), "model": "gpt-oss-120b", "device": "H100-SXM-80GB", "num_devices": "64", "gbs": "1280"}
        | {"vpp": "1", "ep": "8", "dp": "16", "precision": "bf16"}
    )
    switches = switches_of_row(row)
    assert switches is not None
    traits = switches.applied(RECIPES)
    assert (traits.dispatch, switches.dispatcher, traits.graphed) == ("expert", "alltoall", frozenset())
    assert set(switches.recompute) == {"norm", "activation"}


def test_degrees_of_no_recipe_take_what_all_of_the_release_agree_on() -> None:
    row, other = rows_of(
        {**note("25.09"), "model": "qwen3-235b-a22b", "tp": "2", "pp": "1", "vpp": "1", "num_devices": "64"},
        {**note("26.06"), "model": "gpt-oss-120b", "ep": "16"},
    )
    switches = switches_of_row(row)
    assert switches is not None
    assert (switches.dispatcher, switches.graphs, switches.recompute) == ("alltoall", ("layer",), ())
    assert switches_of_row(other) is None


def test_rows_of_containers_with_bridge_are_of_that_back_end() -> None:
    (run,), _ = map_rows(rows_of(note("26.04")))
    asked = software(run.flavour.backend)
    assert (asked.backend.name, asked.release.physics) == ("megatron-bridge", run.flavour.traits)
    assert run.strategy.dispatcher == "hybridep"


def test_experts_padded_to_their_capacity_count_nothing() -> None:
    """Qwen3-235B of 25.09 on B200: 0.17 and 0.22 too slow with the launches of dropless experts."""
    own = {**note("25.09"), "model": "qwen3-235b-a22b", "device": "B200", "num_devices": "64", "gbs": "1024"}
    own |= {"pp": "8", "vpp": "2", "ep": "8", "dp": "8"}
    dropless, padded = rows_of(own, {**own, "notes": f'{own["notes"]}; raw model "Qwen3_235B_a22B (tokendrop)"'})
    (counted, uncounted), _ = predict_rows([dropless, padded])
    assert uncounted.step_time_s < 0.97 * counted.step_time_s


def test_recipes_capture_graphs_on_grace_hosts() -> None:
    assert "attention" in RECIPES.on("gb200", "blackwell").graphed
    assert RECIPES.on("b200-sxm-180gb", "blackwell") == RECIPES
    assert not NEMO_2_2.on("gb200", "blackwell").graphed


def test_every_word_of_the_table_is_known() -> None:
    for line in recipes():
        says: dict[str, Any] = line["says"]
        assert set(says) <= {"dispatcher", "overlap", "graphs", "recompute"}
        assert set(says.get("graphs", ())) <= CAPTURED.keys() | NOTHING_CAPTURED_BY | {WHOLE_STEP}
        assert set(says.get("recompute", ())) <= REPLAYED.keys() | {"mhc"}


def test_layouts_hold_all_layers() -> None:
    layers = builtin_model("deepseek-v3").num_layers
    for (pp, vpp), (each, last) in LAYOUTS.items():
        assert each * (pp * vpp - 1) + last == layers
    (row,) = rows_of({**note("26.06"), "model": "kimi-k2"})
    assert recipe_layers(row, 4, 4) is None
