"""The part of the training state that each device holds: a cell of every layer on its stage.

What survives a change of devices is the optimizer's state: master weights and moments
(``planner.predict.memory.states``); the 16-bit weights follow from the masters by the all-gather that every step does
anyway.  A layer's state is a unit square
for each of two families, cut into equal cells::

    dense     tp x shards             shards = dp_shard * cp from ZeRO-1 on, else 1
    experts   ep x (etp x shards)     shards = edp_shard from ZeRO-1 on, else 1

A device holds one cell of each family of each layer on its stage.  Two simplifications: norms and other parameters
that tensor parallelism replicates are cut like the rest (below one per cent), and ZeRO cuts each layer evenly, where
Megatron-LM cuts one flat buffer of all layers of a rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from planner.model.operators import layer_operators
from planner.model.parameters import (
    embedding_parameters,
    final_norm_parameters,
    head_parameters,
    layer_parameters,
    mtp_parameters,
    sum_parameters,
    towers_parameters,
)
from planner.plan.plan import Plan
from planner.predict.memory.states import optimizer_bytes
from planner.strategy.grid import RankGrid
from planner.strategy.mesh import dense_grid, expert_grid
from planner.strategy.strategy import Strategy
from solver.arrays import Array, Ints

Family = Literal["dense", "experts"]
FAMILIES: tuple[Family, ...] = ("dense", "experts")


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of one family that some ranks hold: a unit square cut ``rows`` times ``columns``; columns of ranks."""

    rows: int
    """Parts along the experts; 1 for the dense family."""
    columns: int
    row: Ints
    column: Ints

    @property
    def area(self) -> float:
        """Part of the square that one cell is."""
        return 1.0 / (self.rows * self.columns)


@dataclass(frozen=True, slots=True)
class Held:
    """What every rank holds: its stage, and its cell of the dense and of the expert state of each layer there."""

    stage: Ints
    dense: Cells
    experts: Cells


@dataclass(frozen=True, slots=True)
class PieceBytes:
    """State of one piece of the model (a layer, the embedding, the head), whole, in bytes."""

    dense: float
    experts: float


@dataclass(frozen=True, slots=True)
class StateLayout:
    """Where a plan keeps the state."""

    strategy: Strategy
    pieces: Mapping[str, PieceBytes]
    stages: tuple[frozenset[str], ...]
    """Names of the pieces on each stage."""
    dense: RankGrid
    experts: RankGrid

    def held(self) -> Held:
        """What each rank holds."""
        strategy = self.strategy
        ranks = np.arange(strategy.world_size, dtype=np.int64)
        at, there = self.dense.places(ranks), self.experts.places(ranks)
        sharded = strategy.zero_stage >= 1
        shards = strategy.dp_shard * strategy.cp if sharded else 1
        shard = at["dp_shard"] * strategy.cp + at["cp"] if sharded else np.zeros_like(ranks)
        cuts = self.experts.sizes[self.experts.names.index("edp_shard")] if sharded else 1
        cut = there["edp_shard"] if sharded else np.zeros_like(ranks)
        dense = Cells(1, strategy.tp * shards, np.zeros_like(ranks), at["tp"] * shards + shard)
        experts = Cells(strategy.ep, strategy.etp * cuts, there["ep"], there["etp"] * cuts + cut)
        return Held(at["pp"], dense, experts)

    def bytes_by_rank(self) -> Array:
        """Bytes that each rank holds."""
        held, found = self.held(), np.zeros(self.strategy.world_size)
        for family in FAMILIES:
            of_stage = np.array([self.stage_bytes(stage, family) for stage in range(len(self.stages))])
            found += of_stage[held.stage] * getattr(held, family).area
        return found

    def stage_bytes(self, stage: int, family: Family) -> float:
        """Bytes of one copy of a family's state on a stage."""
        return self.bytes_of(self.stages[stage], family)

    def bytes_of(self, names: Iterable[str], family: Family) -> float:
        """Bytes of one copy of a family's state in some pieces."""
        return sum(self.pieces[name].dense if family == "dense" else self.pieces[name].experts for name in names)

    @property
    def total_bytes(self) -> float:
        """One copy of the whole state."""
        return sum(piece.dense + piece.experts for piece in self.pieces.values())


def state_layout(plan: Plan) -> StateLayout:
    """The layout of a plan's state over its ranks."""
    strategy = plan.chosen()
    stages: list[set[str]] = [set() for _ in plan.stages]
    for stage in plan.stages:
        for chunk in stage.chunks:
            names = {f"layer {chunk.first_layer + index}" for index in range(chunk.num_layers)}
            names |= {"embedding"} if chunk.has_embedding else set()
            names |= {"head"} if chunk.has_head else set()
            names |= {"mtp"} if chunk.num_mtp_layers else set()
            stages[stage.stage] |= names
    frozen = tuple(frozenset(names) for names in stages)
    return StateLayout(strategy, _pieces(plan), frozen, dense_grid(strategy), expert_grid(strategy))


def _pieces(plan: Plan) -> dict[str, PieceBytes]:
    model = plan.problem.model
    each = optimizer_bytes(plan.problem.workload)
    kinds: list[PieceBytes] = []
    for kind in range(len(model.layer_kinds)):
        whole = layer_parameters(model, kind)
        experts = sum_parameters(op for op in layer_operators(model, kind) if op.op_class == "grouped_matmul")
        kinds.append(PieceBytes((whole - experts) * each, experts * each))
    pieces = {f"layer {index}": kinds[kind] for index, kind in enumerate(model.layer_kind_sequence())}
    ends = embedding_parameters(model) + towers_parameters(model)
    pieces["embedding"] = PieceBytes(ends * each, 0.0)
    pieces["head"] = PieceBytes((head_parameters(model) + final_norm_parameters(model)) * each, 0.0)
    if model.mtp is not None:
        pieces["mtp"] = PieceBytes(mtp_parameters(model) * each, 0.0)
    return pieces
