"""Stages that one back-end runs together: alike in all that its runtime needs equal, of unequally many layers.

A stage is a rectangle of the rank grid (pp outermost), so all stages have equally many devices, the same degrees,
micro-batch, ZeRO level and switches; the plan of a run names one kind of relief.  What a pool's devices make of it
stays its own: time, memory, layers, and how many of these relieve memory.  So a search over such stages is one search
for every sharding, each over the pools' sub-meshes of one size, with the back-end's own rules on how many stages there
may be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from planner.errors import NoFeasiblePlan
from planner.search.backend_rules import BackEndRules
from planner.search.pools.microbatch_space import AlikeStages, MicrobatchSpace
from planner.search.pools.problem import PoolsProblem
from planner.search.pools.stage_tables import SpanClass
from planner.search.pools.sub_mesh import PoolHardware, SubMesh, sub_mesh, sub_mesh_sizes, with_policies
from planner.strategy.rows import COLUMNS
from planner.strategy.strategy import Strategy
from solver.arrays import Ints

OF_SHARDING = tuple(name for name in COLUMNS if name != "relief")
FEWEST_STAGES = 2
"""One stage lives in one pool, and is a plan for that pool alone."""


def demand_trainable(problem: PoolsProblem, pools: tuple[PoolHardware, ...]) -> None:
    """Raise NoFeasiblePlan with every rule of the back-end that the model breaks whatever the stages are."""
    reasons = BackEndRules(pools[0].problem).always()
    if problem.model.num_layers < FEWEST_STAGES:
        reasons.append(f"{problem.model.num_layers} layer makes no two stages")
    pinned = problem.constraints.pins.get("pp")
    if pinned is not None and int(pinned) < FEWEST_STAGES:
        raise NoFeasiblePlan(
            f"pp={pinned} is one stage, which stays within one pool",
            binding="pins",
            relaxations=(f"pin pp to {FEWEST_STAGES} or more", "plan each pool by itself"),
            where="--pin pp",
        )
    if reasons:
        raise NoFeasiblePlan(
            f"{problem.constraints.backends[0]} cannot train {problem.model.name} over several pools:"
            f" {'; '.join(reasons)}",
            binding="rules of the back-end",
            relaxations=("drop --backend: the plan is then for study, without launch files",),
        )


def alike_spaces(
    problem: PoolsProblem, pools: tuple[PoolHardware, ...], samples: int, spans: tuple[tuple[SpanClass, ...], Ints]
) -> Iterator[MicrobatchSpace]:
    """The stages of every sharding that the back-end runs with ``samples`` at a time."""
    sizes = {pool.index: sub_mesh_sizes(pool, samples) for pool in pools}
    num_microbatches = problem.workload.global_batch_size // samples
    for size in sorted({size for each in sizes.values() for size in each}):
        here = [pool for pool in pools if size in sizes[pool.index]]
        room = sum(pool.hardware.num_devices // size for pool in here)
        if room < FEWEST_STAGES:
            continue
        meshes = [sub_mesh(pool, problem, size, samples, num_microbatches) for pool in here]
        for stages in _shardings([mesh for mesh in meshes if mesh is not None]):
            limits = _stage_limits(problem, pools, stages, min(room, num_microbatches))
            if limits is not None:
                yield MicrobatchSpace(problem, pools, samples, spans, AlikeStages(stages, *limits))


def with_one_relief(space: MicrobatchSpace) -> list[MicrobatchSpace]:
    """The stages of one sharding, once for every kind of relief; none first."""
    reliefs = sorted({int(code) for mesh in space.meshes for code in mesh.rows.relief})
    return [space.with_relief(code) for code in reliefs]


def _shardings(meshes: list[SubMesh]) -> Iterator[tuple[SubMesh, ...]]:
    """Sub-meshes of one size by what they have in common, each with its reliefs."""
    keys = [np.stack([getattr(mesh.rows, name) for name in OF_SHARDING], axis=1) for mesh in meshes]
    for sharding in dict.fromkeys(tuple(row) for key in keys for row in key.tolist()):
        wanted = [(key == np.array(sharding)).all(axis=1) for key in keys]
        yield tuple(with_policies(mesh, each) for mesh, each in zip(meshes, wanted, strict=True) if each.any())


def _stage_limits(
    problem: PoolsProblem, pools: tuple[PoolHardware, ...], stages: tuple[SubMesh, ...], most: int
) -> tuple[int, int] | None:
    """Fewest and most stages that the back-end runs; None where it runs none."""
    mesh = stages[0]
    rules, strategy = BackEndRules(pools[mesh.pool].problem), mesh.rows.strategy(0, mesh.costs.reliefs)
    fewest, most = FEWEST_STAGES, min(most, problem.model.num_layers)
    pinned = problem.pins().get("pp")
    if pinned is not None:
        if not fewest <= int(pinned) <= most:
            return None
        fewest = most = int(pinned)
    if rules.refuses(of_stages(rules, strategy, fewest)):
        return None
    while rules.refuses(of_stages(rules, strategy, most)):
        most -= 1
    return fewest, most


def of_stages(rules: BackEndRules, strategy: Strategy, num_stages: int) -> Strategy:
    """The strategy with a number of stages, in the words of the back-end."""
    return rules.spelled(replace(strategy, pp=num_stages))
