"""The step time of a plan with its nodes in some order: rates on the fabric graph, then the plan's own cost model.

Each axis gets the rate of its slowest group on the graph (``fair_rates``: all groups of a phase at once, those of data
parallelism beside the exchanges of experts), with the nodes under their switches, and with nodes in order on the plan's
own fabric.  The ratio of the two stretches every collective of the axis in the cost model, which is then asked again:
so windows hide what they hid, and what outgrows them shows, as in every prediction.  In an order that is as good as
the plan's own fabric the step time is the plan's.

Pipeline transfers: a pipeline waits for its hops in turn, so the sums of their times are compared, not the slowest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from planner.answers.placement.axes import TERMS, PlanAxis, Term
from planner.backends.asked import problem_hardware, problem_of
from planner.plan.plan import Plan
from planner.plan.relief import of_stages
from planner.predict.candidate import Split
from planner.predict.collective import Collective, Groups
from planner.predict.cost.hardware import Hardware
from planner.predict.distinct_parts import Routing
from planner.question.problem import Problem
from planner.search.evaluate import evaluate_split
from planner.search.row_context import RowContext, strategy_context
from profiles.cluster import Cluster
from profiles.fabric.build import fabric_of
from profiles.fabric.fabric import Fabric
from profiles.fabric.shares import fair_rates
from profiles.fabric.traffic import joined, load_of
from profiles.topology import NetworkTier
from solver.arrays import Array, Mask

Key = tuple[str, int, int]
"""Pattern, group size and stride."""


@dataclass(frozen=True, slots=True)
class _Stretched(Hardware):
    """Hardware on which collectives of some groups take longer."""

    stretch: Mapping[Key, float] = field(default_factory=dict)

    def collective_s(self, op: Collective, size_bytes: Array, group_size: Array, stride: Array) -> Array:
        """Seconds of one collective."""
        seconds = Hardware.collective_s(self, op, size_bytes, group_size, stride)
        return seconds * self._longer(op, group_size, stride)

    def groups_collective_s(
        self,
        op: Collective,
        size_bytes: Array,
        groups: Groups,
        where: Mask | None = None,
    ) -> Array:
        """Seconds of one collective over groups."""
        seconds = Hardware.groups_collective_s(self, op, size_bytes, groups, where)
        if self.measured_links is not None:
            return seconds  # asked of ``collective_s``
        size, stride = (each if where is None else each[where] for each in (groups.size, groups.stride))
        return seconds * self._longer(op, size, stride)

    def _once_s(self, size_bytes: Array, group_size: Array, stride: Array, routing: Routing) -> Array:
        seconds = Hardware._once_s(self, size_bytes, group_size, stride, routing)
        return seconds if self.measured_links is not None else seconds * self._longer("all_to_all", group_size, stride)

    def _longer(self, op: Collective, group_size: Array, stride: Array) -> Array:
        pattern = op if op in ("all_to_all", "send_recv") else "node_ring"
        size, stride = np.broadcast_arrays(group_size, stride)
        found = np.ones(size.shape)
        for (name, members, apart), times in self.stretch.items():
            if name == pattern:
                same = (size == members) & ((stride == apart) if name != "send_recv" else stride >= apart)
                found = np.where(same, times, found)
        return found


class Judge:
    """A plan and its axes; knows the rates on the plan's own fabric."""

    def __init__(self, plan: Plan, axes: Sequence[PlanAxis], num_nodes: int) -> None:
        self.plan, self.axes = plan, tuple(axes)
        self.cluster = cluster_of_nodes(plan.problem.cluster, num_nodes)
        self.problem: Problem = problem_of(plan)
        self.hardware = problem_hardware(self.problem)
        chunks = sorted((chunk for stage in plan.stages for chunk in stage.chunks), key=lambda chunk: chunk.chunk)
        self.split = Split(tuple(chunk.num_layers for chunk in chunks), of_stages(plan))
        self.aligned = self.seconds_a_byte(fabric_of(self.cluster))
        self.context: RowContext = strategy_context(self.problem, self.hardware, plan.chosen())
        self.unplaced_s = evaluate_split(self.context, self.split).step_time_s

    def seconds_a_byte(self, fabric: Fabric) -> list[float]:
        """[axis]: seconds a byte of the slowest group's buffer; of pipeline borders the slowest pipeline's mean."""
        loads = [load_of(fabric, axis.groups, axis.pattern) for axis in self.axes]
        found = [0.0] * len(self.axes)
        for term in TERMS:
            members = [
                at for at, axis in enumerate(self.axes) if axis.term == term or (term, axis.term) == ("dp", "ep")
            ]
            if not any(self.axes[at].term == term for at in members):
                continue
            rates, first, hops = fair_rates(fabric, joined([loads[at] for at in members])), 0, list[Array]()
            for at in members:
                own = rates[first : first + loads[at].num_collectives]
                first += loads[at].num_collectives
                if self.axes[at].term == term:
                    found[at] = 1.0 / float(own.min())
                hops.append(1.0 / own)
            if term == "pp":
                mean = float(np.mean(hops, axis=0).max())
                for at in members:
                    found[at] = mean
        return found

    def stretches(self, tiers: Sequence[NetworkTier]) -> list[float]:
        """[axis]: how many times as long it takes as on the plan's own fabric."""
        placed = self.seconds_a_byte(fabric_of(self.cluster, tiers))
        return [there / here if here > 0 else 1.0 for there, here in zip(placed, self.aligned, strict=True)]

    def step_time_s(self, stretches: Sequence[float]) -> float:
        """The plan's step time, with what the stretched collectives add to it."""
        if all(abs(each - 1.0) < 1e-9 for each in stretches):
            return self.plan.step_time_s
        longer: dict[Key, float] = {}
        for axis, times in zip(self.axes, stretches, strict=True):
            apart = self.cluster.pools[0].devices_per_node if axis.term == "pp" else axis.stride
            key = (axis.pattern, axis.size, apart)
            longer[key] = max(longer.get(key, 0.0), times)
        given = {each.name: getattr(self.hardware, each.name) for each in fields(Hardware)}
        hardware = _Stretched(**given, stretch=longer)
        context = strategy_context(self.problem, hardware, self.plan.chosen())
        return self.plan.step_time_s + evaluate_split(context, self.split).step_time_s - self.unplaced_s

    def phase_seconds(self, seconds_a_byte: Sequence[float]) -> dict[Term, float]:
        """Line-rate seconds of each phase: those of its axes added up, of pipeline borders the longest."""
        found: dict[Term, float] = {}
        for axis, each in zip(self.axes, seconds_a_byte, strict=True):
            seconds = float(axis.group_bytes.max()) * each
            found[axis.term] = (
                max(found.get("pp", 0.0), seconds) if axis.term == "pp" else found.get(axis.term, 0.0) + seconds
            )
        return found


def cluster_of_nodes(cluster: Cluster, num_nodes: int) -> Cluster:
    """So many nodes of a cluster of one pool."""
    return cluster.model_copy(update={"pools": (cluster.pools[0].model_copy(update={"num_nodes": num_nodes}),)})
