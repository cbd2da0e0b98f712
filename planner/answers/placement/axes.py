"""The groups of a plan that cross nodes: which ranks, which bytes, and at the same time with which others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from planner.backends.asked import physics_of
from planner.plan.communication_bill import Traffic, communication_bill
from planner.plan.plan import Plan
from planner.strategy.mesh import Axis, Mesh
from profiles.fabric.fabric import Ints
from profiles.fabric.traffic import Pattern, strided_groups
from solver.arrays import Array

Term = Literal["dp", "ep", "pp", "tp", "cp"]
TERMS: tuple[Term, ...] = ("dp", "ep", "pp", "tp", "cp")
"""Phases of a step, by their term of the breakdown.  Each is alone on the links, but data parallelism: the exchanges of
experts go on meanwhile, as overlap lets them."""
_TERM_OF: dict[str, Term] = {"tp": "tp", "etp": "tp", "cp": "cp", "ep": "ep", "pp": "pp"}


@dataclass(frozen=True, slots=True)
class PlanAxis:
    """``groups``: ranks [group, member]; ``group_bytes``: what each sends a step, all passes of its buffer."""

    name: Axis
    term: Term
    pattern: Pattern
    groups: Ints
    group_bytes: Array
    size: int
    stride: int
    """As the cost model says them."""


def crossing_axes(plan: Plan, mesh: Mesh) -> tuple[PlanAxis, ...]:
    """The axes whose groups leave their node, as far as they send."""
    bill = communication_bill(plan, physics_of(plan))
    found: dict[tuple[Axis, Pattern], Array] = {}
    for line in bill:
        if line.axis == "pp":
            continue
        pattern: Pattern = "all_to_all" if line.operation == "all_to_all" else "node_ring"
        key = (_mesh_axis(line, mesh), pattern)
        passes = 2.0 if line.operation == "all_reduce" else 1.0
        found.setdefault(key, np.zeros(mesh.strategy.pp))[line.stage] += passes * line.bytes_per_step
    made = [_axis(mesh, name, pattern, of_stage) for (name, pattern), of_stage in found.items()]
    return tuple(axis for axis in (*made, *_pipeline(mesh, bill)) if axis is not None and _leaves(mesh, axis.groups))


def _mesh_axis(line: Traffic, mesh: Mesh) -> Axis:
    """The bill's data-parallel axes hold the context-parallel ranks; without shards, replicas are everyone."""
    for bill_axis, whole, shards in (("dp", "dp_cp", "dp_shard_cp"), ("edp", "edp", "edp_shard")):
        if line.axis in (f"{bill_axis}_shard", f"{bill_axis}_replicate"):
            axes: tuple[Axis, ...] = (whole, shards, line.axis)  # type: ignore[assignment]
            return next(axis for axis in axes if mesh.pattern(axis).size == line.group_size)
    return line.axis


def _axis(mesh: Mesh, name: Axis, pattern: Pattern, of_stage: Array) -> PlanAxis | None:
    factors = mesh.pattern(name).factors
    if not factors:
        return None
    groups = strided_groups(mesh.world_size, factors)
    term = _TERM_OF.get(name, "dp")
    size, stride = mesh.pattern(name).size, factors[0][1]
    return PlanAxis(name, term, pattern, groups, of_stage[stage_of(mesh, groups[:, 0])], size, stride)


def stage_of(mesh: Mesh, ranks: Ints) -> Ints:
    """The pipeline stage of ranks."""
    factors = mesh.pattern("pp").factors
    return ranks // factors[0][1] % factors[0][0] if factors else ranks * 0


def _pipeline(mesh: Mesh, bill: Sequence[Traffic]) -> Iterator[PlanAxis]:
    """One axis for each border of two stages, whose groups are pairs; with several chunks a stage also the way back."""
    factors, strategy = mesh.pattern("pp").factors, mesh.strategy
    sent = sum(line.bytes_per_step for line in bill if line.axis == "pp")
    if not factors or not sent:
        return
    chains = strided_groups(mesh.world_size, factors)
    stages = range(strategy.pp)
    borders = list(pairwise(stages))
    if strategy.num_chunks > strategy.pp and strategy.pp > 2:
        borders.append((strategy.pp - 1, 0))
    for here, there in borders:
        pairs = np.sort(chains[:, [here, there]], axis=1)
        one_way = np.full(len(pairs), sent / (2.0 * len(borders)))
        yield PlanAxis("pp", "pp", "send_recv", pairs, one_way, 2, factors[0][1])


def _leaves(mesh: Mesh, groups: Ints) -> bool:
    nodes = groups // mesh.pool.devices_per_node
    return bool((nodes != nodes[:, :1]).any())
