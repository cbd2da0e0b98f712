"""The axes of a plan as a placement problem over nodes: families of node groups, bytes, phases, up-links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.answers.placement.axes import TERMS, PlanAxis, Term, stage_of
from planner.answers.placement.judge import Judge
from planner.predict.collective import LINE_FRACTION
from planner.predict.cost.data_parallel import LAST_BUCKET_FRACTION
from planner.predict.cost.overlap import SLOWDOWN, WINDOW_FRACTION
from planner.strategy.mesh import Mesh
from profiles.cluster import Cluster, FabricLevel
from profiles.fabric.build import fabric_of
from solver.arrays import Array, Ints
from solver.placement.problem import Family, Phase, PlacementProblem, SwitchTier

FRACTION = LINE_FRACTION["fabric"]


def placement_problem(judge: Judge, mesh: Mesh, switch_of_node: Sequence[Ints]) -> PlacementProblem:
    """``switch_of_node``: [tier][node], numbers of switches; nodes of one leaf may be taken for each other."""
    size, num_nodes = judge.cluster.pools[0].devices_per_node, judge.cluster.pools[0].num_nodes
    free = np.bincount(switch_of_node[0])
    phases = _phases(judge)
    families = [family for axis in judge.axes for family in _families(axis, size, list(phases).index(axis.term))]
    kinds = stage_of(mesh, np.arange(num_nodes, dtype=np.int64) * size)
    return PlacementProblem(
        num_nodes, free, _tiers(judge.cluster, switch_of_node), families, tuple(phases.values()), kinds
    )


def _families(axis: PlanAxis, devices_per_node: int, phase: int) -> list[Family]:
    """Groups of nodes, one family for each number of nodes; groups of ranks on the same nodes are one."""
    nodes = np.sort(axis.groups // devices_per_node, axis=1)
    first = np.ones(nodes.shape, dtype=bool)
    first[:, 1:] = nodes[:, 1:] != nodes[:, :-1]
    counts, found = first.sum(axis=1), list[Family]()
    for count in np.unique(counts[counts > 1]).tolist():
        at = counts == count
        rows = nodes[at][first[at]].reshape(-1, count)
        groups, own = np.unique(rows, axis=0, return_inverse=True)
        # A ring sends (n - 1) / n of its buffer over each border; of an exchange every rank of a node sends its own.
        per_group = axis.group_bytes[at] * ((count - 1) / count if axis.pattern == "node_ring" else 1.0)
        if axis.pattern == "all_to_all":
            per_group = per_group * axis.groups.shape[1] / count
        weight = np.bincount(own.ravel(), weights=per_group, minlength=len(groups)).astype(np.float64)
        found.append(Family("all_to_all" if axis.pattern == "all_to_all" else "ring", groups, weight, phase))
    return found


def _tiers(cluster: Cluster, switch_of_node: Sequence[Ints]) -> tuple[SwitchTier, ...]:
    """Up-links: the share of them that the job's nodes under a switch have, as the graph of these nodes counts it."""
    pool, levels = cluster.pools[0], cluster.fabric
    leaf, found = switch_of_node[0], list[SwitchTier]()
    num_leaves = int(leaf.max()) + 1
    down: Array = np.bincount(leaf).astype(np.float64) * (pool.nics_per_node * pool.nic_bandwidth_bytes_per_s)
    first_node = np.array([int(np.flatnonzero(leaf == each)[0]) for each in range(num_leaves)])
    switch_below = np.arange(num_leaves)
    for index, switch in enumerate(switch_of_node):
        level = levels[min(index, len(levels) - 1)] if levels else FabricLevel(name="network", num_nodes=1)
        above = switch[first_node]
        if index:
            parents = np.array([above[switch_below == each][0] for each in range(len(down))])
            down = np.bincount(parents, weights=down).astype(np.float64)
        if len(down) == 1:
            break
        down = down / level.oversubscription
        found.append(SwitchTier(above, FRACTION * down))
        switch_below = above
    return tuple(found)


def _phases(judge: Judge) -> dict[Term, Phase]:
    """What of each phase shows: of data parallelism beyond its windows, of the rest the part that shows in the plan."""
    flat = judge.cluster.model_copy(update={"fabric": ()})
    aligned = judge.phase_seconds(judge.aligned)
    floors = judge.phase_seconds(judge.seconds_a_byte(fabric_of(flat)))
    shown = {**judge.plan.breakdown_s, "pp": judge.plan.breakdown_s.get("pp_send", 0.0)}
    found: dict[Term, Phase] = {}
    for term in TERMS:
        if term not in aligned:
            continue
        floor_s, line_s = floors[term] / FRACTION, max(aligned[term] / FRACTION, 1e-30)
        if term == "dp":
            share, cover_s = _windows(judge)
            found[term] = Phase(floor_s, share, cover_s)
        else:
            found[term] = Phase(floor_s, min(1.0, shown.get(term, 0.0) / line_s))
    return found


def _windows(judge: Judge) -> tuple[float, float]:
    """What of data-parallel traffic always shows, and the seconds that compute hides (``planner.predict.cost``)."""
    strategy, cost = judge.plan.chosen(), judge.context.cost
    window_s = strategy.overlap_grad_reduce * float(cost.backward_window_s[0])
    window_s += strategy.overlap_param_gather * float(cost.forward_window_s[0])
    if window_s == 0.0:
        return 1.0, 0.0
    often = strategy.num_microbatches if strategy.zero_stage >= 2 else 1
    both = strategy.overlap_grad_reduce and strategy.overlap_param_gather
    return (SLOWDOWN + LAST_BUCKET_FRACTION) * both, (1.0 - SLOWDOWN) * WINDOW_FRACTION * window_s * often
