"""Why is there no plan, and what is the smallest change that gives one?"""

from __future__ import annotations

import numpy as np

from planner.cost.hardware import hardware_of
from planner.cost.row_cost import CostModel
from planner.errors import MeshwrightError, NoFeasiblePlan
from planner.problem import Problem
from planner.search.bound import BoundTerms, lower_bounds_s
from planner.search.branch import SearchResult, memory_limit_bytes
from planner.search.space import Space

FACTORS = (1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0)
MOST_CORES = 400
"""Cores looked at for the diagnosis: those with the smallest micro-batches, which need the least memory."""


def no_feasible_plan(problem: Problem, result: SearchResult) -> NoFeasiblePlan:
    """Diagnose an empty search: the binding constraint and relaxations, each one tried before it is named."""
    space = Space(problem, problem.cluster.num_devices)
    relaxations = _helpful(problem)
    if len(space.cores) == 0:
        reason, count = max(space.pruned.items(), key=lambda item: item[1], default=("the space is empty", 0))
        return NoFeasiblePlan(
            f"no strategy is legal on {problem.cluster.num_devices} devices; {count} choices fail the rule '{reason}'",
            binding=reason,
            relaxations=relaxations or ("change the number of devices, the global batch size or the pins",),
            pruned=result.pruned,
        )
    if int(space.leaf_counts(space.cores).sum()) == 0:
        return NoFeasiblePlan(
            f"the pins leave nothing that target {problem.constraints.target} can run"
            f" (pinned: {', '.join(f'{name}={value}' for name, value in space.pins.items()) or 'nothing'})",
            binding="pins",
            relaxations=relaxations or ("drop a pin, or choose another --target",),
            pruned=result.pruned,
        )
    if result.pruned.get("target rules", 0) and _feasible(problem):
        return NoFeasiblePlan(
            f"every strategy that fits is refused by the rules of {problem.constraints.target}",
            binding=f"rules of {problem.constraints.target}",
            relaxations=relaxations or ("choose another --target",),
            pruned=result.pruned,
        )
    hardware = hardware_of(problem.cluster, problem.workload.precision, problem.profile)
    limit = memory_limit_bytes(problem, hardware)
    factor = next((value for value in FACTORS if _feasible(problem, limit * value)), None)
    need = "more than 100 x" if factor is None else f"about {limit * factor / 2**30:.0f} GiB"
    return NoFeasiblePlan(
        f"nothing fits the memory: {problem.model.name} on {problem.cluster.num_devices} x {hardware.pool.device.name}"
        f" needs {need} a device, {limit / 2**30:.1f} GiB may be used"
        f" ({hardware.memory_bytes / 2**30:.1f} GiB less {problem.constraints.memory_margin_fraction:.0%} margin)",
        binding="device memory",
        relaxations=relaxations or ("use far more devices, or a device with more memory",),
        pruned=result.pruned,
    )


def _helpful(problem: Problem) -> tuple[str, ...]:
    """Relaxations that give a plan; of several device counts the smallest only."""
    found: list[str] = []
    for text, changed in _relaxations(problem):
        if text.startswith("use ") and found and found[-1].startswith("use "):
            continue
        if _feasible(changed):
            found.append(text)
    return tuple(found)


def _relaxations(problem: Problem) -> list[tuple[str, Problem]]:
    """Changes to try, smallest first."""
    constraints, workload, cluster = problem.constraints, problem.workload, problem.cluster
    tries: list[tuple[str, Problem]] = []
    for name in constraints.pins:
        pins = {key: value for key, value in constraints.pins.items() if key != name}
        tries.append((f"drop the pin on {name}", _with(problem, constraints={"pins": pins})))
    for name in constraints.forbids:
        rest = tuple(other for other in constraints.forbids if other != name)
        tries.append((f"allow {name}", _with(problem, constraints={"forbids": rest})))
    if constraints.target != "any":
        tries.append((f"use a target other than {constraints.target}", _with(problem, constraints={"target": "any"})))
    if constraints.memory_margin_fraction > 0.02:
        tries.append(("lower --memory-margin to 0.02", _with(problem, constraints={"memory_margin_fraction": 0.02})))
    if workload.sequence_length >= 2048:
        half = workload.sequence_length // 2
        tries.append((f"halve the sequence length to {half}", _with(problem, workload={"sequence_length": half})))
    for factor in (2, 4, 8, 16, 64):
        pool = cluster.pools[0].model_copy(update={"num_nodes": cluster.pools[0].num_nodes * factor})
        larger = problem.model_copy(update={"cluster": cluster.model_copy(update={"pools": (pool,)})})
        tries.append((f"use {cluster.num_devices * factor} devices", larger))
    return tries


def _with(problem: Problem, **changes: dict[str, object]) -> Problem:
    parts = {name: getattr(problem, name).model_copy(update=update) for name, update in changes.items()}
    return problem.model_copy(update=parts)


def _feasible(problem: Problem, limit_bytes: float | None = None) -> bool:
    """Whether some strategy could fit, by the memory bound alone."""
    try:
        hardware = hardware_of(problem.cluster, problem.workload.precision, problem.profile)
        space = Space(problem, problem.cluster.num_devices)
        cores = space.cores
    except MeshwrightError:
        return False
    if len(cores) == 0:
        return False
    costs = CostModel(problem.model, problem.workload, hardware, space.reliefs)
    limit = memory_limit_bytes(problem, hardware) if limit_bytes is None else limit_bytes
    smallest = np.argsort(cores.micro_batch_size * cores.num_microbatches / (cores.tp * cores.cp), kind="stable")
    picked = cores.take(smallest[np.linspace(0, len(smallest) - 1, min(MOST_CORES, len(smallest))).astype(int)])
    key = np.zeros(len(picked), dtype=np.int64)
    layouts, key = space.layouts(picked, key)
    rows, key = space.shardings(layouts, key)
    rows, key = space.leaves(rows, key)
    if len(rows) == 0:
        return False
    bounds = lower_bounds_s(BoundTerms(costs, rows, costs.rows(rows)), limit)
    return bool(np.isfinite(bounds).any())
