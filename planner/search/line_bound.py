"""Lower bounds of strategies of one chunk a device, where every chunk relieves the same number of layers.

For each number k of relieved layers a chunk, stage r holds at most M_r layers (memory, for every mixture of kinds that
a span can be), and at most as many as the shortest span of that length allows within tau seconds.  The bottleneck is
the smallest tau in which the stages hold every layer and one each at least (the ends none where they may be empty),
exactly: one of the values ``e_r`` (ends) plus a shortest span.  The least that the fullest stage has of dense and of
expert parameters comes about in the same way and bounds the tail.  The first k of n <= H layers are at least the share
k / H of them, H the longest span that is fast enough: over the model, relief takes that share at least of what
relieving every layer would take.

With one layer kind nothing but the tail, and relief of some layers, keeps this from being the step time itself.  With
several kinds the bound with each layer where it stands (``planner.search.line_dealings``) is taken where it is higher.
Shape letters: R rows, Q pairs of a row and a number of relieved layers, P stages, H lengths, V mixtures, N layer kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.predict.cost.data_parallel import TailCost
from planner.predict.cost.row_cost import CostModel, RowCost
from planner.predict.cost.short_axis import rows_at
from planner.predict.stage_memory import end_seconds, head_stage, stage_memory
from planner.search.bound import Schedules, makespan_s
from planner.search.layer_spans import Spans, spans_of
from planner.search.line_dealings import (
    FULLEST_DENSE,
    FULLEST_EXPERT,
    RELIEF,
    REST,
    Line,
    layer_columns,
    moment_columns,
)
from planner.search.line_paths import LinePaths
from planner.search.row_context import take
from planner.search.split_terms import SLACK, SplitRules
from planner.strategy.rows import StrategyRows
from solver.arrays import Array, Ints, Mask

ROUNDING = 2e-13
"""Relative slack that keeps another order of the same sums below what the exact search finds."""
IN_ORDER = 1e-11
"""The same where dealings are gone through layer by layer."""
PAIRS = 256
"""Pairs handled at a time; they bound the memory that a bound needs."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """A row with a number of relieved layers a chunk, and a lower bound of the step time with it: [Q] each."""

    row: Ints
    relieved: Ints
    step_s: Array


class LineBound:
    """Rows of one number of stages with one chunk each, under rules that are ``uniform``.

    ``tail_s`` [R]: the mean stage's tail.
    """

    def __init__(self, costs: CostModel, rules: SplitRules, rows: StrategyRows, cost: RowCost, tail_s: Array) -> None:
        self.costs, self.rules, self.rows, self.cost, self.tail_s = costs, rules, rows, cost, tail_s
        self.pp, self.num_layers = int(rows.pp[0]), costs.model.num_layers
        self.least = rules.least_layers(self.pp)
        self.spans: Spans = spans_of(costs.kind_sequence, len(costs.kind_counts))
        self.schedules = Schedules.of(rows)
        self.ends_s = end_seconds(rows, cost, self.pp)
        self.total_s = cost.layer_s @ costs.kind_counts + self.ends_s.sum(axis=1)
        self.moments = stage_memory(rows, cost, costs.reliefs, self.pp).moments
        self.paths = LinePaths(rows, cost, costs.kind_counts)
        layers_s = cost.layer_forward_s + cost.layer_backward_s
        self.forward_share = np.divide(cost.layer_forward_s, layers_s, out=np.zeros_like(layers_s), where=layers_s > 0)
        self.forward_share = self.forward_share.max(axis=1)

    def step_s(self, cutoff_s: float) -> Array:
        """Lower bound of every row: [R]; infinity where nothing fits and may be faster than ``cutoff_s``."""
        result = np.full(len(self.rows), np.inf)
        pairs = self.pairs(cutoff_s)
        np.minimum.at(result, pairs.row, pairs.step_s)
        return result

    def pairs(self, cutoff_s: float) -> Pairs:
        """Every number of relieved layers that may matter below ``cutoff_s``, row by row, fewest first.

        More than the longest span holds is as much as that, and left out.
        """
        longest = self._longest(cutoff_s)
        row = np.flatnonzero(longest * self.pp >= self.num_layers)
        full = np.array([relief.recompute == "full" for relief in self.costs.reliefs])[self.rows.relief[row]]
        some = full & (not self.rules.whole)
        many = np.where(some, longest[row] + 1, 1)
        of = np.repeat(row, many)
        relieved = np.arange(len(of)) - np.repeat(np.cumsum(many) - many, many)
        relieved = np.where(np.repeat(some, many), relieved, self.num_layers)
        parts = [slice(start, start + PAIRS) for start in range(0, len(of), PAIRS)]
        step_s = [self._step_s(of[part], relieved[part], longest[of[part]], cutoff_s) for part in parts]
        return Pairs(of, relieved, np.concatenate([np.zeros(0), *step_s]))

    def _shortest(self, column: Array, most: int) -> Array:
        """Least of a layer column [R, N] over the spans of each length up to ``most``: [R, most]."""
        least: Array = np.minimum.reduceat(column @ self.spans.counts.T, self.spans.first, axis=1)
        return least[:, :most]

    def _longest(self, cutoff_s: float) -> Ints:
        """Most layers that a stage can hold in a dealing that is faster than the cutoff, without relief: [R]."""
        most = self.rules.longest_span(self.num_layers, self.pp)
        if not np.isfinite(cutoff_s) or most < 1:
            return np.full(len(self.rows), max(most, 0))
        shortest_s = self._shortest(self.cost.layer_s, most)
        row = np.repeat(np.arange(len(self.rows)), most)
        total_s = self.total_s[row]
        makespan = self._makespan_s(row, total_s, np.maximum(shortest_s.ravel(), total_s / self.pp))
        fast = (makespan + self.tail_s[row]) * (1 - ROUNDING) < cutoff_s
        return np.asarray(fast.reshape(-1, most).sum(axis=1))

    def _makespan_s(self, row: Ints, total_s: Array, peak_s: Array) -> Array:
        seconds = total_s, peak_s, self.cost.hop_s[row], np.zeros(len(row)), self.paths.gradient_s[row]
        return makespan_s(take(self.schedules, row), seconds)

    def _step_s(self, row: Ints, relieved: Ints, longest: Ints, cutoff_s: float) -> Array:
        """Lower bound of some pairs: [Q]."""
        cost, most = self.cost, int(longest.max())
        lengths = np.arange(1, most + 1)
        every = relieved[:, None] >= lengths
        relief_s = rows_at(cost.relief_s, row)
        part_s = relieved[:, None] * relief_s.min(axis=1)[:, None]
        spans_s = self._shortest(rows_at(cost.layer_s, row), most)
        whole_s = self._shortest(rows_at(cost.layer_s, row) + relief_s, most)
        spans_s = np.where(every, whole_s, spans_s + part_s)
        # Where kinds differ in what relief takes, a longer span may come out below a shorter one.
        spans_s = np.minimum.accumulate(spans_s[:, ::-1], axis=1)[:, ::-1]
        held = np.minimum(self._held(row, relieved, most), longest[:, None])
        paths = self.paths.take(row)
        ends_s = paths.of_stages_s(rows_at(self.ends_s, row), paths.ends_forward_s)
        stages_s = paths.least_of_stages_s(np.repeat(spans_s[:, None, :], self.pp, axis=1), self.forward_share[row])
        rest_s = least_bottleneck(stages_s, ends_s, held, self.num_layers, self.least)
        share = np.where(relieved >= longest, 1.0, relieved / longest)
        total_s = self.total_s[row] + self._relief_total_s(relief_s, relieved, longest, share)
        step_s = np.full(len(row), np.inf)
        at = np.flatnonzero(np.isfinite(rest_s))
        makespan = paths.take(at).longest_s(total_s[at], rest_s[at])
        fast = makespan + self.tail_s[row[at]] < cutoff_s * (1 + ROUNDING)
        at, makespan = at[fast], makespan[fast]
        if len(at):
            tail_s = self._least_tail_s(row[at], held[at], most)
            step_s[at] = (makespan + tail_s) * (1 - ROUNDING)
            if self._line is not None:
                in_order_s = self._in_order_s(row[at], relieved[at], longest[at], (total_s[at], tail_s))
                step_s[at] = np.where(in_order_s < cutoff_s, np.maximum(step_s[at], in_order_s), np.inf)
        return step_s

    @cached_property
    def _line(self) -> Line | None:
        """The rows with each layer where it stands; None where all layers are alike."""
        if len(set(self.costs.kind_sequence)) == 1:
            return None
        ends_s = self.paths.of_stages_s(self.ends_s, self.paths.ends_forward_s)
        ends = np.concatenate([ends_s, *self._end_parameters(np.arange(len(self.rows)))], axis=1)
        limit = self.rules.limit_bytes + 2 * SLACK * self.costs.hardware.memory_bytes
        kinds, tables = np.array(self.costs.kind_sequence), (layer_columns(self.cost), self.paths.weights(), ends)
        return Line(kinds, self.least, limit, *tables, moment_columns(self.moments))

    def _in_order_s(self, row: Ints, relieved: Ints, longest: Ints, known: tuple[Array, Array]) -> Array:
        """Lower bound of pairs with each layer where it stands (``planner.search.line_dealings``): [Q].

        ``known``: what all stages take together and the tail, at least.  Infinity where no dealing fits.
        """
        assert self._line is not None
        values = self._line.least_values(row, relieved, longest) * (1 - IN_ORDER)
        step_s = np.full(len(row), np.inf)
        at = np.flatnonzero(np.isfinite(values[:, REST]))
        row, values, (total_s, tail_s) = row[at], values[at], (each[at] for each in known)
        total_s = np.maximum(total_s, self.total_s[row] + values[:, RELIEF])
        makespan = self.paths.take(row).longest_s(total_s, values[:, REST])
        tails = self.costs.tail_parts_s(
            take(TailCost.of(self.cost), row), values[:, FULLEST_DENSE], values[:, FULLEST_EXPERT]
        )
        step_s[at] = (makespan + np.maximum(tails[0] + tails[1], tail_s)) * (1 - ROUNDING)
        return step_s

    def _relief_total_s(self, relief_s: Array, relieved: Ints, longest: Ints, share: Array) -> Array:
        """What relief takes over the whole model at least: [Q]."""
        all_s = relief_s @ self.costs.kind_counts
        some_s = self.num_layers * relief_s.min(axis=1) * share
        return np.asarray(np.where(relieved >= longest, all_s, some_s))

    def _held(self, row: Ints, relieved: Ints, most: int) -> Ints:
        """Most layers, up to ``most``, that the memory of each stage holds: [Q, P]."""
        cost = self.cost
        stop = int(self.spans.first[most]) if most < len(self.spans.first) else len(self.spans.lengths)
        counts, lengths = self.spans.counts[:stop], self.spans.lengths[:stop]
        saving = rows_at(cost.saved_bytes - cost.relieved_bytes, row)
        freed = np.minimum(saving @ counts.T, (relieved * saving.max(axis=1))[:, None])
        kept = rows_at(cost.saved_bytes, row) @ counts.T - freed
        dense, expert = rows_at(cost.layer_dense, row) @ counts.T, rows_at(cost.layer_expert, row) @ counts.T
        frozen = rows_at(cost.frozen.layer, row) @ counts.T
        limit = self.rules.limit_bytes + 2 * SLACK * self.costs.hardware.memory_bytes
        fits = np.ones((len(row), self.pp, stop), dtype=np.bool_)
        for moment in self.moments:
            states = moment.dense_state.total[row, None], moment.expert_state.total[row, None]
            again = np.where(relieved[:, None] > 0, rows_at(moment.replay_bytes, row), 0.0)
            room = limit - rows_at(moment.fixed_bytes, row) - again
            held = (dense * states[0] + expert * states[1] + frozen)[:, None, :]
            held = held + rows_at(moment.in_flight, row)[:, :, None] * kept[:, None, :]
            fits &= held <= room[:, :, None]
        longest: Ints = np.where(fits, lengths, 0).max(axis=2)
        return longest

    def _end_parameters(self, row: Ints) -> tuple[Array, Array]:
        """Dense and expert parameters of the ends on each stage: two [Q, P]."""
        cost, pair, last = self.cost, np.arange(len(row)), head_stage(self.rows, self.pp)[row]
        dense, expert = np.zeros((2, len(row), self.pp))
        dense[:, 0] += cost.embedding_dense[row]
        dense[pair, last] += cost.head_dense[row]
        expert[pair, last] += cost.head_expert[row]
        return dense, expert

    def _least_tail_s(self, row: Ints, held: Ints, most: int) -> Array:
        """Tail of the fullest stages in whatever dealing that fits: [Q]."""
        cost, fullest = self.cost, []
        for column, ends in zip((cost.layer_dense, cost.layer_expert), self._end_parameters(row), strict=True):
            mean = (rows_at(column, row) @ self.costs.kind_counts + ends.sum(axis=1)) / self.pp
            spans = self._shortest(rows_at(column, row), most)
            least = least_bottleneck(spans, ends, held, self.num_layers, self.least)
            fullest.append(np.maximum(mean, least))
        tails = self.costs.tail_parts_s(take(TailCost.of(cost), row), *fullest)
        return tails[0] + tails[1]


def least_bottleneck(spans: Array, ends: Array, held: Ints, needed: int, least: Ints) -> Array:
    """Smallest value that no stage exceeds in a dealing of ``needed`` layers, or a lower bound of it: [Q].

    ``spans`` [Q, H], or [Q, P, H] where it depends on the stage: what 1 .. H layers come to at least, ascending;
    ``ends`` [Q, P] what a stage adds;
    ``held`` [Q, P] and ``least`` [P]: most and fewest layers of each stage, the fewest 0 or 1.  Infinity where the
    stages cannot hold them all.
    """
    if (least < 1).any():
        # What an empty stage comes to: its ends alone, which may be the bottleneck.
        spans = np.concatenate([np.zeros((*spans.shape[:-1], 1)), spans], axis=-1)
    kinds, index = (ends, np.arange(ends.shape[1])) if spans.ndim == 3 else _end_kinds(ends)
    values = ((spans if spans.ndim == 3 else spans[:, None, :]) + kinds[:, :, None]).reshape(len(spans), -1)
    order = np.sort(values, axis=1)
    pair, low = np.arange(len(spans)), np.full(len(spans), -1)
    high = np.full(len(spans), order.shape[1] - 1)
    stages = index, held, least
    possible = _deals(values, order[:, -1], stages, needed)
    while (low + 1 < high).any():
        middle = (low + high) // 2
        enough = _deals(values, order[pair, np.maximum(middle, 0)], stages, needed) & (middle >= 0)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(possible, order[pair, high], np.inf)


def _deals(values: Array, tau: Array, stages: tuple[Ints, Ints, Ints], needed: int) -> Mask:
    """Whether the stages hold every layer, and their fewest each, without exceeding ``tau`` [Q].

    ``stages``: which column of ``values`` each has, most and fewest layers.
    """
    index, held, least = stages
    kinds = int(index.max()) + 1
    within = (values <= tau[:, None]).reshape(len(values), kinds, -1).sum(axis=2)
    if (least < 1).any():
        # The first value of a stage is that of no layer: below zero layers even an empty stage exceeds tau.
        within -= 1
    counts = np.minimum(within[:, index], held)
    return np.asarray((counts.sum(axis=1) >= needed) & (counts >= least).all(axis=1))


def _end_kinds(ends: Array) -> tuple[Array, Ints]:
    """Different columns of ``ends`` [Q, K], and which of them each stage has: [P]."""
    index = np.zeros(ends.shape[1], dtype=np.int64)
    picked = [0]
    for stage in range(1, ends.shape[1]):
        same = [place for place, other in enumerate(picked) if np.array_equal(ends[:, stage], ends[:, other])]
        if not same:
            same = [len(picked)]
            picked.append(stage)
        index[stage] = same[0]
    return ends[:, picked], index
