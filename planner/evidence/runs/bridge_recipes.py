"""What NVIDIA's performance recipes switch on, for rows that state the container that ran them.

Megatron-Bridge's tables print degrees and no switches; the switches stand in the recipe of that release, which a row
names by its container, model, device, precision and degrees.  A row without any keeps its flavour's defaults.

``bridge_recipes.jsonl`` holds the recipes of mixtures and hybrids, read from NVIDIA-NeMo/Megatron-Bridge's
scripts/performance/configs/*/*workload_base_configs.py (written by ``benchmarks.bridge_recipes``), one line for what
they have in common: ``releases`` are containers, ``degrees`` tp, pp and ep, ``batch`` the global batches.  Releases of
containers: v0.2.0 is 25.11, v0.3.0 26.02, v0.3.1 26.02.01, v0.4.0 26.04, v0.4.2 26.04.01, v0.5.0 26.06, v0.5.1
26.06.01 (their CHANGELOG and dates).  What a recipe does not say:

- ``dispatcher``: without one, tokens go in an all-to-all (scripts/performance/utils/overrides.py:225-228 @v0.4.0).
- ``graphs``: without any, nothing is captured (cuda_graph_impl; ``full_iteration``: the whole step).
- ``recompute``: without it nothing is replayed (recompute_modules).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from planner.evidence.runs.truth import TruthRow
from planner.predict.physics.physics import Physics
from planner.strategy.strategy import Dispatcher, RecomputeModule

CONTAINER = re.compile(r"NeMo container (\d\d\.\d\d(?:\.\d\d)?)")
SAME_AS = {"26.08": "26.06.01"}
"""Containers whose recipes of these models, read in the release's own table (``planner.backends.megatron_bridge``),
switch on the same."""
PRECISIONS = {"bf16": "bf16", "mxfp8": "fp8_mx", "fp8-cs": "fp8_cs", "fp8": "fp8_cs", "nvfp4": "nvfp4"}
WHOLE_STEP = "full_iteration"
CAPTURED: dict[str, frozenset[str]] = {
    "attn": frozenset({"matmul", "attention", "norm", "rope", "residual"}),
    "mamba": frozenset({"matmul", "chunk_scan", "convolution", "gate", "norm", "residual"}),
    "moe_router": frozenset({"router", "norm"}),
    "layer": frozenset({"matmul", "attention", "norm", "rope", "residual", "router"})
    | {"permute", "grouped_matmul", "activation"},
}
"""Classes of operators whose launches a scope of TransformerEngine's graphs takes away (cuda_graph_scope)."""
REPLAYED: dict[str, RecomputeModule] = {
    "core_attn": "attention_core",
    "layernorm": "norm",
    "mla_up_proj": "mla_up_proj",
    "mlp": "mlp",
    "moe": "moe",
    "moe_act": "activation",
}
"""Names of Megatron-Core's recompute_modules."""


LAYOUTS = {(4, 1): (16, 13), (8, 1): (8, 5), (4, 2): (8, 5), (16, 1): (4, 1), (8, 2): (4, 1), (4, 4): (4, 1)}
"""Layers of every chunk but the last, and of the last, of DeepSeek-V3 by pp and vpp: its prediction layer and the head
take the place of three (src/megatron/bridge/recipes/deepseek/deepseek_v3.py:37-44 @v0.4.0, the same since v0.1.0)."""


@dataclass(frozen=True, slots=True)
class Switches:
    """What a recipe switches on beside degrees."""

    dispatcher: Dispatcher
    overlap_ep: bool
    graphs: tuple[str, ...]
    recompute: tuple[RecomputeModule, ...]

    def applied(self, traits: Physics) -> Physics:
        """The physics of a run with these graphs."""
        if WHOLE_STEP in self.graphs:
            return replace(traits, launch_s=0.0, call_s=0.0, each_expert_s=0.0)
        none: frozenset[str] = frozenset()
        graphed = none.union(*(CAPTURED.get(scope, none) for scope in self.graphs))
        return replace(traits, graphed=graphed, graphed_on_grace=none)


def switches_of_row(row: TruthRow) -> Switches | None:
    """The switches of the recipe that a row ran; None where it names none that is known.

    Of degrees or a precision that no recipe has: dispatcher and graphs, where all recipes of its model, device and
    release agree on them.
    """
    container = CONTAINER.search(row.notes)
    precision = PRECISIONS.get(row.precision.lower())
    if container is None or precision is None:
        return None
    release = SAME_AS.get(container[1], container[1])
    device = row.device.upper().partition("-")[0]
    degrees = [row.tp or 1, row.pp or 1, row.ep or 1]
    of_release = [
        line
        for line in recipes()
        if line["device"] == device and release in line["releases"] and row.model.lower().startswith(line["model"])
    ]
    known = [line for line in of_release if line["degrees"] == degrees and precision in line["precision"]]
    same = [line for line in known if row.gbs in line["batch"]] or known
    if same:
        return _switches(same[0]["says"])
    says = [{name: line["says"].get(name) for name in ("dispatcher", "graphs")} for line in of_release]
    if not says or any(each != says[0] for each in says):
        return None
    return _switches({name: value for name, value in says[0].items() if value is not None})


def recipe_layers(row: TruthRow, pp: int, vpp: int) -> tuple[int, ...] | None:
    """Layers of each chunk, where the recipe that a row ran has a layout of its own."""
    if not row.model.lower().startswith("deepseek-v3") or CONTAINER.search(row.notes) is None:
        return None
    found = LAYOUTS.get((pp, vpp))
    return None if found is None else (found[0],) * (pp * vpp - 1) + (found[1],)


def _switches(says: dict[str, Any]) -> Switches:
    return Switches(
        dispatcher=says.get("dispatcher", "alltoall"),
        overlap_ep=says.get("overlap", False),
        graphs=tuple(says.get("graphs", ())),
        recompute=tuple(REPLAYED[name] for name in says.get("recompute", ()) if name in REPLAYED),
    )


@cache
def recipes() -> tuple[dict[str, Any], ...]:
    """The lines of ``bridge_recipes.jsonl``; they are shared, so nobody may change them."""
    text = (files("planner.evidence.runs") / "bridge_recipes.jsonl").read_text(encoding="utf-8")
    return tuple(json.loads(line) for line in text.splitlines())
