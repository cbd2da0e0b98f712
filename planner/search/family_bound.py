"""Lower bounds of the declared family of dealings, for many strategies of several chunks a device at once.

The same sums as ``planner.search.family_split``, in another order: layers of each kind times what a layer of that kind
takes.  The two differ by rounding alone, which ``ROUNDING`` and a second ``SLACK`` of memory cover, so that the result
is a lower bound of what the exact search returns, and nearly always its value.  Pairs of a strategy and a member that
are too slow with the relief that is sure, or with the mean stage's tail, are not looked at any further.

Shape letters: R rows, F members, P stages, N layer kinds, Q pairs of a row and a member.
"""

from __future__ import annotations

import numpy as np

from planner.predict.cost.data_parallel import TailCost
from planner.predict.cost.row_cost import CostModel, RowCost
from planner.predict.stage_memory import StageMemory, end_seconds, head_stage, stage_memory
from planner.search.bound import BACK_WHOLE, Schedules
from planner.search.chunk_family import FamilyLayers, chunk_family, family_layers
from planner.search.family_paths import family_paths
from planner.search.row_context import take
from planner.search.split_terms import SLACK, SplitRules
from planner.strategy.rows import StrategyRows, first_of_each
from solver.arrays import Array, Ints, Mask

ROUNDING = 2e-13
"""Relative slack that keeps another order of the same sums below what the exact search finds."""


