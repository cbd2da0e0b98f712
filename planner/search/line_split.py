"""Deals layers to stages that hold one chunk each: exact, by dynamic programming.

Every way to give consecutive layers to stages (``solver.stage_partition``); for each stage and span the fewest relieved
layers that fit the memory.  The dynamic program minimises a lower bound of the simulated step: the longest of some
paths of the order.  What it finds is simulated; where the run is longer than the bound, its longest path joins the
others and the program is solved again, until no dealing is left whose paths are shorter than the fastest run, or until
the program grows too large: what the paths then say is left open (``LeftOpen``), and the proof has that gap.  Known
from the start, with F and B the forward and backward pass of a stage r, T both, m micro-batches, p stages, hop c::

    gpipe    sum T + max_r (m-1) T_r + 2 (p-1) c
    1f1b     sum T + max_r ((m-1) B_r + (m - min(p - r, m)) F_r) + 2 (p-1) c
    zb_h1    sum F + max_r (m T_r - min(p - r, m) F_r) + (p-1) c

(the way down to the last stage and back to stage r, then what is left of its work).

Back-ends that recompute the same number of layers in every chunk get that constraint
(``uniform``): one dynamic program for each number whose bound (``line_bound``) is fast enough.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from planner.predict.candidate import Candidate, Split
from planner.predict.memory.moments import Moment
from planner.predict.schedule.least_makespan import least_makespan_s
from planner.predict.schedule.paths import PathCounts
from planner.search.bound import BoundTerms
from planner.search.chunk_times import end_times
from planner.search.evaluate import evaluate_split, run_split
from planner.search.line_bound import ROUNDING, LineBound
from planner.search.row_context import RowContext
from planner.search.split_terms import SLACK, SplitRules, host_bytes
from planner.strategy.schedules import ScheduleName
from solver.arrays import Array, Ints
from solver.check import check_partition
from solver.stage_partition import Partition, PartitionTables, TooManyLabels, partition

Order = tuple[ScheduleName, tuple[int, int, int, int]]

DEEPER = (1e-6, 1 / 16)
"""Parts of the way from the best known bound to the cutoff in which a dealing is looked for first."""
SOLVED = 1e-12
"""Relative difference of a run and of its paths' bound that is rounding."""
MOST_PATHS, MOST_LABELS = 24, 5_000
"""Paths of runs that are added, and labels of a program (some 0.1 s): where more would be needed, the bound hardly
rises from one path to the next."""


@dataclass(slots=True)
class LeftOpen:
    """No dealing that was not looked at is faster than ``bound_s``; infinite: every dealing was."""

    bound_s: float = float("inf")
    paths: dict[Order, tuple[PathCounts, ...]] = field(default_factory=dict)
    """The paths that the last program of each order ended with: those of its next one are mostly the same."""


def best_line(
    context: RowContext, rules: SplitRules, cutoff_s: float, known: Candidate | None, left: LeftOpen | None = None
) -> Candidate | None:
    """Best dealing that is faster than ``cutoff_s`` and than ``known``; ``known`` when there is none."""
    best, left = known, left or LeftOpen()
    for fixed, bound_s in _relief_choices(context, rules, cutoff_s if best is None else best.step_time_s):
        below_s = cutoff_s if best is None else best.step_time_s
        # Below by no more than what the bound gives away to rounding is not below.
        if bound_s * (1 + 2 * ROUNDING) >= below_s:
            break
        found = _best_line(context, rules, below_s, fixed, left)
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


