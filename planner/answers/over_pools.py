"""Plans over several kinds of devices: why their layers are split so, what binds, and what another choice would give.

A plan over pools is searched by ``planner.search.pools``; asked again, its question is made of the nodes that it uses.
Sentences about a moved layer scale a stage's time and memory by its layers, so they are first-order: embedding and head
move with no layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planner.errors import DocumentInvalid
from planner.plan.plan import Plan, StagePlan
from planner.question.problem import Problem
from profiles.cluster import Cluster, Pool

GIB = 2**30
_FEW = 0.02
"""Share of a stage's time below which two stages count as equally long."""


@dataclass(frozen=True, slots=True)
class _PoolStages:
    """A kind of nodes, and the stages that stand on it."""

    name: str
    pools: tuple[Pool, ...]
    stages: tuple[StagePlan, ...]

    @property
    def layers(self) -> int:
        """Layers on the pool."""
        return sum(stage.layers for stage in self.stages)

    @property
    def layer_s(self) -> float:
        """Time of a micro-batch for one layer on one stage of the pool."""
        return sum(map(_pace, self.stages)) / max(self.layers, 1)


def is_over_pools(plan: Plan) -> bool:
    """Whether a plan's pipeline runs on several kinds of devices."""
    return len({pool.name for pool in plan.problem.cluster.pools}) > 1


def _pace(stage: StagePlan) -> float:
    return stage.forward_s + stage.backward_s


def _parts(plan: Plan) -> tuple[_PoolStages, ...]:
    """The pools in the order of their ranks, each with its stages; all stages have as many devices."""
    each = plan.problem.cluster.num_devices // len(plan.stages)
    parts: list[_PoolStages] = []
    first = 0
    for name in dict.fromkeys(pool.name for pool in plan.problem.cluster.pools):
        pools = tuple(pool for pool in plan.problem.cluster.pools if pool.name == name)
        count = sum(pool.num_devices for pool in pools) // each
        parts.append(_PoolStages(name, pools, plan.stages[first : first + count]))
        first += count
    return tuple(parts)


def split_sentences(plan: Plan) -> tuple[str, ...]:
    """Why this split of layers, what binds on each pool, and what moving a layer would do."""
    return tuple(_sentences(plan))


def _sentences(plan: Plan) -> Iterator[str]:
    parts = _parts(plan)
    slowest = max(plan.stages, key=_pace)
    home = next(part for part in parts if slowest in part.stages)
    yield (
        f"Stage {slowest.stage} on {home.name} sets the pace: {slowest.layers} layers take "
        f"{_pace(slowest) * 1e3:.1f} ms a micro-batch."
    )
    for part in parts:
        fullest = max(part.stages, key=lambda stage: stage.peak_memory_bytes.total)
        layers = ", ".join(str(stage.layers) for stage in part.stages)
        held, room = fullest.peak_memory_bytes.total / GIB, part.pools[0].device.memory_bytes / GIB
        waits = 1 - min(map(_pace, part.stages)) / _pace(slowest)
        yield (
            f"{part.name} holds {part.layers} of {plan.problem.model.num_layers} layers ({layers}); one takes "
            f"{part.layer_s * 1e3:.2f} ms there, its stages wait up to {waits:.1%} of each micro-batch, and the "
            f"fullest holds {held:.1f} of {room:.0f} GiB."
        )
    yield _moved(plan, parts, slowest, home)


def _moved(plan: Plan, parts: tuple[_PoolStages, ...], slowest: StagePlan, home: _PoolStages) -> str:
    """What one layer fewer on the slowest stage would do where it goes."""
    if slowest.layers < 2:
        return f"Stage {slowest.stage} has one layer, which cannot be split."
    others = [(part, stage) for part in parts for stage in part.stages if stage is not slowest]
    if not others:
        return "There is no other stage for a layer to go to."
    times = [(_pace(stage) + _pace(stage) / max(stage.layers, 1), part, stage) for part, stage in others]
    grown, part, stage = min(times, key=lambda each: (each[0], each[2].stage))
    left = max([_pace(slowest) * (1 - 1 / slowest.layers), grown, *(
        _pace(each) for _, each in others if each is not stage)])  # fmt: skip
    gain = 1 - left / _pace(slowest)
    where = f"stage {stage.stage} on {part.name}"
    activations = stage.peak_memory_bytes.total / max(stage.layers, 1)
    if gain > _FEW and stage.peak_memory_bytes.total + activations > part.pools[0].device.memory_bytes:
        return f"One layer more on {where} would shorten the pace by {gain:.1%}, but its memory has no room for it."
    if gain > _FEW:
        return (
            f"By these times one layer more on {where} would shorten the pace by {gain:.1%}; what the search counts "
            "beside it (sends, gradients, recompute, memory) makes it no faster."
        )
    return (
        f"Moving one layer from stage {slowest.stage} to {where} would make that one take {grown * 1e3:.1f} ms: the "
        f"pace would be {left / _pace(slowest) - 1:+.1%}."
    )


def clusters_of(plan: Plan, more: Mapping[str, int] | None = None) -> tuple[Cluster, ...]:
    """The used nodes as one cluster a pool; ``more``: further nodes by the pool's name."""
    found = []
    for part in _parts(plan):
        per_node = max(pool.devices_per_node for pool in part.pools)
        devices = sum(pool.num_devices for pool in part.pools)
        if devices % per_node and more:
            raise DocumentInvalid(f"{part.name} is used by parts of a node", where="plan", hint="plan whole nodes")
        size = {"num_nodes": devices // per_node + (more or {}).get(part.name, 0)}
        size |= {"devices_per_node": devices} if devices < per_node else {}
        pool = part.pools[0].model_copy(update={**size, "num_nodes": max(size["num_nodes"], 1)})
        found.append(Cluster(name=part.name, pools=(pool,)))
    return tuple(found)


def found_over_pools(plan: Plan, problem: Problem, more: Mapping[str, int] | None = None) -> Plan:
    """The best plan over the pools of a plan for a question with other pins or nodes.

    Raises NoFeasiblePlan, BudgetSpent, DocumentInvalid.
    """
    from planner.search.pools.assemble import assemble_pools_plan
    from planner.search.pools.find import find_assignment
    from planner.search.pools.launchable import launchable_plan
    from planner.search.pools.problem import complete_pools_problem

    asked = complete_pools_problem(problem.model, clusters_of(plan, more), problem.workload, problem.constraints)
    return launchable_plan(assemble_pools_plan(asked, find_assignment(asked, None)))


def pool_nodes(plan: Plan) -> dict[str, Any]:
    """Names of the pools and their numbers of whole nodes."""
    return {cluster.name: cluster.pools[0].num_nodes for cluster in clusters_of(plan)}