class FamilyBound:
    """Rows of one number of stages, of chunks, and one placement of them; ``tail_s`` [R]: the mean stage's tail."""

    def __init__(self, costs: CostModel, rules: SplitRules, rows: StrategyRows, cost: RowCost, tail_s: Array) -> None:
        self.costs, self.rules, self.rows, self.cost, self.tail_s = costs, rules, rows, cost, tail_s
        self.pp = int(rows.pp[0])
        strategy = rows.strategy(0, costs.reliefs)
        self.kinds = costs.kind_sequence, len(costs.kind_counts)
        self.family = chunk_family(costs.model.num_layers, strategy.num_chunks, empty_ends=rules.empty_ends)
        self.stages = tuple(strategy.chunk_stage(chunk) for chunk in range(strategy.num_chunks))
        self.layers = family_layers(*self.kinds, self.family, self.stages) if self.family else None
        self.schedules = Schedules.of(rows)
        self.ends_s = end_seconds(rows, cost, self.pp)

    def step_s(self, cutoff_s: float) -> Array:
        """Lower bound of every row: [R]; infinity where no member fits and may be faster than ``cutoff_s``."""
        result = np.full(len(self.rows), np.inf)
        if self.layers is None:
            return result
        row, member = self._fast_enough(self.layers, cutoff_s)
        if len(row) == 0:
            return result
        fits, relieved_s = self._relieved_s(self.layers, row, member)
        row, member, relieved_s = row[fits], member[fits], relieved_s[fits]
        busy_s = self._on_devices(self.layers.held[member], self.cost.layer_s[row]) + self.ends_s[row] + relieved_s
        makespan = self._makespan_s(row, member, busy_s)
        fast = makespan + self.tail_s[row] < cutoff_s * (1 + ROUNDING)
        row, member, makespan, relieved_s = row[fast], member[fast], makespan[fast], relieved_s[fast]
        makespan = np.maximum(makespan, self._paths_s(row, member, relieved_s))
        fast = makespan + self.tail_s[row] < cutoff_s * (1 + ROUNDING)
        row, member, makespan = row[fast], member[fast], makespan[fast]
        np.minimum.at(result, row, (makespan + self._tail_s(self.layers, row, member)) * (1 - ROUNDING))
        return result

    @staticmethod
    def _on_devices(counts: Array, column: Array) -> Array:
        """Layers of each kind [Q, P, N] times a layer column [Q, N]: [Q, P]."""
        return np.asarray(np.einsum("qpn,qn->qp", counts, column))

    def _makespan_s(self, row: Ints, member: Ints, busy_s: Array) -> Array:
        """Longest of the paths that go to one device, through all of its work and back: A_s of ``least_makespan``."""
        assert self.layers is not None
        lead, cost, schedules = self.layers.lead[member], self.cost, self.schedules
        whole = BACK_WHOLE[schedules.schedule][row]
        lead_s = self._on_devices(lead, (cost.layer_forward_s[row] + whole[:, None] * cost.layer_backward_s[row]))
        there_and_back_s = lead_s + ((1.0 + whole) * cost.hop_s[row])[:, None]
        before_s = np.cumsum(there_and_back_s, axis=1) - there_and_back_s
        return np.asarray((schedules.num_microbatches[row, None] * busy_s + before_s).max(axis=1))

    def _paths_s(self, row: Ints, member: Ints, relieved_s: Array) -> Array:
        """Longest of the known paths of each pair's order: [Q]; ``relieved_s`` [Q, P] as in ``step_s``."""
        lengths, schedules = np.zeros(len(row)), take(self.schedules, row)
        every = self._every()[row, None]
        relief_s, relieved_s = np.where(every, self.cost.relief_s[row], 0.0), np.where(every, 0.0, relieved_s)
        columns = [schedules.schedule, schedules.num_microbatches, schedules.group]
        first, alike = first_of_each(columns)
        for number, pair in enumerate(first.tolist()):
            at = np.flatnonzero(alike == number)
            strategy = self.rows.strategy(int(row[pair]), self.costs.reliefs)
            paths = family_paths((strategy.schedule, strategy.order_sizes), self.kinds, self.family, self.stages)
            lengths[at] = paths.lengths_s(self.cost, row[at], member[at], (relief_s[at], relieved_s[at]))
        return lengths

    def _fast_enough(self, layers: FamilyLayers, cutoff_s: float) -> tuple[Ints, Ints]:
        """Pairs that are faster than the cutoff with the mean stage's tail and the relief that is sure: row, member."""
        rows, members = len(self.rows), len(layers.longest)
        layer_s = self.cost.layer_s + np.where(self._every()[:, None], self.cost.relief_s, 0.0)
        busy_s = np.tensordot(layer_s, layers.held, axes=(1, 2)) + self.ends_s[:, None, :]
        row, member = np.repeat(np.arange(rows), members), np.tile(np.arange(members), rows)
        busy_s = busy_s.reshape(rows * members, -1)
        makespan = self._makespan_s(row, member, busy_s)
        fast = np.flatnonzero(makespan + self.tail_s[row] < cutoff_s * (1 + ROUNDING))
        return row[fast], member[fast]

    def _relieved_s(self, layers: FamilyLayers, row: Ints, member: Ints) -> tuple[Mask, Array]:
        """Whether each pair fits: [Q], and what the relieved layers of each device take longer: [Q, P]."""
        memory = stage_memory(self.rows, self.cost, self.costs.reliefs, self.pp)
        count = np.zeros((len(row), self.pp), dtype=np.int64)
        fits = np.zeros(len(row), dtype=np.bool_)
        few = self._few()[row]
        for some, whole in ((few, False), (~few, True)):
            at = np.flatnonzero(some)
            if len(at) == 0:
                continue
            left = _Left(self, layers, memory, row[at], member[at])
            if whole and self.rules.uniform:
                count[at] = layers.longest[member[at], None]
                fits[at] = left.fits(count[at]).all(axis=1)
            else:
                count[at], fits[at] = left.fewest(same=self.rules.uniform)
        relieved = layers.first[count, member[:, None], np.arange(self.pp)]
        return fits & self._host_fits(layers, memory, row, member, relieved), self._on_devices(
            relieved, self.cost.relief_s[row]
        )

    def _few(self) -> Mask:
        """Rows that relieve as few layers as memory asks for, the same number in every chunk where uniform: [R]."""
        if self.rules.whole:
            return np.zeros(len(self.rows), dtype=np.bool_)
        full = np.array([relief.recompute == "full" for relief in self.costs.reliefs])
        return np.asarray(full[self.rows.relief])

    def _every(self) -> Mask:
        """Rows that relieve every layer, whatever memory asks for: [R]."""
        return self.rules.uniform & ~self._few()

    def _host_fits(self, layers: FamilyLayers, memory: StageMemory, row: Ints, member: Ints, relieved: Array) -> Mask:
        moved = np.array([relief.offload for relief in self.costs.reliefs])[self.rows.relief]
        if not (moved.any() or self.rows.optimizer_offload.any()):
            return np.ones(len(row), dtype=np.bool_)
        cost = self.cost
        dense, expert = self._parameters(layers, row, member)
        saving = self._on_devices(relieved, (cost.saved_bytes - cost.relieved_bytes)[row])
        held = dense * cost.dense_state.host[row, None] + expert * cost.expert_state.host[row, None]
        held = held + np.where(moved[row, None], memory.passes.in_flight[row] * saving, 0.0)
        uses = moved | (self.rows.optimizer_offload > 0)
        return np.asarray((held * (1 - ROUNDING) <= self.rules.host_limit_bytes).all(axis=1) | ~uses[row])

    def _parameters(self, layers: FamilyLayers, row: Ints, member: Ints) -> tuple[Array, Array]:
        """Dense and expert parameters of every device with its ends: two [Q, P]."""
        cost, held = self.cost, layers.held[member]
        dense, expert = self._on_devices(held, cost.layer_dense[row]), self._on_devices(held, cost.layer_expert[row])
        pair, last = np.arange(len(row)), head_stage(self.rows, self.pp)[row]
        dense[:, 0] += cost.embedding_dense[row]
        dense[pair, last] += cost.head_dense[row]
        expert[pair, last] += cost.head_expert[row]
        return dense, expert

    def _tail_s(self, layers: FamilyLayers, row: Ints, member: Ints) -> Array:
        if len(row) == 0:
            return np.zeros(0)
        dense, expert = self._parameters(layers, row, member)
        tails = self.costs.tail_parts_s(take(TailCost.of(self.cost), row), dense.max(axis=1), expert.max(axis=1))
        return tails[0] + tails[1]