def _best_line(
    context: RowContext, rules: SplitRules, cutoff_s: float, fixed: int | None, left: LeftOpen
) -> Candidate | None:
    """Best dealing for one choice of relief."""
    layers, stages = context.costs.model.num_layers, context.strategy.pp
    high = min(rules.longest_span(layers, stages), _longest_span(context, cutoff_s))
    if high < 1 or high * stages < layers:
        return None
    line = _tables(context, rules, high, fixed)
    order = context.strategy.schedule, context.strategy.order_sizes
    if order in left.paths and _surely_none(line, left.paths[order], cutoff_s):
        return None
    best: Candidate | None = None
    while True:
        below_s = cutoff_s if best is None else best.step_time_s
        try:
            answer = _nearest(line, below_s)
        except TooManyLabels:
            left.bound_s = min(left.bound_s, line.least_s)
            return best
        if answer is None:
            return best
        check_partition(line.tables, answer.counts, line.objective, answer.objective)
        starts = np.concatenate([[0], np.cumsum(answer.counts)[:-1]])
        chosen = tuple(
            int(line.relieved[stage, start, count - line.tables.low])
            for stage, (start, count) in enumerate(zip(starts.tolist(), answer.counts, strict=True))
        )
        split = Split(chunk_layers=answer.counts, relieved=chosen)
        step_s, run = run_split(context, split)
        if step_s < below_s:
            best = evaluate_split(context, split)
        if step_s <= answer.objective * (1 + SOLVED):
            return best
        if len(line.tables.more) == MOST_PATHS:
            left.bound_s = min(left.bound_s, line.least_s)
            return best
        line.add_path(run.longest_path())
        left.paths[order] = line.paths


def _surely_none(line: _Line, paths: tuple[PathCounts, ...], below_s: float) -> bool:
    """Whether ``paths`` alone show that no dealing is faster than ``below_s`` by more than rounding."""
    known = copy(line)
    for path in paths:
        known.add_path(path)
    try:
        return partition(known.tables, known.objective, below_s * (1 - SOLVED), MOST_LABELS) is None
    except TooManyLabels:
        return False


def _nearest(line: _Line, below_s: float) -> Partition | None:
    """The dealing of the least bound below ``below_s``; None when there is none; raises ``TooManyLabels``.

    Another path mostly leaves dealings of nearly the same bound, and the nearer the cutoff, the fewer labels there are:
    it comes up to ``below_s`` in steps.
    """
    most = MOST_LABELS if line.tables.more else float("inf")
    known_s = line.least_s
    steps = DEEPER if line.tables.more and np.isfinite(below_s) else ()
    for cutoff_s in (*(known_s + step * (below_s - known_s) for step in steps), below_s):
        answer = partition(line.tables, line.objective, cutoff_s, most)
        line.least_s = cutoff_s if answer is None else answer.objective
        if answer is not None:
            return answer
    return None


def _longest_span(context: RowContext, cutoff_s: float) -> int:
    """Most layers that a stage can hold in a dealing faster than the cutoff."""
    layers, strategy = context.costs.model.num_layers, context.strategy
    if not np.isfinite(cutoff_s):
        return layers
    running = context.prefix.forward_s + context.prefix.backward_s
    total_s = float(running[-1]) + float(context.ends_s.sum())
    shortest_s = np.array([float((running[count:] - running[:-count]).min()) for count in range(1, layers + 1)])
    sizes = np.full(layers, strategy.num_microbatches), np.full(layers, strategy.pp)
    zero = np.zeros(layers)
    seconds = zero + total_s, np.maximum(shortest_s, total_s / strategy.pp), zero, zero, zero + total_s
    step_s = least_makespan_s(strategy.schedule, *sizes, seconds)
    return int((step_s <= cutoff_s).sum())


