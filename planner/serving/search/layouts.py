"""Every layout of one instance that arithmetic allows, as columns of numbers, and what was left out.

A layout is (tp, attention_dp, cp, dcp, pp, ep) with its redundant experts.  Sizes of an instance are those that pack:
parts of a node, or whole nodes.  Rules of an engine are asked later, of the layouts that a bound does not rule out.

    tp               divides the query heads of every layer
    attention_dp     more than 1 only with experts: without them its ranks share nothing, and replicas say the same
    cp               prefill instances only
    dcp              divides tp / (key and value heads); decode and aggregated instances only
    pp               at most the number of layers
    ep               divides the experts, or redundant ones fill the last share (ep of more than one node)
    instance         a divisor of the devices of a node, or whole nodes
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.model.spec import ModelSpec
from planner.serving.layout import InstanceLayout
from planner.serving.search.amounts import model_amounts
from planner.serving.words import Role
from profiles.cluster import Pool

IntArray = NDArray[np.int64]
FIELDS = ("tp", "attention_dp", "cp", "dcp", "pp", "ep")
NO_TP, NO_EP = "tp does not divide the attention heads", "ep does not divide the experts"
NO_CP = "cp splits prompts: prefill instances only"
NO_ATTENTION_DP = "attention_dp without experts is what replicas are"
NOT_PINNED = "not as pinned"
ARITHMETIC = frozenset({NO_TP, NO_EP, NO_CP, NO_ATTENTION_DP, NOT_PINNED})
"""Reasons of layouts that no engine is asked about."""
LARGEST_REDUNDANCY = 0.25
"""Redundant experts, as part of the model's own; the largest published deployment has 32 of 256."""


@dataclass(frozen=True, slots=True)
class Layouts:
    """Rows of layouts; ``columns`` in the order of ``FIELDS``, then the redundant experts."""

    columns: IntArray
    refused: dict[str, int]

    def column(self, name: str) -> IntArray:
        """One field of every row."""
        found: IntArray = self.columns[:, FIELDS.index(name)]
        return found

    @property
    def redundant(self) -> IntArray:
        """Redundant experts of every row."""
        found: IntArray = self.columns[:, len(FIELDS)]
        return found

    @property
    def stage_devices(self) -> IntArray:
        """Devices of one pipeline stage."""
        return self.column("tp") * self.column("attention_dp") * self.column("cp")

    @property
    def devices(self) -> IntArray:
        """Devices of an instance."""
        return self.stage_devices * self.column("pp")

    def layout(self, row: int) -> InstanceLayout:
        """One row as a document."""
        return InstanceLayout(**{name: int(self.columns[row, at]) for at, name in enumerate(FIELDS)})


def instance_sizes(pool: Pool) -> list[int]:
    """Devices that an instance may have: what divides a node, and whole nodes."""
    node = pool.devices_per_node
    parts = [size for size in range(1, node) if node % size == 0]
    return parts + [node * nodes for nodes in range(1, pool.num_nodes + 1)]


def layouts_of(model: ModelSpec, pool: Pool, role: Role, pins: dict[str, int]) -> Layouts:
    """All layouts of instances with this role on a pool; ``pins`` fix fields."""
    amounts, refused = model_amounts(model), Counter[str]()
    sizes = set(instance_sizes(pool))
    rows: list[tuple[int, ...]] = []
    for stage, pp in _stages(sizes, model.num_layers, pins):
        for tp in _divisors(stage):
            if any(heads % tp for heads, _ in amounts.heads):
                refused[NO_TP] += 1
                continue
            for cp in _divisors(stage // tp):
                attention_dp = stage // tp // cp
                if cp > 1 and role != "prefill":
                    refused[NO_CP] += 1
                    continue
                if attention_dp > 1 and not amounts.num_experts:
                    refused[NO_ATTENTION_DP] += 1
                    continue
                shares = _shares(tp, amounts.kv_heads, role)
                for ep, redundant in _expert_shares(amounts.num_experts, stage, pool.devices_per_node, refused):
                    rows += [(tp, attention_dp, cp, dcp, pp, ep, redundant) for dcp in shares]
    kept = [row for row in rows if all(row[FIELDS.index(name)] == value for name, value in pins.items())]
    if len(kept) < len(rows):
        refused[NOT_PINNED] += len(rows) - len(kept)
    return Layouts(np.array(kept, dtype=np.int64).reshape(-1, len(FIELDS) + 1), dict(refused))


def _stages(sizes: set[int], layers: int, pins: dict[str, int]) -> list[tuple[int, int]]:
    """(devices of a stage, stages) of every instance size."""
    wanted = pins.get("pp")
    return [
        (size // pp, pp)
        for size in sorted(sizes)
        for pp in _divisors(size)
        if pp <= layers and (wanted is None or pp == wanted)
    ]


def _expert_shares(experts: int, stage: int, node: int, refused: Counter[str]) -> list[tuple[int, int]]:
    """(ep, redundant experts) of a stage."""
    if not experts:
        return [(1, 0)]
    found = []
    for ep in _divisors(stage):
        redundant = -experts % ep
        if redundant and (ep <= node or redundant > LARGEST_REDUNDANCY * experts):
            refused[NO_EP] += 1
            continue
        found.append((ep, redundant))
    return found


def _shares(tp: int, kv_heads: int, role: Role) -> list[int]:
    """Degrees of decode context parallelism: of devices that would repeat the same heads."""
    repeats = tp // kv_heads
    return [1] if role == "prefill" or repeats < 2 else _divisors(repeats)


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]
