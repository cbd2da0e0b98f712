"""Which node of an allocation takes which place of a plan: the order as listed against the best one.

The order comes from ``solver.placement`` (integer program over leaves, with a bound); which order is better is decided
by ``planner.answers.placement.judge``: the step times of the orders, not the program's own objective.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from planner.answers.placement.axes import crossing_axes
from planner.answers.placement.judge import Judge, cluster_of_nodes
from planner.answers.placement.program import placement_problem
from planner.answers.placement.switches import Switches
from planner.errors import DocumentInvalid
from planner.plan.plan import Plan
from planner.strategy.mesh import build_mesh
from profiles.document import Document
from profiles.topology import NetworkTier
from solver.arrays import Ints
from solver.constraint_program import Effort
from solver.placement.place import place
from solver.placement.problem import cost_s

WORTH_A_CHANGE = 1e-6
"""Part of a step below which the order stays as it is listed."""


class LeafUse(Document):
    """One leaf of the allocation."""

    leaf: str
    nodes: int = Field(description="of the allocation")
    ranks_before: tuple[int, ...] = Field(description="node ranks there, in the order as listed")
    ranks: tuple[int, ...] = Field(description="node ranks there, as placed")


class AxisStretch(Document):
    """How much longer the collectives of an axis take than with nodes in order on the plan's own fabric."""

    axis: str
    term: str = Field(description="of the breakdown of the step")
    as_listed: float
    as_placed: float


class Placement(Document):
    """The order of the nodes, what it wins, and how much another order could win at most."""

    schema_version: Literal[1] = 1
    plan_id: str
    num_nodes: int
    order: tuple[str, ...] = Field(description="node rank r runs on the r-th")
    changed: bool = Field(description="false: no order was found that is faster than the nodes as listed")
    plan_step_time_s: float = Field(description="with nodes in order on the plan's own fabric")
    listed_step_time_s: float
    placed_step_time_s: float
    faster_by: float = Field(description="one minus the step time as placed over that as listed")
    listed_exposed_s: float = Field(description="communication that shows, as the integer program counts it")
    placed_exposed_s: float
    bound_exposed_s: float = Field(description="no order has less, as the integer program counts it")
    gap: float = Field(description="one minus the bound over what is placed")
    axes: tuple[AxisStretch, ...]
    leaves: tuple[LeafUse, ...]
    assumptions: tuple[str, ...]


def place_nodes(plan: Plan, nodes: Sequence[str], switches: Switches, effort: Effort) -> Placement:
    """Raises DocumentInvalid for too few nodes, nodes without a leaf, several pools, domains of several nodes."""
    pool, ranks = plan.problem.cluster.pools[0], plan.chosen().world_size
    needed = _nodes_needed(plan, len(nodes))
    above = [np.unique(each, return_inverse=True)[1].astype(np.int64) for each in switches.of(nodes, "--topology")]
    cluster = cluster_of_nodes(plan.problem.cluster, needed)
    mesh = build_mesh(plan.chosen(), cluster)
    judge = Judge(plan, crossing_axes(plan, mesh), needed)
    listed = np.arange(needed, dtype=np.int64)
    names = [name for name, _ in switches.tiers]

    def stretches(order: Ints) -> list[float]:
        return judge.stretches([_tier(name, tier[order]) for name, tier in zip(names, above, strict=True)])

    problem = placement_problem(judge, mesh, above)
    found = place(problem, effort, [above[0][listed]])
    before, order = stretches(listed), _nodes_of_leaves(found.leaf_of_position, above[0])
    after = stretches(order)
    listed_s, placed_s = judge.step_time_s(before), judge.step_time_s(after)
    changed = placed_s < listed_s * (1.0 - WORTH_A_CHANGE)
    if not changed:
        order, after, placed_s = listed, before, listed_s
    exposed_s = cost_s(problem, above[0][order])
    return Placement(
        plan_id=plan.plan_id,
        num_nodes=needed,
        order=tuple(nodes[at] for at in order.tolist()),
        changed=changed,
        plan_step_time_s=plan.step_time_s,
        listed_step_time_s=listed_s,
        placed_step_time_s=placed_s,
        faster_by=1.0 - placed_s / listed_s,
        listed_exposed_s=cost_s(problem, above[0][listed]),
        placed_exposed_s=exposed_s,
        bound_exposed_s=min(found.bound_s, exposed_s),
        gap=max(0.0, 1.0 - found.bound_s / exposed_s) if exposed_s > 0 else 0.0,
        axes=tuple(
            AxisStretch(axis=axis.name, term=axis.term, as_listed=there, as_placed=here)
            for at, (axis, there, here) in enumerate(zip(judge.axes, before, after, strict=True))
            if axis.name != "pp" or judge.axes[at - 1].name != "pp"
        ),
        leaves=_leaves(nodes, switches, listed, order),
        assumptions=(
            f"{ranks:,} ranks on {needed:,} nodes of {pool.devices_per_node}; ranks within a node stay",
            "the job has the share of a switch's up-links that its nodes have of those below it",
            f"oversubscription of each tier is that of the plan's cluster, {plan.problem.cluster.name}",
            "while data-parallel groups send, exchanges of experts do too",
        ),
    )


def _nodes_needed(plan: Plan, given: int) -> int:
    cluster = plan.problem.cluster
    pool, ranks = cluster.pools[0], plan.chosen().world_size
    if len(cluster.pools) > 1 or (pool.scale_up.kind != "none" and pool.scale_up.domain_size > pool.devices_per_node):
        raise DocumentInvalid(
            f"nodes of {cluster.name} are not alike for a placement: it has several pools, or a scale-up domain of"
            " several nodes",
            where="plan",
            hint="place plans on one pool whose scale-up domains lie inside a node",
        )
    if ranks % pool.devices_per_node:
        raise DocumentInvalid(
            f"{ranks} ranks are not a whole number of nodes of {pool.devices_per_node}",
            where="plan",
            hint="plan whole nodes",
        )
    needed = ranks // pool.devices_per_node
    if given < needed:
        raise DocumentInvalid(
            f"{given} nodes for a plan of {needed} nodes of {pool.devices_per_node} devices",
            where="--nodes",
            hint=f"name at least {needed} nodes",
        )
    return needed


def _tier(name: str, switch: Ints) -> NetworkTier:
    """Node ranks under each switch."""
    groups = tuple(tuple(np.flatnonzero(switch == each).tolist()) for each in np.unique(switch))
    return NetworkTier(name=name, groups=groups)


def _nodes_of_leaves(leaf_of_position: Ints, leaf_of_node: Ints) -> Ints:
    """[position]: a node of its leaf, in the order in which they are listed."""
    order = np.empty(len(leaf_of_position), dtype=np.int64)
    for leaf in np.unique(leaf_of_position):
        here = np.flatnonzero(leaf_of_position == leaf)
        order[here] = np.flatnonzero(leaf_of_node == leaf)[: len(here)]
    return order


def _leaves(nodes: Sequence[str], switches: Switches, listed: Ints, order: Ints) -> tuple[LeafUse, ...]:
    leaf_of = switches.tiers[0][1]
    leaves = [leaf_of[node] for node in nodes]
    ranks: dict[str, tuple[list[int], list[int]]] = {leaf: ([], []) for leaf in leaves}
    for column, places in enumerate((listed, order)):
        for rank, node in enumerate(places.tolist()):
            ranks[leaves[node]][column].append(rank)
    return tuple(
        LeafUse(leaf=leaf, nodes=leaves.count(leaf), ranks_before=tuple(before), ranks=tuple(after))
        for leaf, (before, after) in ranks.items()
    )