class _Line:
    """Cost tables [S, A, C] of the dynamic program, and how many layers each entry relieves."""

    def __init__(
        self,
        context: RowContext,
        seconds: tuple[Array, Array, Array],
        tails: tuple[Array, Array],
        relieved: Ints,
        possible: NDArray[np.bool_],
        low: int,
    ) -> None:
        strategy, (forward_s, backward_s, _) = context.strategy, seconds
        m, p, hop_s = strategy.num_microbatches, strategy.pp, float(context.cost.hop_s[0])
        self.seconds, self.relieved, self.hop_s = seconds, relieved, hop_s
        self.least_s = 0.0  # no dealing's bound is below it
        self.paths: tuple[PathCounts, ...] = ()
        done = np.minimum(p - np.arange(p), m)[:, None, None]
        if strategy.schedule == "zb_h1":
            add, peak = forward_s, m * (forward_s + backward_s) - done * forward_s
            self.constants_s = [(p - 1) * hop_s]
        elif strategy.schedule == "gpipe":
            add, peak = forward_s + backward_s, (m - 1) * (forward_s + backward_s)
            self.constants_s = [2 * (p - 1) * hop_s]
        else:
            add, peak = forward_s + backward_s, (m - 1) * backward_s + (m - done) * forward_s
            self.constants_s = [2 * (p - 1) * hop_s]
        self.tables = PartitionTables(np.where(possible, add, np.inf), peak, *tails, low=low)

    def add_path(self, path: PathCounts) -> None:
        """Let the objective know the length of one more path."""
        counts = path.forwards, path.backwards, path.weight_gradients
        length_s = sum(
            (count[:, None, None] * seconds for count, seconds in zip(counts, self.seconds, strict=True)),
            np.zeros(()),
        )
        self.constants_s = [*self.constants_s, path.hops * self.hop_s]
        self.paths = *self.paths, path
        self.tables = replace(self.tables, more=(*self.tables.more, np.asarray(length_s)))

    def objective(self, total: Array, peak: Array, tail1: Array, tail2: Array, *more: Array) -> Array:
        """Longest of the known paths, and what follows the pipeline."""
        longest_s = total + peak + self.constants_s[0]
        for path_s, hops_s in zip(more, self.constants_s[1:], strict=True):
            longest_s = np.maximum(longest_s, path_s + hops_s)
        return np.asarray(longest_s + tail1 + tail2)


def _tables(context: RowContext, rules: SplitRules, high: int, fixed: int | None) -> _Line:
    """What the dynamic program needs, with stages of up to ``high`` layers, none on the ends that may be empty."""
    prefix, memory, stages = context.prefix, context.memory, context.strategy.pp
    layers = context.costs.model.num_layers
    least = rules.least_layers(stages)
    low = int(least.min())
    starts, lengths = np.arange(layers + 1)[:, None], np.arange(low, high + 1)[None, :]
    stops = np.minimum(starts + lengths, layers)
    inside = (starts + lengths <= layers) & (lengths >= least[:, None, None])

    def over(column: Array) -> Array:
        spans: Array = column[stops] - column[starts]
        return spans

    needs = []
    for moment in memory.moments:
        per_dense, per_expert = moment.dense_state.total[0], moment.expert_state.total[0]
        state = over(prefix.dense) * per_dense + over(prefix.expert) * per_expert + over(prefix.frozen_bytes)
        flight = moment.in_flight[0][:, None, None]
        needs.append(
            moment.fixed_bytes[0][:, None, None] + state + flight * over(prefix.saved_bytes) - rules.limit_bytes
        )
    relieved, possible = _relieved_layers(context, needs, starts, stops, fixed)
    relief_s = prefix.relief_s[np.minimum(starts + relieved, layers)] - prefix.relief_s[starts]
    ends_s = end_times(context, stages)
    seconds = (
        ends_s[0][:, None, None] + over(prefix.forward_s),
        ends_s[1][:, None, None] + over(prefix.backward_s) + relief_s,
        ends_s[2][:, None, None] + over(prefix.weight_gradient_s),
    )
    tails = _stage_tails(context, over(prefix.dense), over(prefix.expert))
    if context.strategy.optimizer_offload or context.strategy.activation_offload:
        moved = prefix.saving_bytes[np.minimum(starts + relieved, layers)] - prefix.saving_bytes[starts]
        host = host_bytes(context, over(prefix.dense), over(prefix.expert), moved)
        possible = possible & (host <= rules.host_limit_bytes)
    return _Line(context, seconds, tails, relieved, possible & inside, low)


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
