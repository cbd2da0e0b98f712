"""The best plan of a small problem by trying everything: an oracle that shares no search code with the planner.

Every strategy (``tests.declared_space``), every dealing of layers (one chunk a device) or every member of the
declared family (several chunks), every number of relieved layers on every stage.  Times and bytes of one layer come
from the cost model, because they *are* the question; how they add up to stages, memory and step time is written out
here a second time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.backends.asked import problem_hardware, the_software
from planner.predict.candidate import Split
from planner.predict.cost.hardware import Hardware
from planner.predict.cost.row_cost import CostModel, RowCost
from planner.predict.memory.fit_chance import usable_bytes
from planner.predict.schedule.in_flight import in_flight_chunks
from planner.predict.schedule.paths import ChunkTimes
from planner.predict.schedule.run import run_pipeline
from planner.predict.stage_memory import stage_memory
from planner.question.problem import Problem
from planner.search.backend_rules import BackEndRules
from planner.search.chunk_family import chunk_family
from planner.search.reliefs import relief_choices
from planner.strategy.relief_layers import relief_layers
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Relief, Strategy
from tests.declared_space import all_rows

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Dealing = tuple[int, ...]

MEMORY_TOLERANCE = 1e-9
SUM_ROUNDING = 1 - 1e-9
"""A sum of the same seconds in another order is never further away than this."""


@dataclass(frozen=True, slots=True)
class Best:
    """The fastest configuration that fits: step time, strategy and dealing."""

    step_time_s: float
    strategy: Strategy
    split: Split


@dataclass(frozen=True, slots=True)
class Limits:
    """What a device and its share of the host can hold."""

    device_bytes: float
    host_bytes: float

    @classmethod
    def of(cls, problem: Problem, hardware: Hardware) -> Limits:
        usable = usable_bytes(hardware.memory_bytes, problem.constraints, the_software(problem).name)
        return cls(usable + MEMORY_TOLERANCE * hardware.memory_bytes, 0.9 * hardware.host_memory_bytes_per_device)


def exhaustive_best(
    problem: Problem, num_devices: int | None = None, hardware: Hardware | None = None
) -> tuple[Best | None, int]:
    """The fastest plan and the number of strategies looked at; None when nothing fits.

    ``hardware`` under another physics than that of the problem's back-end.
    """
    hardware = hardware or problem_hardware(problem)
    rows = all_rows(problem, num_devices or problem.cluster.num_devices)
    costs = CostModel(problem.model, problem.workload, hardware, relief_choices(problem))
    oracle = _Oracle(problem, costs, Limits.of(problem, hardware))
    for part in _alike(rows):
        oracle.try_rows(part, only_best=True)
    return oracle.best, len(rows)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What every strategy can reach: step time of its best fitting dealing, and the least peak of device memory."""

    rows: StrategyRows
    costs: CostModel
    fastest_s: Array
    least_bytes: Array


def all_outcomes(problem: Problem, hardware: Hardware | None = None) -> Outcomes:
    """Every strategy of a problem with its best dealing, whatever its back-end's rules say."""
    hardware = hardware or problem_hardware(problem)
    costs = CostModel(problem.model, problem.workload, hardware, relief_choices(problem))
    oracle = _Oracle(problem, costs, Limits.of(problem, hardware))
    parts, times, sizes = [], [np.zeros(0)], [np.zeros(0)]
    rows = all_rows(problem, problem.cluster.num_devices)
    for part in _alike(rows):
        oracle.try_rows(part)
        parts.append(part)
        times.append(oracle.fastest_s)
        sizes.append(oracle.least_bytes)
    whole = StrategyRows.concatenate(parts) if parts else rows
    return Outcomes(whole, costs, np.concatenate(times), np.concatenate(sizes))


def _alike(rows: StrategyRows) -> Iterator[StrategyRows]:
    """Rows that share pp, vpp, schedule and whether they relieve at all."""
    shapes = np.stack([rows.pp, rows.vpp, rows.schedule, rows.relief > 0], axis=1)
    for shape in np.unique(shapes, axis=0):
        yield rows.take(np.flatnonzero((shapes == shape).all(axis=1)))


def compositions(total: int, parts: int, *, empty_ends: bool = False) -> Iterator[Dealing]:
    """Every way to give ``total`` layers to ``parts`` stages, one each; with ``empty_ends`` the ends may have none."""
    # One layer more on each end that may be empty, which is taken off again.
    more = int(empty_ends and parts > 1)
    for cuts in itertools.combinations(range(1, total + 2 * more), parts - 1):
        edges = (0, *cuts, total + 2 * more)
        counts = [edges[index + 1] - edges[index] for index in range(parts)]
        counts[0] -= more
        counts[-1] -= more
        yield tuple(counts)