class _Left:
    """Whether pairs fit with some layers relieved; ``needs``: bytes over the limit without relief, each moment."""

    def __init__(self, bound: FamilyBound, layers: FamilyLayers, memory: StageMemory, row: Ints, member: Ints) -> None:
        cost, held, on_devices = bound.cost, layers.held[member], bound._on_devices
        self.layers, self.member, self.on_devices = layers, member, on_devices
        self.stages = np.arange(bound.pp)
        self.saving = (cost.saved_bytes - cost.relieved_bytes)[row]
        self.tolerance = 2 * SLACK * bound.costs.hardware.memory_bytes
        dense, expert = on_devices(held, cost.layer_dense[row]), on_devices(held, cost.layer_expert[row])
        saved, frozen = on_devices(held, cost.saved_bytes[row]), on_devices(held, cost.frozen.layer[row])
        self.needs, self.flights, self.replays = [], [], []
        for moment in memory.moments:
            state = dense * moment.dense_state.total[row, None] + expert * moment.expert_state.total[row, None]
            state, flight = state + frozen, moment.in_flight[row]
            self.needs.append(moment.fixed_bytes[row] + state + flight * saved - bound.rules.limit_bytes)
            self.flights.append(flight)
            self.replays.append(moment.replay_bytes[row])

    def fits(self, count: Ints) -> Mask:
        """Whether each device fits with the first ``count`` [Q, P] layers of every chunk relieved: [Q, P]."""
        relieved = self.layers.first[count, self.member[:, None], self.stages]
        saving, again = self.on_devices(relieved, self.saving), count > 0
        parts = zip(self.needs, self.flights, self.replays, strict=True)
        left = [need - flight * saving + np.where(again, replay, 0.0) for need, flight, replay in parts]
        return np.asarray(np.maximum.reduce(left) <= self.tolerance)

    def fewest(self, *, same: bool) -> tuple[Ints, Mask]:
        """Fewest relieved layers a chunk: [Q, P], and whether they suffice: [Q]; ``same``: one number for all."""
        most = len(self.layers.first)
        shape = self.needs[0].shape
        fits: Mask = np.stack([self.fits(np.full(shape, count)) for count in range(most)])
        count, possible = fits.argmax(axis=0), np.all(fits.any(axis=0), axis=1)
        if not same:
            return count, possible
        every = count.max(axis=1)
        together = np.asarray(fits.all(axis=2))
        # The second slack may ask for one layer fewer than the exact search: what then fits with one more stays.
        pair = np.arange(len(every))
        enough = together[every, pair] | together[np.minimum(every + 1, most - 1), pair]
        return np.broadcast_to(every[:, None], count.shape).copy(), possible & enough
