"""The cost of each strategy, before the layers are dealt to stages.

Gathers the model's costs by sharding key and adds what depends on the rest of the strategy: ZeRO traffic, the hop
between stages, bytes of state a parameter.  Everything that the bounds and the exact inner solve read is here, so
both see the same numbers.  Shape letters: R rows, N layer kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.model.parameters import weight_tensors
from planner.model.spec import ModelSpec
from planner.predict.cost.as_run import rows_as_run
from planner.predict.cost.data_parallel import TailCost, tail_s, with_traffic
from planner.predict.cost.fixed_bytes import FixedBytes
from planner.predict.cost.frozen_weights import FrozenBytes, frozen_bytes, frozen_working_bytes, gathered_unit
from planner.predict.cost.hardware import COMMUNICATOR_BYTES, FRAMEWORK_BYTES, Hardware
from planner.predict.cost.layer_traffic import layer_times_s
from planner.predict.cost.model_cost import ModelCost, layer_seconds, model_cost
from planner.predict.cost.newton_schulz import with_orthogonalization
from planner.predict.cost.regathers import exposed_a_microbatch_s, uncovered_s
from planner.predict.cost.short_axis import most_of_row, planes_at, rows_at
from planner.predict.cost.stage_hop import hop_stride, stage_hop_s, stage_host_s
from planner.predict.cost.step_payload import DataParallelism, hop_parts, parallelisms, table_bytes
from planner.predict.cost.two_sequences import own_keys
from planner.predict.cost.uneven_items import spread_column
from planner.predict.cost.uneven_rows import uneven_column
from planner.predict.layer_keys import KEY_COLUMNS, LayerKeys, PackedKeys
from planner.predict.memory.framework_memory import (
    framework_buffer_bytes,
    with_framework_gradients,
    with_narrow_copies,
)
from planner.predict.memory.moments import MomentTerms, states_by_moment
from planner.predict.memory.states import StateBytes, gradient_bytes, state_bytes
from planner.predict.memory.zero_memory import working_copy_bytes, zero_states
from planner.predict.packed_rows import packed_rows
from planner.question.problem import Workload
from planner.question.routing import load_of
from planner.strategy.rows import StrategyRows, distinct_rows, v_placed, waiting_head
from planner.strategy.strategy import Relief
from solver.arrays import Array, Ints, Mask

Keyed = tuple[ModelCost, Ints]
"""Cost table of distinct sharding keys, and each row's key."""


@dataclass(frozen=True, slots=True)
class RowCost:
    """Costs by row; layer columns are [R, N], the rest [R].

    Times of layers and ends count compute, exposed communication and ZeRO traffic of one micro-batch;
    ``relief_s`` is what the row's memory relief adds to a layer that uses it; ``stage_host_s`` what every stage loses
    on every micro-batch (a calibrated host overhead), under which nothing hides.
    """

    layer_forward_s: Array
    layer_backward_s: Array
    layer_weight_gradient_s: Array
    relief_s: Array
    saved_bytes: Array
    relieved_bytes: Array
    layer_dense: Array
    """Local parameters that learn, as of the ends."""
    layer_expert: Array
    frozen: FrozenBytes
    embedding_forward_s: Array
    embedding_backward_s: Array
    head_forward_s: Array
    head_backward_s: Array
    embedding_dense: Array
    head_dense: Array
    head_expert: Array
    embedding_saved: Array
    head_saved: Array
    head_transient: Array
    embedding_weight_gradient_s: Array
    head_weight_gradient_s: Array
    table_reduce_s: Array
    hop_s: Array
    stage_host_s: Array
    regather_s: Array
    """What every stage waits for dropped chunks on each micro-batch; 0 before ``under_schedules``."""
    uncovered_s: Array
    """What gathering a stage's parameters once takes beyond a micro-batch's compute, where chunks are dropped."""
    fixed: FixedBytes
    fixed_bytes: Array
    dense_state: StateBytes
    expert_state: StateBytes
    dense_parallel: DataParallelism
    expert_parallel: DataParallelism
    forward_window_s: Array
    backward_window_s: Array
    dense_window_share: Array
    key: Ints
    bubbles_keep: Array
    """1 where a loop over all stages keeps in its bubbles, too."""
    warmup_chunks: Array
    """Chunks that an interleaved pipeline runs forward beyond its usual warm-up."""
    apart: MomentTerms | None
    """What the moments of a step need where each is billed for itself."""

    def under_schedules(self, rows: StrategyRows) -> RowCost:
        """Costs of ``rows``, which differ from these in chunks and in schedules of the same class alone."""
        regather_s = exposed_a_microbatch_s(rows, self.uncovered_s)
        fixed_bytes = self.fixed.total(rows.pp, rows.vpp, rows.schedule, rows.num_microbatches, rows.group)
        return replace(self, fixed_bytes=fixed_bytes, regather_s=regather_s)

    @property
    def layer_s(self) -> Array:
        """Seconds of one layer and one micro-batch without relief: [R, N]."""
        return self.layer_forward_s + self.layer_backward_s

    @property
    def embedding_s(self) -> Array:
        """Seconds of the model's front end and one micro-batch: [R]."""
        return self.embedding_forward_s + self.embedding_backward_s

    @property
    def head_s(self) -> Array:
        """Seconds of the head and one micro-batch: [R]."""
        return self.head_forward_s + self.head_backward_s