class _Oracle:
    """Tries every dealing of rows that share pp, vpp, schedule and whether they relieve at all."""

    def __init__(self, problem: Problem, costs: CostModel, limits: Limits) -> None:
        self.problem, self.costs, self.limits = problem, costs, limits
        self.kinds = np.array(problem.model.layer_kind_sequence())
        columns = the_software(problem).release.space.columns
        self.uniform, self.empty_ends = columns.uniform_recompute, columns.empty_ends
        self.layers = relief_layers(problem.constraints.pins)
        self.rules = BackEndRules(problem)
        self.best: Best | None = None
        self._refused: dict[int, bool] = {}
        self._makespans_s: dict[bytes, float] = {}
        self._only_best = False
        self.least_bytes: Array = np.zeros(0)
        self.fastest_s: Array = np.zeros(0)

    def try_rows(self, rows: StrategyRows, *, only_best: bool = False) -> None:
        """Improve ``best`` with any of ``rows``; with ``only_best``, slower ones are not run to their end."""
        self._refused, self._makespans_s, self._only_best = {}, {}, only_best
        self.least_bytes, self.fastest_s = np.full(len(rows), np.inf), np.full(len(rows), np.inf)
        cost = self.costs.rows(rows)
        sample = rows.strategy(0, self.costs.reliefs)
        layers = self.problem.model.num_layers
        dealings: Iterable[Dealing]
        if sample.vpp == 1:
            dealings = compositions(layers, sample.pp, empty_ends=self.empty_ends)
        else:
            dealings = chunk_family(layers, sample.num_chunks, empty_ends=self.empty_ends)
        # Even ones first: they are fast, and what cannot be faster than them need not be run.
        for dealing in sorted(dealings, key=max):
            held = [
                [count for chunk, count in enumerate(dealing) if sample.chunk_stage(chunk) == stage]
                for stage in range(sample.pp)
            ]
            choices = [self._choices(max(counts)) if rows.relief[0] else (0,) for counts in held]
            for relieved in itertools.product(*choices):
                self._try(rows, cost, dealing, relieved)

    def _choices(self, most: int) -> Sequence[int]:
        """Numbers of relieved layers of a stage whose longest chunk has ``most``: all, but where one is asked for."""
        if self.layers == "every":
            return (most,)
        return (min(self.layers, most),) if isinstance(self.layers, int) else range(most + 1)

    def _try(self, rows: StrategyRows, cost: RowCost, dealing: Dealing, relieved: tuple[int, ...]) -> None:
        step_s, peak_bytes = self._evaluate(rows, cost, dealing, relieved)
        self.least_bytes = np.minimum(self.least_bytes, peak_bytes)
        self.fastest_s = np.minimum(self.fastest_s, step_s)
        limit = np.inf if self.best is None else self.best.step_time_s
        for index in np.argsort(step_s, kind="stable").tolist():
            if not step_s[index] < limit:
                return
            candidate = rows.strategy(index, self.costs.reliefs)
            if index not in self._refused:
                self._refused[index] = self.rules.refuses(candidate)
            if not self._refused[index] and not self.rules.refuses(candidate, dealing):
                self.best = Best(float(step_s[index]), candidate, Split(dealing, relieved))
                return

    def _evaluate(
        self, rows: StrategyRows, cost: RowCost, dealing: Dealing, relieved: tuple[int, ...]
    ) -> tuple[Array, Array]:
        """Step time of every row dealt like this (infinite where it does not fit), and its peak of device memory."""
        strategy = rows.strategy(0, self.costs.reliefs)
        stages = [_Stage(self, rows, cost, strategy, dealing, relieved, stage) for stage in range(strategy.pp)]
        peak_bytes = np.max([stage.device_bytes for stage in stages], axis=0)
        fits = peak_bytes <= self.limits.device_bytes
        for stage in stages:
            fits &= stage.host_bytes <= self.limits.host_bytes
        if self.uniform:
            fits &= self._uniform(rows, dealing, relieved, strategy)
        dense = np.max([stage.dense for stage in stages], axis=0)
        expert = np.max([stage.expert for stage in stages], axis=0)
        tails = self.costs.tail_parts_s(cost, dense, expert)
        times = self._chunk_times(rows, cost, dealing, relieved)
        cutoff_s = np.where(fits, self._cutoff_s() - tails[0] - tails[1], -np.inf)
        makespan = self._simulated_s(rows, cost, times, cutoff_s)
        return np.where(fits, makespan + tails[0] + tails[1], np.inf), peak_bytes

    def _cutoff_s(self) -> Array:
        """Step time that another dealing of every row has to beat."""
        if not self._only_best:
            return self.fastest_s
        # Not that of the row itself: its fastest dealing may be refused and a slower one the best of all.
        return np.full(len(self.fastest_s), np.inf if self.best is None else self.best.step_time_s)

    def _chunk_times(
        self, rows: StrategyRows, cost: RowCost, dealing: Dealing, relieved: tuple[int, ...]
    ) -> tuple[Array, Array, Array]:
        """Forward, backward and weight gradient of a micro-batch through every chunk; each [R, C]."""
        strategy, columns = rows.strategy(0, self.costs.reliefs), []
        first, last = 0, len(dealing) - 1
        host_s = (cost.stage_host_s + cost.regather_s) / strategy.vpp
        for chunk, count in enumerate(dealing):
            kinds = self.kinds[first : first + count]
            eased = kinds[: min(count, relieved[strategy.chunk_stage(chunk)])]
            forward = cost.layer_forward_s[:, kinds].sum(axis=1) + host_s / 3
            backward = (
                cost.layer_backward_s[:, kinds].sum(axis=1) + cost.relief_s[:, eased].sum(axis=1) + host_s * 2 / 3
            )
            gradient = cost.layer_weight_gradient_s[:, kinds].sum(axis=1)
            forward = forward + (chunk == 0) * cost.embedding_forward_s + (chunk == last) * cost.head_forward_s
            backward = backward + (chunk == 0) * cost.embedding_backward_s + (chunk == last) * cost.head_backward_s
            gradient = gradient + (chunk == 0) * cost.embedding_weight_gradient_s
            columns.append((forward, backward, gradient + (chunk == last) * cost.head_weight_gradient_s))
            first += count
        forwards, backwards, gradients = zip(*columns, strict=True)
        return np.stack(forwards, axis=1), np.stack(backwards, axis=1), np.stack(gradients, axis=1)

    def _simulated_s(
        self, rows: StrategyRows, cost: RowCost, times: tuple[Array, Array, Array], cutoff_s: Array
    ) -> Array:
        """Length of the pipeline of every row, run action by action; infinite where it cannot be below the cutoff.

        A device does its own work one after the other, whatever the schedule: no pipeline is shorter than that.
        """
        strategy = rows.strategy(0, self.costs.reliefs)
        if strategy.pp == 1:
            one_after_the_other: Array = rows.num_microbatches * (times[0] + times[1])[:, 0]
            return one_after_the_other
        chunk_s, owners = times[0] + times[1], [strategy.chunk_stage(chunk) for chunk in range(times[0].shape[1])]
        busy_s = np.max([chunk_s[:, np.equal(owners, stage)].sum(axis=1) for stage in range(strategy.pp)], axis=0)
        seconds = np.full(len(rows), np.inf)
        numbers = np.stack([rows.pp, rows.vpp, rows.num_microbatches, rows.group], axis=1)
        inputs = np.ascontiguousarray(np.concatenate([*times, cost.hop_s[:, None], numbers], axis=1))
        for row in np.flatnonzero(rows.num_microbatches * busy_s * SUM_ROUNDING < cutoff_s).tolist():
            # Rows that differ in what comes after the pipeline only are the same run.
            key = inputs[row].tobytes()
            if key not in self._makespans_s:
                pp, vpp, count, group = numbers[row].tolist()
                chunk_times = ChunkTimes(*(part[row] for part in times))
                run = run_pipeline(strategy.schedule, (pp, vpp, count, group), chunk_times, float(cost.hop_s[row]))
                self._makespans_s[key] = run.makespan_s
            seconds[row] = self._makespans_s[key]
        return seconds

    def _uniform(
        self, rows: StrategyRows, dealing: Dealing, relieved: tuple[int, ...], strategy: Strategy
    ) -> NDArray[np.bool_]:
        """Rows whose back-end can recompute exactly so: the same number in every chunk, or everything."""
        reliefs = self.costs.reliefs
        whole = np.array([relief.offload or relief.recompute == "selective" for relief in reliefs])[rows.relief]
        full = np.array([relief.recompute == "full" for relief in reliefs])[rows.relief]
        chunks = [(count, relieved[strategy.chunk_stage(chunk)]) for chunk, count in enumerate(dealing)]
        everything = all(wanted >= count for count, wanted in chunks)
        # One number serves all chunks: those that are shorter than it are relieved whole.
        number = max(wanted for _, wanted in chunks)
        same = all(min(count, wanted) == min(count, number) for count, wanted in chunks)
        allowed: NDArray[np.bool_] = (~whole & ~full) | (full & same) | (whole & everything)
        return allowed


