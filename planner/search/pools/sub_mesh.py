"""What a stage can run on, and how: the sub-meshes of a pool and the policies of each.

A sub-mesh is a number of devices of one pool: a part of a node that divides it, or whole nodes.  Its policies are all
strategies of the declared space (``planner.search.space``) that fill it without a pipeline: tensor, data and expert
parallelism, ZeRO level, optimizer offload and memory relief.  All stages work on the same ``microbatch_samples`` at a
time, so a stage with twice the data parallelism has half the micro-batch on each device.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.backends.asked import problem_hardware
from planner.predict.cost.hardware import Hardware
from planner.predict.cost.model_cost import ModelCost
from planner.predict.cost.row_cost import CostModel, RowCost
from planner.question.problem import Problem
from planner.search.pools.problem import PoolsProblem
from planner.search.reliefs import relief_choices
from planner.search.row_context import take
from planner.search.space import Space, divisors
from planner.search.split_limits import split_rules
from planner.search.split_terms import SplitRules
from planner.strategy.rows import StrategyRows
from solver.arrays import Mask


@dataclass(frozen=True, slots=True)
class SubMesh:
    """Devices of one pool with every policy: ``rows`` [R], costed as a stage of several and as the only one."""

    pool: int
    devices: int
    costs: CostModel
    rules: SplitRules
    table: ModelCost
    rows: StrategyRows
    cost: RowCost
    cost_alone: RowCost


@dataclass(frozen=True, slots=True)
class PoolHardware:
    """One pool as the cost model sees it; shared by all its sub-meshes."""

    index: int
    problem: Problem
    hardware: Hardware
    costs: CostModel
    rules: SplitRules


def pool_hardware(problem: PoolsProblem) -> tuple[PoolHardware, ...]:
    """Every pool of the problem."""
    found = []
    for index in range(len(problem.clusters)):
        single = problem.of_pool(index, problem.workload.global_batch_size)
        hardware = problem_hardware(single)
        costs = CostModel(problem.model, problem.workload, hardware, relief_choices(single))
        found.append(PoolHardware(index, single, hardware, costs, split_rules(single, hardware)))
    return tuple(found)


def sub_mesh_sizes(pool: PoolHardware, microbatch_samples: int) -> list[int]:
    """Numbers of devices that a stage of this pool may have."""
    node, devices = pool.hardware.pool.devices_per_node, pool.hardware.num_devices
    parts = [size for size in divisors(min(node, devices)) if size < node]
    wholes = range(node, devices + 1, node)
    return [size for size in (*parts, *wholes) if _can_be_filled(pool, size, microbatch_samples)]


def _can_be_filled(pool: PoolHardware, size: int, samples: int) -> bool:
    """Whether some tensor parallelism leaves a data parallelism that divides the samples: a quick first look."""
    pins = pool.problem.constraints.pins
    degrees = [pins["tp"]] if isinstance(pins.get("tp"), int) else divisors(size)
    inner = int(pins.get("cp", 1))
    return any(size % (int(tp) * inner) == 0 and samples % (size // (int(tp) * inner)) == 0 for tp in degrees)


def sub_mesh(
    pool: PoolHardware, problem: PoolsProblem, devices: int, samples: int, num_microbatches: int
) -> SubMesh | None:
    """A number of devices with every legal policy; None when there is none."""
    single = problem.of_pool(pool.index, samples)
    rows = _policies(single, devices * int(single.constraints.pins["pp"]))
    if len(rows) == 0:
        return None
    several = replace(
        rows, pp=np.full(len(rows), 2), num_microbatches=np.full(len(rows), num_microbatches, dtype=np.int64)
    )
    alone = replace(several, pp=np.ones(len(rows), dtype=np.int64))
    keyed = pool.costs.keyed(several)
    return SubMesh(
        pool=pool.index,
        devices=devices,
        costs=pool.costs,
        rules=pool.rules,
        table=keyed[0],
        rows=several,
        cost=pool.costs.rows(several, keyed),
        cost_alone=pool.costs.rows(alone, keyed),
    )


def with_policies(mesh: SubMesh, wanted: Mask) -> SubMesh:
    """The sub-mesh with a part of its policies."""
    at = np.flatnonzero(wanted)
    parts = {name: take(getattr(mesh, name), at) for name in ("cost", "cost_alone")}
    return replace(mesh, rows=mesh.rows.take(at), **parts)


def _policies(single: Problem, devices: int) -> StrategyRows:
    """Every strategy of a question on so many devices; with tensor parallelism the sequence is split too."""
    space = Space(single, devices)
    cores = space.cores
    cores = cores.take((cores.sp > 0) == (cores.tp > 1)) if "sp" not in single.constraints.pins else cores
    key = np.zeros(len(cores), dtype=np.int64)
    layouts, key = space.layouts(cores, key)
    shardings, key = space.shardings(layouts, key)
    return space.leaves(shardings, key)[0]
