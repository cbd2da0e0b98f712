"""How are layers and memory relief best dealt for one strategy?  Exact.

One chunk a device: every way to give consecutive layers to stages, by dynamic programming
(``solver.stage_partition``); for each stage and span the fewest relieved layers that fit the memory.

Several chunks a device: a declared family, every member of which is evaluated: layers spread evenly over the chunks,
the first and the last chunk up to ``END_RELIEF`` layers shorter, the remainder on the first or on the last chunks.

Back-ends that recompute the same number of layers in every chunk get that constraint (``uniform``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from planner.candidate import Candidate, Split
from planner.search.bound import makespan_s
from planner.search.evaluate import evaluate_split
from planner.search.row_context import RowContext
from solver.check import check_partition
from solver.stage_partition import Objective, PartitionTables, partition

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

END_RELIEF = 3
SLACK = 1e-9
"""Relative rounding slack of the memory comparison."""


@dataclass(frozen=True, slots=True)
class SplitRules:
    """What memory, host memory and the back-end allow."""

    limit_bytes: float
    host_limit_bytes: float = float("inf")
    uniform: bool = False


def best_split(context: RowContext, rules: SplitRules, cutoff_s: float = float("inf")) -> Candidate | None:
    """Best candidate of a strategy that is faster than ``cutoff_s`` and fits; None when there is none."""
    if context.strategy.vpp > 1:
        return _best_of_family(context, rules, cutoff_s)
    # Without a cutoff a near-even dealing comes first: its time cuts the dynamic program down to spans that can win.
    best = None if np.isfinite(cutoff_s) else _best_of_family(context, rules, cutoff_s)
    for fixed in _relief_choices(context, rules):
        found = _best_line(context, rules, cutoff_s if best is None else best.step_time_s, fixed)
        if found is not None:
            best = found
    return best


def _relief_choices(context: RowContext, rules: SplitRules) -> list[int | None]:
    """None: every stage chooses for itself.  A number: every chunk relieves that many layers."""
    strategy, layers = context.strategy, context.costs.model.num_layers
    if not rules.uniform or (strategy.recompute == "none" and not strategy.activation_offload):
        return [None]
    if strategy.recompute != "full":
        return [layers]
    return list(range(layers - context.strategy.pp + 2))


def _best_line(context: RowContext, rules: SplitRules, cutoff_s: float, fixed: int | None) -> Candidate | None:
    """One chunk a device."""
    layers, stages = context.costs.model.num_layers, context.strategy.pp
    objective = _objective(context)
    high = min(layers - stages + 1, _longest_span(context, objective, cutoff_s))
    if high < 1 or high * stages < layers:
        return None
    tables, relieved = _tables(context, rules, high, fixed)
    answer = partition(tables, objective, cutoff_s)
    if answer is None:
        return None
    check_partition(tables, answer.counts, objective, answer.objective)
    starts = np.concatenate([[0], np.cumsum(answer.counts)[:-1]])
    chosen = tuple(
        int(relieved[stage, start, count - 1])
        for stage, (start, count) in enumerate(zip(starts.tolist(), answer.counts, strict=True))
    )
    return evaluate_split(context, Split(chunk_layers=answer.counts, relieved=chosen))


def _objective(context: RowContext) -> Objective:
    """Step time from (sum of stage times, busiest stage, tail of dense, tail of expert parameters)."""
    gradient_s = _total(context, "weight_gradient_s")

    def objective(total: Array, peak: Array, tail1: Array, tail2: Array) -> Array:
        rows = context.row.take(np.zeros(len(total), dtype=np.int64))
        hop_s = np.full(len(total), context.cost.hop_s[0])
        step_s: Array = makespan_s(rows, total, peak, np.full(len(total), gradient_s), hop_s) + tail1 + tail2
        return step_s

    return objective


def _total(context: RowContext, name: str) -> float:
    ends = (context.table.embedding, context.table.head)
    return float(getattr(context.prefix, name)[-1]) + sum(float(getattr(end, name)[context.key]) for end in ends)


def _longest_span(context: RowContext, objective: Objective, cutoff_s: float) -> int:
    """Most layers that a stage can hold in a dealing faster than the cutoff."""
    layers = context.costs.model.num_layers
    if not np.isfinite(cutoff_s):
        return layers
    running = context.prefix.forward_s + context.prefix.backward_s
    total_s = float(running[-1]) + float(context.ends_s.sum())
    shortest_s = np.array([float((running[count:] - running[:-count]).min()) for count in range(1, layers + 1)])
    zero = np.zeros(layers)
    step_s = objective(zero + total_s, np.maximum(shortest_s, total_s / context.strategy.pp), zero, zero)
    return int((step_s <= cutoff_s).sum())


def _tables(context: RowContext, rules: SplitRules, high: int, fixed: int | None) -> tuple[PartitionTables, Ints]:
    """Cost tables [S, A, C] of the dynamic program, and how many layers each entry relieves."""
    prefix, memory = context.prefix, context.memory
    layers = context.costs.model.num_layers
    starts = np.arange(layers + 1)[:, None]
    stops = np.minimum(starts + np.arange(1, high + 1)[None, :], layers)
    inside = starts + np.arange(1, high + 1)[None, :] <= layers

    def over(column: Array) -> Array:
        spans: Array = column[stops] - column[starts]
        return spans

    per_dense, per_expert = context.cost.dense_state.total[0], context.cost.expert_state.total[0]
    state = over(prefix.dense) * per_dense + over(prefix.expert) * per_expert
    flight = memory.in_flight[0][:, None, None]
    need = memory.fixed_bytes[0][:, None, None] + state + flight * over(prefix.saved_bytes) - rules.limit_bytes
    relieved, possible = _relieved_layers(context, need, starts, stops, fixed)
    relief_s = prefix.relief_s[np.minimum(starts + relieved, layers)] - prefix.relief_s[starts]
    time_s = context.ends_s[:, None, None] + over(prefix.forward_s) + over(prefix.backward_s) + relief_s
    tail1, tail2 = _stage_tails(context, over(prefix.dense), over(prefix.expert))
    if context.strategy.optimizer_offload or context.strategy.activation_offload:
        moved = prefix.saving_bytes[np.minimum(starts + relieved, layers)] - prefix.saving_bytes[starts]
        host = _host_bytes(context, over(prefix.dense), over(prefix.expert), moved)
        possible = possible & (host <= rules.host_limit_bytes)
    add = np.where(possible & inside, time_s, np.inf)
    return PartitionTables(add=add, peak=time_s, tail1=tail1, tail2=tail2, low=1), relieved


def _host_bytes(context: RowContext, dense: Array, expert: Array, moved: Array) -> Array:
    """Host memory of each stage: offloaded optimizer states, and what offloaded layers keep: [S, ...]."""
    cost, strategy = context.cost, context.strategy
    per_dense, per_expert = cost.dense_state.host[0], cost.expert_state.host[0]
    ends = np.zeros(strategy.pp)
    ends[0] += cost.embedding_dense[0] * per_dense
    ends[context.head_stage] += cost.head_dense[0] * per_dense + cost.head_expert[0] * per_expert
    flight = context.memory.in_flight[0] if strategy.activation_offload else np.zeros(strategy.pp)
    shape = (-1, *(1 for _ in range(moved.ndim - 1)))
    total: Array = dense * per_dense + expert * per_expert + ends.reshape(shape) + flight.reshape(shape) * moved
    return total


def _stage_tails(context: RowContext, dense: Array, expert: Array) -> tuple[Array, Array]:
    """Once-a-step seconds of every (stage, start, count); stages between the ends share one table: two [S, A, C]."""
    cost, stages = context.cost, context.strategy.pp
    first, last = np.arange(stages) == 0, np.arange(stages) == context.head_stage
    kinds, index = np.unique(np.stack([first, last], axis=1), axis=0, return_inverse=True)
    extra_dense = kinds[:, 0] * cost.embedding_dense[0] + kinds[:, 1] * cost.head_dense[0]
    extra_expert = kinds[:, 1] * cost.head_expert[0]
    tail1, tail2 = context.costs.tail_parts_s(
        cost, dense + extra_dense[:, None, None], expert + extra_expert[:, None, None]
    )
    return tail1[index.reshape(-1)], tail2[index.reshape(-1)]


def _relieved_layers(
    context: RowContext, need: Array, starts: Ints, stops: Ints, fixed: int | None
) -> tuple[Ints, NDArray[np.bool_]]:
    """Fewest relieved layers for every (stage, start, count), and whether memory then suffices."""
    prefix, memory = context.prefix, context.memory
    layers = context.costs.model.num_layers
    tolerance = SLACK * context.costs.hardware.memory_bytes
    counts = np.broadcast_to(stops - starts, need.shape)
    flight = memory.in_flight[0][:, None, None]
    if fixed is not None:
        chosen = np.minimum(counts, fixed)
        saved = flight * (prefix.saving_bytes[np.minimum(starts + chosen, layers)] - prefix.saving_bytes[starts])
        replay = np.where(chosen > 0, memory.replay_bytes[0], 0.0)
        return chosen, need - saved + replay <= tolerance
    if prefix.saving_bytes[-1] <= 0:
        return np.zeros(need.shape, dtype=np.int64), need <= tolerance
    short = np.where(need > tolerance, need + memory.replay_bytes[0], 0.0)
    target = prefix.saving_bytes[starts] + (short - tolerance) / flight
    reach = np.searchsorted(prefix.saving_bytes, target.reshape(-1), side="left").reshape(need.shape)
    chosen = np.where(short > 0, np.maximum(reach - starts, 1), 0)
    return np.minimum(chosen, counts), chosen <= counts


def _best_of_family(context: RowContext, rules: SplitRules, cutoff_s: float) -> Candidate | None:
    """Several chunks a device: the declared family in order of a bound, until no member can win."""
    best: Candidate | None = None
    cutoff, objective = cutoff_s, _objective(context)
    running = context.prefix.forward_s + context.prefix.backward_s
    total_s = float(running[-1]) + float(context.ends_s.sum())
    family = chunk_family(context.costs.model.num_layers, context.strategy.num_chunks)
    busiest_s = np.array([(_device_sums(context, each, running) + context.ends_s).max() for each in family])
    zero = np.zeros(len(family))
    bounds = objective(zero + total_s, busiest_s, zero, zero)
    for bound_s, chunk_layers in sorted(zip(bounds.tolist(), family, strict=True)):
        if bound_s >= cutoff:
            break
        split = family_split(context, rules, chunk_layers)
        if split is None:
            continue
        candidate = evaluate_split(context, split)
        if candidate.step_time_s < cutoff:
            best, cutoff = candidate, candidate.step_time_s
    return best


@lru_cache(maxsize=1024)
def chunk_family(layers: int, chunks: int) -> tuple[tuple[int, ...], ...]:
    """Declared layouts of several chunks a device: near-even, ends up to END_RELIEF shorter."""
    found: dict[tuple[int, ...], None] = {}
    for less_first in range(END_RELIEF + 1):
        for less_last in range(END_RELIEF + 1):
            base, rest = divmod(layers + less_first + less_last, chunks)
            for front in (False, True):
                sizes = [base + (index < rest if front else index >= chunks - rest) for index in range(chunks)]
                sizes[0] -= less_first
                sizes[-1] -= less_last
                if min(sizes) >= 1:
                    found[tuple(sizes)] = None
    return tuple(found)


def _chunk_stages(context: RowContext) -> Ints:
    """Stage of each chunk along the model."""
    return np.array([context.strategy.chunk_stage(chunk) for chunk in range(context.strategy.num_chunks)])


def _device_sums(context: RowContext, chunk_layers: tuple[int, ...], column: Array) -> Array:
    """Sum of a running column over the layers of each device."""
    edges = column[np.cumsum((0, *chunk_layers))]
    stages = _chunk_stages(context)
    sums: Array = np.bincount(stages, weights=edges[1:] - edges[:-1], minlength=context.strategy.pp).astype(np.float64)
    return sums


def family_split(context: RowContext, rules: SplitRules, chunk_layers: tuple[int, ...]) -> Split | None:
    """The given dealing with the fewest relieved layers a chunk that fit each stage; None if nothing fits."""
    need = _family_need(context, rules, chunk_layers)
    chosen = _family_relief(context, chunk_layers, need)
    if chosen is None:
        return None
    strategy = context.strategy
    if rules.uniform and (strategy.recompute != "none" or strategy.activation_offload):
        every = int(chosen.max()) if strategy.recompute == "full" else max(chunk_layers)
        chosen = np.full_like(chosen, every)
        saving = _family_saving(context, chunk_layers, every)
        left = need - context.memory.in_flight[0] * saving + (context.memory.replay_bytes[0] if every else 0.0)
        if (left > SLACK * context.costs.hardware.memory_bytes).any():
            return None
    if not _family_host_fits(context, rules, chunk_layers, chosen):
        return None
    return Split(chunk_layers=chunk_layers, relieved=tuple(int(count) for count in chosen))


def _family_host_fits(context: RowContext, rules: SplitRules, chunk_layers: tuple[int, ...], chosen: Ints) -> bool:
    strategy, prefix = context.strategy, context.prefix
    if not (strategy.optimizer_offload or strategy.activation_offload):
        return True
    moved = np.array(
        [_family_saving(context, chunk_layers, count)[stage] for stage, count in enumerate(chosen.tolist())]
    )
    dense = _device_sums(context, chunk_layers, prefix.dense)
    expert = _device_sums(context, chunk_layers, prefix.expert)
    return bool((_host_bytes(context, dense, expert, moved) <= rules.host_limit_bytes).all())


def _family_need(context: RowContext, rules: SplitRules, chunk_layers: tuple[int, ...]) -> Array:
    """Bytes over the limit on each stage without relief."""
    prefix, memory, cost = context.prefix, context.memory, context.cost
    state = (
        _device_sums(context, chunk_layers, prefix.dense) * cost.dense_state.total[0]
        + _device_sums(context, chunk_layers, prefix.expert) * cost.expert_state.total[0]
    )
    saved = _device_sums(context, chunk_layers, prefix.saved_bytes)
    need: Array = memory.fixed_bytes[0] + state + memory.in_flight[0] * saved - rules.limit_bytes
    return need


def _family_saving(context: RowContext, chunk_layers: tuple[int, ...], count: int) -> Array:
    """Bytes a micro-batch that each stage saves when the first ``count`` layers of its chunks are relieved."""
    starts = np.concatenate([[0], np.cumsum(chunk_layers)[:-1]])
    stops = starts + np.minimum(count, chunk_layers)
    saved = context.prefix.saving_bytes[stops] - context.prefix.saving_bytes[starts]
    sums: Array = np.bincount(_chunk_stages(context), weights=saved, minlength=context.strategy.pp).astype(np.float64)
    return sums


def _family_relief(context: RowContext, chunk_layers: tuple[int, ...], need: Array) -> Ints | None:
    """Fewest relieved layers a chunk for each stage; None if even all of them are too few."""
    memory = context.memory
    tolerance = SLACK * context.costs.hardware.memory_bytes
    chosen = np.full(context.strategy.pp, -1, dtype=np.int64)
    most = max(chunk_layers) if context.prefix.saving_bytes[-1] > 0 else 0
    for count in range(most + 1):
        saving = _family_saving(context, chunk_layers, count) if count else 0.0
        left = need - memory.in_flight[0] * saving + (memory.replay_bytes[0] if count else 0.0)
        chosen = np.where((chosen < 0) & (left <= tolerance), count, chosen)
        if (chosen >= 0).all():
            return chosen
    return None
