"""How are layers dealt to stages that hold one chunk each?  Exact, by dynamic programming.

Every way to give consecutive layers to stages (``solver.stage_partition``); for each stage and span the fewest relieved
layers that fit the memory.  Back-ends that recompute the same number of layers in every chunk get that constraint
(``uniform``): one dynamic program for each number whose bound (``line_bound``) is fast enough.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.candidate import Candidate, Split
from planner.memory.moments import Moment
from planner.search.bound import BoundTerms
from planner.search.evaluate import evaluate_split
from planner.search.line_bound import ROUNDING, LineBound
from planner.search.row_context import RowContext
from planner.search.split_terms import SLACK, SplitRules, host_bytes, step_objective
from solver.check import check_partition
from solver.stage_partition import Objective, PartitionTables, partition

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def best_line(context: RowContext, rules: SplitRules, cutoff_s: float, known: Candidate | None) -> Candidate | None:
    """Best dealing that is faster than ``cutoff_s`` and than ``known``; ``known`` when there is none."""
    best = known
    for fixed, bound_s in _relief_choices(context, rules, cutoff_s if best is None else best.step_time_s):
        below_s = cutoff_s if best is None else best.step_time_s
        # Below by no more than what the bound gives away to rounding is not below.
        if bound_s * (1 + 2 * ROUNDING) >= below_s:
            break
        found = _best_line(context, rules, below_s, fixed)
        if found is not None:
            best = found
    return best


def _relief_choices(context: RowContext, rules: SplitRules, cutoff_s: float) -> list[tuple[int | None, float]]:
    """What relief may be where it is to be faster than ``cutoff_s``, with a bound of the step, the lowest bound first.

    None: every stage chooses for itself.  A number: every chunk relieves that many layers.
    """
    relieves = context.strategy.recompute != "none" or context.strategy.activation_offload
    if relieves and rules.first is not None:
        return [(rules.first, 0.0)]
    if relieves and not rules.uniform:
        return [(None, 0.0)]
    terms = BoundTerms(context.costs, context.row, context.cost)
    pairs = LineBound(context.costs, rules, context.row, context.cost, terms.tail_s).pairs(cutoff_s)
    order = np.argsort(pairs.step_s, kind="stable").tolist()
    return [(int(pairs.relieved[at]) if relieves else None, float(pairs.step_s[at])) for at in order]


def _best_line(context: RowContext, rules: SplitRules, cutoff_s: float, fixed: int | None) -> Candidate | None:
    """Best dealing for one choice of relief."""
    layers, stages = context.costs.model.num_layers, context.strategy.pp
    objective = step_objective(context)
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

    needs = []
    for moment in memory.moments:
        per_dense, per_expert = moment.dense_state.total[0], moment.expert_state.total[0]
        state = over(prefix.dense) * per_dense + over(prefix.expert) * per_expert
        flight = moment.in_flight[0][:, None, None]
        needs.append(
            moment.fixed_bytes[0][:, None, None] + state + flight * over(prefix.saved_bytes) - rules.limit_bytes
        )
    relieved, possible = _relieved_layers(context, needs, starts, stops, fixed)
    relief_s = prefix.relief_s[np.minimum(starts + relieved, layers)] - prefix.relief_s[starts]
    time_s = context.ends_s[:, None, None] + over(prefix.forward_s) + over(prefix.backward_s) + relief_s
    tail1, tail2 = _stage_tails(context, over(prefix.dense), over(prefix.expert))
    if context.strategy.optimizer_offload or context.strategy.activation_offload:
        moved = prefix.saving_bytes[np.minimum(starts + relieved, layers)] - prefix.saving_bytes[starts]
        host = host_bytes(context, over(prefix.dense), over(prefix.expert), moved)
        possible = possible & (host <= rules.host_limit_bytes)
    add = np.where(possible & inside, time_s, np.inf)
    return PartitionTables(add=add, peak=time_s, tail1=tail1, tail2=tail2, low=1), relieved


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
    context: RowContext, needs: list[Array], starts: Ints, stops: Ints, fixed: int | None
) -> tuple[Ints, NDArray[np.bool_]]:
    """Fewest relieved layers for every (stage, start, count), and whether memory then suffices at every moment.

    ``needs``: bytes over the limit without relief, of each moment.
    """
    first, *others = [
        _relieved_at(context, moment, need, starts, stops, fixed)
        for moment, need in zip(context.memory.moments, needs, strict=True)
    ]
    chosen, possible = first
    for more, fits in others:
        chosen, possible = np.maximum(chosen, more), possible & fits
    return chosen, possible


def _relieved_at(
    context: RowContext, moment: Moment, need: Array, starts: Ints, stops: Ints, fixed: int | None
) -> tuple[Ints, NDArray[np.bool_]]:
    """``_relieved_layers`` of one moment; where more layers are relieved than it asks for, it fits all the same."""
    prefix = context.prefix
    layers = context.costs.model.num_layers
    tolerance = SLACK * context.costs.hardware.memory_bytes
    counts = np.broadcast_to(stops - starts, need.shape)
    flight, replay_bytes = moment.in_flight[0][:, None, None], moment.replay_bytes[0][:, None, None]
    if fixed is not None:
        chosen = np.minimum(counts, fixed)
        saved = flight * (prefix.saving_bytes[np.minimum(starts + chosen, layers)] - prefix.saving_bytes[starts])
        replay = np.where(chosen > 0, replay_bytes, 0.0)
        return chosen, need - saved + replay <= tolerance
    if prefix.saving_bytes[-1] <= 0 or not flight.any():
        return np.zeros(need.shape, dtype=np.int64), need <= tolerance
    short = np.where(need > tolerance, need + replay_bytes, 0.0)
    target = prefix.saving_bytes[starts] + (short - tolerance) / flight
    reach = np.searchsorted(prefix.saving_bytes, target.reshape(-1), side="left").reshape(need.shape)
    chosen = np.where(short > 0, np.maximum(reach - starts, 1), 0)
    return np.minimum(chosen, counts), chosen <= counts
