"""A row of Megatron-Bridge's tables runs what the recipe of its container switches on."""

from __future__ import annotations

from typing import Any

import pytest

from planner.backends.nemo.physics import NEMO
from planner.evidence.runs.bridge_recipes import (
    CAPTURED,
    LAYOUTS,
    REPLAYED,
    WHOLE_STEP,
    recipe_layers,
    recipes,
    switches_of_row,
)
from planner.evidence.runs.prediction import map_rows
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
        {"ep": "16"},
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
    traits = switches.applied(NEMO)
    assert (traits.dispatch, traits.graphed) == ("expert", frozenset())
    assert set(switches.recompute) == {"norm", "activation"}


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
