"""The traffic of a plan: each kind of collective of each stage, with its ranks, bytes and count.

The sizes are those that the cost model prices (``planner.predict.cost.payload`` and
``planner.predict.cost.step_payload``), without what it hides behind compute.  Convention, for one rank of a pipeline
stage and one step:

===============  =======================================================================
all_reduce       bytes of the tensor that is summed
all_gather       bytes of the gathered output
reduce_scatter   bytes of the input, before it is cut
all_to_all       bytes of what the rank holds before the exchange, its own part included
send_recv        bytes of the messages that the rank sends
===============  =======================================================================

So these are payloads, not bytes on a wire: a ring all_gather over n ranks moves (n - 1) / n of its payload through
each of them, an all_reduce twice that.  Ring context parallelism is billed as gathers of keys and values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from planner.model.operator import Operator
from planner.model.operators import head_operators, layer_operators, mtp_operators, tower_operators
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan, StagePlan
from planner.predict.collective import Collective
from planner.predict.cost.as_run import rows_as_run
from planner.predict.cost.hardware import Hardware, hardware_of
from planner.predict.cost.model_cost import EndTable, LayerTable, ModelCost
from planner.predict.cost.payload import (
    Exchange,
    TrafficAxis,
    column_reductions,
    dispatched_fraction,
    exchanges,
    repeated,
    runs_again,
    vocabulary_exchanges,
)
from planner.predict.cost.regathers import gathers_a_step
from planner.predict.cost.row_cost import CostModel, RowCost
from planner.predict.cost.step_payload import (
    DataParallelism,
    GatheredUnit,
    StepExchange,
    gathers_per_microbatch,
    hop_parts,
    microbatch_exchanges,
    reduction_buckets,
    reference_exchange,
    step_exchanges,
    table_bytes,
)
from planner.predict.cost.towers import tower_keys
from planner.predict.cost.two_sequences import keys_by_kind
from planner.predict.layer_keys import LayerKeys
from planner.predict.memory.activations import replayed_shares
from planner.predict.physics.physics import Physics
from planner.predict.trained_operators import layer_as_run, trained_operators
from planner.strategy.rows import StrategyRows, relief_of
from planner.strategy.schedules import V_SCHEDULES
from planner.strategy.strategy import Relief, Strategy
from profiles.cluster import Cluster
from solver.arrays import Array


@dataclass(frozen=True, slots=True)
class Traffic:
    """One kind of collective of one pipeline stage: payload of one rank and one step (see the module's table)."""

    axis: TrafficAxis
    operation: Collective
    stage: int
    group_size: int
    bytes_per_step: float
    calls_per_step: float


def communication_bill(plan: Plan, physics: Physics) -> tuple[Traffic, ...]:
    """Everything that a rank of each stage sends in one step, by axis and operation; groups of one are left out."""
    return _Bill(plan, physics).traffic()


def busiest_stages(bill: Sequence[Traffic]) -> tuple[Traffic, ...]:
    """For each axis, operation and group size the line of the stage that sends most, the first of equals."""
    most: dict[tuple[TrafficAxis, Collective, int], Traffic] = {}
    for line in bill:
        key = (line.axis, line.operation, line.group_size)
        if key not in most or line.bytes_per_step > most[key].bytes_per_step:
            most[key] = line
    return tuple(most.values())


def most_of_a_rank(bill: Sequence[Traffic], axes: Collection[TrafficAxis]) -> float:
    """Payload bytes that a rank sends in one step for some axes, all its operations, on the stage that sends most."""
    sums = defaultdict[int, float](float)
    for line in bill:
        if line.axis in axes:
            sums[line.stage] += line.bytes_per_step
    return max(sums.values(), default=0.0)


TRAFFIC_COLUMNS = ("axis", "collective", "ranks", "busiest stage", "payload a rank and step", "calls", "each")


def traffic_words(line: Traffic) -> tuple[str, ...]:
    """One line for people, in the order of ``TRAFFIC_COLUMNS``."""
    return (
        line.axis,
        line.operation,
        str(line.group_size),
        str(line.stage),
        data_size(line.bytes_per_step),
        f"{line.calls_per_step:,.0f}",
        data_size(line.bytes_per_step / line.calls_per_step),
    )


def data_size(size_bytes: float) -> str:
    """``1.50 GiB``, ``12.00 MiB``, ``3.10 KiB`` or ``17 B``, for people."""
    for unit, bytes_each in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= bytes_each:
            return f"{size_bytes / bytes_each:,.2f} {unit}"
    return f"{size_bytes:.0f} B"


def _one_kind(cluster: Cluster) -> Cluster:
    """As many devices, all of the first pool's kind: what a strategy sends is the same on every kind that runs it."""
    pool = cluster.pools[0]
    if len(cluster.pools) == 1:
        return cluster
    nodes = -(-cluster.num_devices // pool.devices_per_node)
    return cluster.model_copy(update={"pools": (pool.model_copy(update={"num_nodes": nodes}),), "fabric": ()})


Unit = tuple[float, float, float]
"""Of a layer or end: local parameters that learn, bytes of frozen ones, bytes of a reference model."""


def _frozen(table: LayerTable | EndTable, kind: str, at: tuple[int, ...]) -> tuple[float, float]:
    """Frozen bytes and bytes of the reference model of one layer or end."""
    frozen, reference = (getattr(table, f"{name}_{kind}_bytes") for name in ("frozen", "reference"))
    return float(frozen[at]), float(reference[at])


class _Bill:
    """What the parts of the bill need to know about the plan."""

    def __init__(self, plan: Plan, physics: Physics) -> None:
        problem = plan.problem
        self.plan = plan
        self.strategy: Strategy = plan.chosen()
        self.model: ModelSpec = problem.model
        # Measurements and calibrations change seconds, not bytes: neither is read.
        physics = replace(physics, dropout=problem.workload.dropout)
        # bf16 and fp16 send the same bytes, and a device may have a rate for one of them only.
        precision = problem.workload.matmul_format.replace("fp16", "bf16")
        self.hardware: Hardware = hardware_of(_one_kind(problem.cluster), precision, physics=physics)
        reliefs = (Relief(), relief_of(self.strategy))
        self.costs = CostModel(self.model, problem.workload, self.hardware, reliefs)
        self.row = rows_as_run(StrategyRows.of([self.strategy], reliefs), self.hardware.physics)
        keyed = self.costs.keyed(self.row)
        self.table: ModelCost = keyed[0]
        self.cost: RowCost = self.costs.rows(self.row, keyed)
        kinds, workload = range(len(self.model.layer_kinds)), problem.workload
        training = workload.trained
        self.keyed = keys_by_kind(self.model, self.table.keys)
        self.kinds = [trained_operators(layer_as_run(self.model, kind, workload), training) for kind in kinds]
        self.references = [layer_operators(self.model, kind) for kind in kinds] if training.runs_reference else []

    def traffic(self) -> tuple[Traffic, ...]:
        """All lines, those of one stage, axis, operation and group size added up."""
        sums: dict[tuple[int, TrafficAxis, Collective, int], list[float]] = {}
        for stage in self.plan.stages:
            for line in self._stage(stage):
                if line.group_size > 1 and line.bytes_per_step > 0:
                    key = (line.stage, line.axis, line.operation, line.group_size)
                    total = sums.setdefault(key, [0.0, 0.0])
                    total[0] += line.bytes_per_step
                    total[1] += line.calls_per_step
        order = {axis: index for index, axis in enumerate(get_args(TrafficAxis))}
        lines = (
            Traffic(axis, operation, stage, group, *total) for (stage, axis, operation, group), total in sums.items()
        )
        return tuple(sorted(lines, key=lambda line: (line.stage, order[line.axis], line.operation, line.group_size)))

    def _stage(self, stage: StagePlan) -> Iterator[Traffic]:
        microbatches = self.strategy.num_microbatches
        for each in (*self._layers(stage), *self._ends(stage)):
            calls = microbatches * float(each.forward[0] + each.backward[0])
            size = float(each.size_bytes[0])
            group = round(float(each.group_size[0]))
            yield Traffic(each.axis, each.operation, stage.stage, group, calls * size, calls)
        yield from self._weights(stage)
        yield from self._hops(stage.stage)
        yield from self._shared_table(stage.stage)

    def _exchanges(self, operators: Sequence[Operator], keys: LayerKeys | None = None) -> tuple[Exchange, ...]:
        rates, keys = self.hardware.rates, keys or self.table.keys
        dispatched = dispatched_fraction(narrow=self.hardware.physics.narrow_dispatch, eight_bit=rates.casts)
        times = column_reductions(operators) if self.hardware.physics.reduces_each_column else {}
        return tuple(
            each
            for op in operators
            for each in exchanges(
                op, keys, narrow=rates.gathered_bytes, column_reductions=times.get(op.name, 1.0), dispatched=dispatched
            )
        )

    def _layers(self, stage: StagePlan) -> Iterator[Exchange]:
        """Collectives of the layers of a stage for one micro-batch; a replay runs its forward ones again."""
        kinds, recompute = self.model.layer_kind_sequence(), stage.recompute
        relief = Relief(recompute.policy, self.strategy.recompute_modules)
        relieved, keyed = recompute.num_layers_per_chunk or (0,) * len(stage.chunks), self.keyed
        for chunk, count in zip(stage.chunks, relieved, strict=True):
            for offset in range(chunk.num_layers):
                kind = kinds[chunk.first_layer + offset]
                operators = self.kinds[kind]
                yield from self._exchanges(operators, keyed[kind])
                if self.references:
                    for each in self._exchanges(self.references[kinds[chunk.first_layer + offset]]):
                        yield replace(each, backward=np.zeros_like(each.backward))
                if offset < count:
                    yield from self._replays(operators, relief, keyed[kind])

    def _replays(self, operators: Sequence[Operator], relief: Relief, keys: LayerKeys) -> Iterator[Exchange]:
        replayed = frozenset(replayed_shares(operators, relief, self.hardware.physics))
        for operator in operators:
            for each in self._exchanges((operator,), keys):
                if runs_again(each.axis, operator.name, relief, replayed):
                    yield replace(each, backward=np.zeros_like(each.backward))

    def _ends(self, stage: StagePlan) -> Iterator[Exchange]:
        """Collectives of embedding, towers, head and multi-token prediction for one micro-batch."""
        keys, hidden = self.table.keys, self.model.hidden_size
        if self.model.denoiser is not None:  # its ends are whole on every tp rank
            return
        if any(chunk.has_embedding for chunk in stage.chunks):
            yield from vocabulary_exchanges(keys, hidden, forward=True)
            if self.model.encoder is not None and self.model.encoder.front is None:
                yield from vocabulary_exchanges(keys.source, self.model.encoder.hidden_size or hidden, forward=True)
            yield from self._towers()
        if any(chunk.has_head for chunk in stage.chunks):
            yield from vocabulary_exchanges(keys, hidden, forward=False)
            if self.model.mtp is not None:
                operators = (*head_operators(self.model), *self.kinds[self.model.mtp.kind], *mtp_operators(self.model))
                yield from repeated(self._exchanges(operators), self.model.mtp.num_layers)

    def _towers(self) -> Iterator[Exchange]:
        workload = self.plan.problem.workload
        for tower in self.model.towers:
            items, frozen = workload.items_per_sample(tower.modality), workload.trained.freezes(tower.modality)
            for run in tower.runs if items else ():
                keys = tower_keys(self.table.keys, run, items)
                for operator in tower_operators(run):
                    for each in exchanges(operator, keys, narrow=self.hardware.rates.gathered_bytes):
                        one_way = replace(each, backward=np.zeros_like(each.backward)) if frozen else each
                        yield from repeated((one_way,), run.count)

    def _weights(self, stage: StagePlan) -> Iterator[Traffic]:
        """Gradients and weights over data-parallel ranks: once a step, and every micro-batch."""
        dense, expert = self._units(stage)
        yield from self._weights_of(stage.stage, dense, self.cost.dense_parallel, "dp_shard", "dp_replicate")
        yield from self._weights_of(stage.stage, expert, self.cost.expert_parallel, "edp_shard", "edp_replicate")

    def _weights_of(
        self, stage: int, units: list[Unit], parallel: DataParallelism, shard: TrafficAxis, replica: TrafficAxis
    ) -> Iterator[Traffic]:
        """The same for one kind of parameter: ``units`` are the layers and ends."""
        workload, framework = self.plan.problem.workload, self.hardware.physics
        microbatches, total = float(self.strategy.num_microbatches), np.array([sum(unit[0] for unit in units)])

        def line(each: StepExchange, times: float, calls: float) -> Traffic:
            axis, group = (replica if each.across_replicas else shard), round(float(each.groups.size[0]))
            size = float(each.size_bytes[0]) if each.happens[0] else 0.0
            return Traffic(axis, each.operation, stage, group, times * size, calls)

        for each in step_exchanges(total, parallel, workload, framework, self.hardware.pool.device.architecture):
            times = self._gathers(each)
            yield line(each, times, times * self._calls(each, total, parallel))
        for unit in units:
            one = GatheredUnit(np.array([unit[0]]), parallel, np.array([unit[1]]), np.array([unit[2]]))
            gather, *reductions = microbatch_exchanges(one, workload, framework)
            gathers = float(gathers_per_microbatch(parallel, framework)[0]) * microbatches
            yield line(gather, gathers, gathers)
            yield line(reference_exchange(one, framework), microbatches, microbatches)
            for each in reductions:
                yield line(each, microbatches, microbatches)

    def _gathers(self, each: StepExchange) -> float:
        """How often a step gathers what one gather would do: more often where a runtime drops chunks."""
        dropped = each.operation == "all_gather" and self.hardware.physics.drops_chunks
        return float(gathers_a_step(self.row)[0]) if dropped else 1.0

    def _calls(self, each: StepExchange, parameters: Array, parallel: DataParallelism) -> float:
        """Collectives in which a back-end sends what it sends once a step."""
        framework, calls = self.hardware.physics, np.ones(1)
        if each.operation == "all_gather" and framework.gather_by_tensor:
            calls = parameters * parallel.tensors_per_parameter
        elif each.operation != "all_gather" and framework.reduction_bucket_bytes:
            calls = reduction_buckets(parameters, parallel, framework)
        return max(float(calls[0]), 1.0)

    def _units(self, stage: StagePlan) -> tuple[list[Unit], list[Unit]]:
        """Each layer and end of a stage, dense and expert."""
        kinds, cost = self.model.layer_kind_sequence(), self.cost
        held = [kinds[chunk.first_layer + offset] for chunk in stage.chunks for offset in range(chunk.num_layers)]
        layers, first, last = self.table.layers, self.table.embedding, self.table.head
        dense = [(float(cost.layer_dense[0, kind]), *_frozen(layers, "dense", (0, kind))) for kind in held]
        expert = [(float(cost.layer_expert[0, kind]), *_frozen(layers, "expert", (0, kind))) for kind in held]
        if any(chunk.has_embedding for chunk in stage.chunks):
            dense.append((float(cost.embedding_dense[0]), *_frozen(first, "dense", (0,))))
        if any(chunk.has_head for chunk in stage.chunks):
            dense.append((float(cost.head_dense[0]), *_frozen(last, "dense", (0,))))
            expert.append((float(cost.head_expert[0]), *_frozen(last, "expert", (0,))))
        return dense, expert

    def _hops(self, stage: int) -> Iterator[Traffic]:
        """Hidden states to the next stage and their gradients to the one before, for every border of two chunks."""
        strategy, microbatches = self.strategy, float(self.strategy.num_microbatches)
        whole = float(self.table.entry_bytes[0])
        parts = float(hop_parts(self.row, self.hardware.physics)[0])
        borders = [
            (strategy.chunk_stage(chunk), strategy.chunk_stage(chunk + 1)) for chunk in range(strategy.num_chunks - 1)
        ]
        for sender, receiver in (
            pair for here, there in borders if here != there for pair in ((here, there), (there, here))
        ):
            if stage == sender:
                yield Traffic("pp", "send_recv", stage, strategy.pp, microbatches * whole / parts, microbatches)
            if stage == receiver and parts > 1:
                yield Traffic("tp", "all_gather", stage, strategy.tp, microbatches * whole, microbatches)

    def _shared_table(self, stage: int) -> Iterator[Traffic]:
        """First and last stage sum the gradients of their copies of the token table, once a step."""
        strategy = self.strategy
        if strategy.pp == 1 or strategy.schedule in V_SCHEDULES or stage not in (0, strategy.pp - 1):
            return
        copied = self.table.table_copy_parameters
        size = table_bytes(copied, self.row.zero, self.cost.dense_parallel, self.plan.problem.workload)
        yield Traffic("pp", "all_reduce", stage, 2, float(size[0]), 1.0)