class _Stage:
    """One stage of one dealing: parameters, bytes; each [R]."""

    def __init__(
        self,
        oracle: _Oracle,
        rows: StrategyRows,
        cost: RowCost,
        strategy: Strategy,
        dealing: Dealing,
        relieved: tuple[int, ...],
        stage: int,
    ) -> None:
        held = np.zeros(cost.layer_forward_s.shape[1])
        eased = np.zeros(cost.layer_forward_s.shape[1])
        first = 0
        for chunk, count in enumerate(dealing):
            if strategy.chunk_stage(chunk) == stage:
                np.add.at(held, oracle.kinds[first : first + count], 1.0)
                np.add.at(eased, oracle.kinds[first : first + min(count, relieved[stage])], 1.0)
            first += count
        front, back = stage == 0, stage == strategy.chunk_stage(strategy.num_chunks - 1)
        saving = cost.saved_bytes - cost.relieved_bytes
        flight = self._flight(rows, cost, strategy, stage)
        self.dense = cost.layer_dense @ held + front * cost.embedding_dense + back * cost.head_dense
        self.expert = cost.layer_expert @ held + back * cost.head_expert
        states, experts = cost.dense_state, cost.expert_state
        offloads = np.array([relief.offload for relief in oracle.costs.reliefs])[rows.relief]
        self.host_bytes = (
            self.dense * states.host + self.expert * experts.host + np.where(offloads, flight * (saving @ eased), 0.0)
        )
        if cost.apart is not None:
            self.device_bytes = self._fullest(rows, cost, oracle.costs.reliefs, (held, eased), stage)
            return
        waiting = rows.num_microbatches if strategy.schedule in ("gpipe", "looped_bfs") else 1
        self.device_bytes = (
            self.dense * (states.weights + states.gradients + states.optimizer + states.passing)
            + self.expert * (experts.weights + experts.gradients + experts.optimizer + experts.passing)
            + cost.frozen.layer @ held
            + front * cost.frozen.embedding
            + back * cost.frozen.head
            + flight * (cost.saved_bytes @ held - saving @ eased + front * cost.embedding_saved)
            + back * (cost.head_saved * waiting + cost.head_transient)
            + cost.fixed_bytes
            + (eased.sum() > 0)
            * np.maximum(
                saving.max(axis=1) * np.where(offloads, 2.0, 1.0) - back * (cost.head_saved + cost.head_transient), 0.0
            )
        )

    @staticmethod
    def _fullest(
        rows: StrategyRows, cost: RowCost, reliefs: tuple[Relief, ...], layers: tuple[Array, Array], stage: int
    ) -> Array:
        """Largest of the moments of a step, each summed up over the layers of this stage."""
        held, eased = layers
        saving, sizes = cost.saved_bytes - cost.relieved_bytes, []
        for moment in stage_memory(rows, cost, reliefs, int(rows.pp[0])).moments:
            kept = cost.saved_bytes @ held - saving @ eased
            sizes.append(
                moment.fixed_bytes[:, stage]
                + moment.layer_state_bytes @ held
                + moment.in_flight[:, stage] * kept
                + (eased.sum() > 0) * moment.replay_bytes[:, stage]
            )
        fullest: Array = np.max(sizes, axis=0)
        return fullest

    @staticmethod
    def _flight(rows: StrategyRows, cost: RowCost, strategy: Strategy, stage: int) -> Array:
        scheduled = in_flight_chunks(strategy.schedule, rows.pp, rows.vpp, rows.num_microbatches, rows.group, stage)
        chunks = np.asarray(scheduled, dtype=np.float64)
        if strategy.schedule == "gpipe":
            chunks = chunks + cost.bubbles_keep * (strategy.pp - 1)
        if strategy.schedule == "interleaved":
            chunks = np.minimum(chunks + cost.warmup_chunks, rows.num_microbatches * strategy.vpp)
        return chunks / strategy.vpp