class CostModel:
    """Costs of one model under one workload on one pool; remembers the sharding keys it has seen."""

    def __init__(self, model: ModelSpec, workload: Workload, hardware: Hardware, reliefs: Sequence[Relief]) -> None:
        self.model, self.workload = model, workload
        self.hardware, self.reliefs = hardware.under(workload), tuple(reliefs)
        self.documents = packed_rows(workload) if hardware.physics.attention != "unfused" else None
        self.kind_sequence = model.layer_kind_sequence()
        self.kind_counts = np.bincount(self.kind_sequence, minlength=len(model.layer_kinds)).astype(float)
        self._asked = model, workload, self.hardware

    def keyed(self, rows: StrategyRows) -> Keyed:
        """Cost table of the distinct sharding keys of ``rows``, and each row's key."""
        keys, key = self.keys(rows)
        return model_cost(self.model, self.workload, self.hardware, keys, self.reliefs), key

    def keys(self, rows: StrategyRows) -> tuple[LayerKeys, Ints]:
        """The distinct sharding keys of ``rows``, and each row's."""
        values, place = uneven_column(rows, self.documents, self.workload)
        spreads, spread = spread_column(rows, self.workload)
        distinct, key = distinct_rows([*(getattr(rows, name) for name in KEY_COLUMNS), *spread, *place])
        columns = {name: distinct[:, column].astype(np.float64) for column, name in enumerate(KEY_COLUMNS)}
        if spread:
            columns["spread"] = spreads[distinct[:, len(KEY_COLUMNS)]]
        columns["micro_batch_size"] *= self.workload.trained.sequences_per_sample
        tokens, routing = self.workload.sequence_length, load_of(self.workload.routing, self.model)
        if self.documents is None or values is None:
            plain = LayerKeys(**columns, sequence_length=tokens, routing=routing)
            return own_keys(self.model, self.workload, plain), key
        uneven, held = values[distinct[:, -1]], self.documents
        return PackedKeys(**columns, sequence_length=tokens, routing=routing, documents=held, uneven=uneven), key

    def layers_s(self, rows: StrategyRows) -> Array:
        """Seconds that one micro-batch takes in all layers, without relief and ZeRO-2/3 traffic: [R]."""
        keys, key = self.keys(rows)
        each_s = layer_seconds(self.model, self.workload, self.hardware, keys) @ self.kind_counts
        return np.asarray(each_s[key])

    def rows(self, rows: StrategyRows, keyed: Keyed | None = None, *, one_table: bool = False) -> RowCost:
        """Cost every row; pass ``keyed`` to reuse a cost table made for a superset of the keys.

        ``one_table``: as lean as in a V, in which head and embedding share a token table, whatever a row's schedule.
        """
        cost, key = keyed or self.keyed(rows)
        shared_table = (rows.pp == 1) | v_placed(rows) | one_table
        tensors, rows = self._tensors_per_parameter(cost, key), rows_as_run(rows, self.hardware.physics)
        shared = parallelisms(rows, tensors, cost.of_layers(key, self.kind_counts))
        dense, expert = with_orthogonalization(shared, self._asked, cost, key, shared_table)
        layers, first, last, at = cost.layers, cost.embedding, cost.head, rows.relief
        at_work = self.workload, self.hardware, self.documents
        forward_s, backward_s = layer_times_s(rows, layers, key, (dense, expert), at_work)
        front, back, head_dense, copied = self._ends_s(shared_table, cost, key, (dense, expert))
        of_model = self.model, self.workload, cost
        stages, fixed = rows.pp.astype(float), self._fixed_bytes(rows, cost, key)
        states = self._states(rows, dense, cost, key), self._states(rows, expert, cost, key)
        of_stage = (rows_at(layers.dense_parameters, key), dense), (rows_at(layers.expert_parameters, key), expert)
        held = [(each @ self.kind_counts / stages, by) for each, by in of_stage]
        window_f = (rows_at(layers.forward_compute_s, key) @ self.kind_counts) / stages
        window_b = (rows_at(layers.backward_compute_s, key) @ self.kind_counts) / stages
        hop_s = self._hop_s(rows, cost.entry_bytes[key])
        return RowCost(
            layer_forward_s=forward_s,
            layer_backward_s=backward_s,
            layer_weight_gradient_s=rows_at(layers.weight_gradient_s, key),
            relief_s=planes_at(layers.relief_s, at, key) if layers.relief_s.ndim == 3 else layers.relief_s,
            saved_bytes=rows_at(layers.saved_bytes[0], key),
            relieved_bytes=planes_at(layers.saved_bytes, at, key),
            layer_dense=rows_at(layers.dense_parameters, key),
            layer_expert=rows_at(layers.expert_parameters, key),
            frozen=frozen_bytes(of_model, key, (dense, expert), copied, rows.pp, copy_bytes=self.hardware.copy_bytes),
            embedding_forward_s=front[0],
            embedding_backward_s=front[1],
            head_forward_s=back[0],
            head_backward_s=back[1],
            embedding_dense=first.dense_parameters[key],
            head_dense=head_dense,
            head_expert=last.expert_parameters[key],
            embedding_saved=first.saved_bytes[key],
            head_saved=last.saved_bytes[key],
            head_transient=last.transient_bytes[key],
            embedding_weight_gradient_s=first.weight_gradient_s[key],
            head_weight_gradient_s=last.weight_gradient_s[key],
            table_reduce_s=self._table_reduce_s(rows, cost.table_copy_parameters[key], dense),
            hop_s=hop_s,
            stage_host_s=stage_host_s(self.hardware, rows, hop_s),
            regather_s=np.zeros(len(rows)),
            uncovered_s=uncovered_s(self.hardware, held, window_f + window_b),
            fixed=fixed,
            fixed_bytes=fixed.total(rows.pp, rows.vpp, rows.schedule, rows.num_microbatches, rows.group),
            dense_state=states[0][0],
            expert_state=with_narrow_copies(states[1][0], rows, self.hardware.expert_copy_bytes),
            dense_parallel=dense,
            expert_parallel=expert,
            forward_window_s=window_f,
            backward_window_s=window_b,
            dense_window_share=self._dense_window_share(cost, key, dense, expert),
            key=key,
            bubbles_keep=np.full(len(rows), float(self.hardware.physics.bubbles_keep)),
            warmup_chunks=rows.overlap_ep.astype(float) * self.hardware.physics.overlap_warmup_chunk,
            apart=self._apart(rows, cost, key, states),
        )

    def _ends_s(
        self, shared_table: Mask, cost: ModelCost, key: Ints, parallels: tuple[DataParallelism, DataParallelism]
    ) -> tuple[tuple[Array, Array], tuple[Array, Array], Array, Array]:
        """Forward and backward of both ends with ZeRO-2/3 traffic, the head's dense parameters, and frozen bytes.

        Frozen bytes of the token table's second copy where head and embedding share one (``shared_table``): without a
        pipeline, and in a V (arXiv 2412.19437, section 3.2.3).
        """
        first, last, (dense, expert) = cost.embedding, cost.head, parallels
        head_dense = last.dense_parameters[key] - np.where(shared_table, cost.table_copy_parameters[key], 0.0)
        at_work = self.workload, self.hardware
        copied = np.where(shared_table, cost.table_copy_bytes[key], 0.0)
        front_units = [gathered_unit(first, first.dense_parameters[key], dense, "dense", key)]
        front = with_traffic(front_units, *at_work, first.forward_s[key], first.backward_s[key])
        back_units = (
            gathered_unit(last, head_dense, dense, "dense", key, copied),
            gathered_unit(last, last.expert_parameters[key], expert, "expert", key),
        )
        back = with_traffic(back_units, *at_work, last.forward_s[key], last.backward_s[key])
        return front, back, head_dense, copied

    def tail_parts_s(self, cost: RowCost | TailCost, dense: Array, expert: Array) -> tuple[Array, Array]:
        """Once-a-step seconds (exposed reduction and gathering plus optimizer) for dense and expert parameters."""
        out, share = [], cost.dense_window_share
        kinds = (dense, cost.dense_parallel, share), (expert, cost.expert_parallel, 1.0 - share)
        for parameters, parallel, part in kinds:
            if not np.any(parameters):
                out.append(np.zeros(np.shape(parameters)))
                continue
            windows_s = part * cost.forward_window_s, part * cost.backward_window_s
            exposed, optimizer = tail_s(parameters, parallel, self.workload, self.hardware, *windows_s)
            out.append(np.where(parameters > 0, exposed + optimizer, 0.0))
        return out[0] + cost.table_reduce_s, out[1]

    def _dense_window_share(self, cost: ModelCost, key: Ints, dense: DataParallelism, expert: DataParallelism) -> Array:
        """Part of the compute under which dense parameters may hide their traffic; experts have the rest: [R].

        In proportion to the parameters that have traffic, so that no second of compute hides two of communication.
        """
        counts, parts = self.kind_counts, []
        for name, parallel in (("dense_parameters", dense), ("expert_parameters", expert)):
            whole = rows_at(getattr(cost.layers, name), key) @ counts + getattr(cost.head, name)[key]
            parts.append(np.where(parallel.ranks > 1, whole, 0.0))
        total = parts[0] + parts[1]
        share: Array = np.divide(parts[0], total, out=np.ones(len(key)), where=total > 0)
        return share

    def _hop_s(self, rows: StrategyRows, entry_bytes: Array) -> Array:
        """Seconds of one hop between stages: [R]."""
        if not self.hardware.physics.scattered_hops:
            return stage_hop_s(self.hardware, rows, entry_bytes, hop_stride(rows))
        parts = hop_parts(rows, self.hardware.physics)
        sent_s = stage_hop_s(self.hardware, rows, entry_bytes / parts, hop_stride(rows))
        gathered_s = self.hardware.collective_s("all_gather", entry_bytes, parts, np.ones(len(rows)))
        return np.where(rows.pp > 1, sent_s + gathered_s, 0.0)

    def _table_reduce_s(self, rows: StrategyRows, copied: Array, dense: DataParallelism) -> Array:
        """Once a step first and last stage sum the gradients of their two copies of the token table, in the open: [R].

        Source: Megatron-Core 0.19.2, distributed/finalize_model_grads.py.
        """
        apart = (rows.pp > 1) & ~v_placed(rows)
        if not np.any(apart & (copied > 0)):
            return np.zeros(len(rows))
        size_bytes = table_bytes(copied, rows.zero, dense, self.workload)
        distance = hop_stride(rows) * np.maximum(rows.pp - 1, 1)
        pair = np.full(len(rows), 2.0)
        return np.where(apart, self.hardware.collective_s("all_reduce", size_bytes, pair, distance.astype(float)), 0.0)

    def _states(
        self, rows: StrategyRows, parallel: DataParallelism, cost: ModelCost, key: Ints
    ) -> tuple[StateBytes, ...]:
        """Bytes of state a parameter at each moment of the step; one where one moment stands for all."""
        usual = self._state(rows, parallel, cost, key)
        if not self.hardware.physics.moments_apart:
            return (usual,)
        several = (rows.num_microbatches > 1) | (rows.pp > 1)
        late = (rows.num_microbatches == 1) | waiting_head(rows)
        return states_by_moment(usual, parallel.shards, rows.zero, several, late=late)

    def _apart(
        self, rows: StrategyRows, cost: ModelCost, key: Ints, states: tuple[tuple[StateBytes, ...], ...]
    ) -> MomentTerms | None:
        """What the moments of a step need where each is billed for itself."""
        if not self.hardware.physics.moments_apart:
            return None
        table = cost.embedding.dense_parameters[key]
        tied = self.model.tie_embeddings & (rows.pp == 1)
        return MomentTerms(
            working_bytes=most_of_row(rows_at(cost.layers.working_bytes, key)),
            hidden_bytes=(cost.entry_bytes * cost.keys.sequence_split)[key],
            entry_bytes=cost.entry_bytes[key],
            logits=cost.logits[key],
            head_matrix=np.where(tied, table, cost.head.dense_parameters[key]),
            head_inputs_bytes=cost.head_inputs_bytes[key],
            embedding_gradients=table * rows.tp,
            reduced_bytes=np.full(len(rows), gradient_bytes(self.workload)),
            end_dense=states[0][1],
            end_expert=states[1][1],
            step_dense=states[0][2],
            step_expert=states[1][2],
        )

    def _state(self, rows: StrategyRows, parallel: DataParallelism, cost: ModelCost, key: Ints) -> StateBytes:
        """Bytes of state a parameter, with what the back-end holds beside the usual."""
        layers, framework = cost.layers, self.hardware.physics
        state = state_bytes(self.workload, rows.zero, parallel.shards, rows.optimizer_offload, framework)
        in_buckets = framework.reduce_bucket_elements > 0.0
        if not in_buckets and framework.bucket_bytes_per_parameter == framework.passing_gradient_bytes == 0.0:
            return state
        parameters = rows_at(layers.dense_parameters + layers.expert_parameters, key) @ self.kind_counts
        kept_per_parameter = planes_at(layers.saved_bytes, rows.relief, key) @ self.kind_counts / parameters
        if in_buckets:
            return zero_states(framework, state, rows, self.workload, kept_per_parameter)
        return with_framework_gradients(state, rows.zero, parallel.ranks, kept_per_parameter, framework)

    def _tensors_per_parameter(self, cost: ModelCost, key: Ints) -> Array:
        """Weight tensors of the model over its local parameters: [R]; zeros where their number does not matter."""
        framework = self.hardware.physics
        if framework.reduction_bucket_bytes == 0.0 and not framework.gather_by_tensor:
            return np.zeros(len(key))
        local = rows_at(cost.layers.dense_parameters + cost.layers.expert_parameters, key) @ self.kind_counts
        local = local + cost.embedding.dense_parameters[key] + cost.head.dense_parameters[key]
        per_parameter: Array = weight_tensors(self.model) / np.maximum(local, 1.0)
        return per_parameter

    def _gathered_bytes(self, rows: StrategyRows, cost: ModelCost, key: Ints) -> Array:
        """Working copies of ZeRO-2/3, and buckets."""
        expert = rows_at(cost.layers.expert_parameters, key)
        layers = rows_at(cost.layers.dense_parameters, key) + expert
        end = np.maximum(cost.embedding.dense_parameters[key], cost.head.dense_parameters[key])
        local = layers @ self.kind_counts / rows.pp + end
        sizes = most_of_row(layers), most_of_row(expert), end
        return working_copy_bytes(self.hardware.physics, rows, self.workload, local, sizes)

    def _fixed_bytes(self, rows: StrategyRows, cost: ModelCost, key: Ints) -> FixedBytes:
        """What a device holds whatever its layers."""
        expert_ranks = rows.tp * rows.cp * rows.dp // (rows.etp * rows.ep)
        axes = (rows.tp > 1, rows.cp > 1, rows.dp > 1, rows.pp > 1, rows.ep > 1, (rows.ep > 1) & (expert_ranks > 1))
        communicators = sum((axis.astype(float) for axis in axes), start=np.zeros(len(rows)))
        further = self.hardware.physics.further_communicators
        communicators = communicators + np.where(communicators > 0, float(further), 0.0)
        framework = FRAMEWORK_BYTES + self.hardware.factors.fixed_bytes + COMMUNICATOR_BYTES * communicators
        framework = framework + cost.exchange_bytes[key]
        if self.workload.trained.holds_frozen:
            framework = framework + frozen_working_bytes(rows.zero, cost, key)
        if self.hardware.physics.moments_apart:
            return FixedBytes(framework, *(np.zeros(len(rows)) for _ in range(4)))
        hidden_bytes = (cost.entry_bytes * cost.keys.sequence_split)[key]
        kept = rows_at(cost.layers.saved_bytes[0], key)
        buffers = framework_buffer_bytes(self.hardware.physics, hidden_bytes, rows.tp, most_of_row(kept))
        entry = cost.entry_bytes[key]
        stored = entry * rows.num_microbatches * self.hardware.physics.stores_rounds
        return FixedBytes(framework, entry, buffers, self._gathered_bytes(rows, cost, key), stored)
