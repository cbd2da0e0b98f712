"""Deals layers to stages that hold several chunks each: the declared family, every member at once.

Layers spread evenly over the chunks, the first and the last chunk up to ``END_RELIEF`` layers shorter (empty where the
back-end lets them be), the remainder on the first or on the last chunks.  For each member the fewest relieved layers a
chunk that fit each stage.  Paths of the order bound the step time of all members in one go
(``planner.search.path_bounds``); they are simulated in the order of their bounds, and each run's longest path bounds
those after it, until no bound is below the fastest.
Shape letters: F members, C chunks, P stages, K numbers of relieved layers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.predict.candidate import Candidate, Split
from planner.search.chunk_family import chunk_family
from planner.search.chunk_times import chunk_times
from planner.search.evaluate import evaluate_split
from planner.search.path_bounds import ROUNDING, PathBounds
from planner.search.row_context import RowContext
from planner.search.split_terms import SLACK, SplitRules, host_bytes
from solver.arrays import Array, Ints


def best_of_family(context: RowContext, rules: SplitRules, cutoff_s: float) -> Candidate | None:
    """Fastest member of the declared family below ``cutoff_s`` that fits; None when there is none."""
    layers, chunks = context.costs.model.num_layers, context.strategy.num_chunks
    family = chunk_family(layers, chunks, empty_ends=rules.empty_ends)
    members = _Members(context, np.array(family, dtype=np.int64).reshape(-1, chunks))
    if len(members.sizes) == 0:
        return None
    relieved, fits = members.relieved_layers(rules)
    times = chunk_times(context, members.sizes, relieved)
    paths = PathBounds(context.strategy.schedule, context.strategy.order_sizes, float(context.cost.hop_s[0]))
    if np.where(fits, paths.least_s(times), np.inf).min() * (1.0 - ROUNDING) >= cutoff_s:
        return None
    tail_s = members.tail_s()
    best, best_s = -1, cutoff_s
    left = fits.copy()
    while left.any():
        bounds = np.where(left, paths.least_s(times) + tail_s, np.inf)
        member = int(np.argmin(bounds))
        if bounds[member] * (1.0 - ROUNDING) >= best_s:
            break
        left[member] = False
        step_s = paths.run(times.of(member)) + tail_s[member]
        if step_s < best_s:
            best, best_s = member, step_s
    return None if best < 0 else evaluate_split(context, members.split(best, relieved))


def given_split(context: RowContext, rules: SplitRules, chunk_layers: tuple[int, ...]) -> Split | None:
    """A dealing given by hand with the fewest relieved layers a chunk that fit; None if nothing fits."""
    members = _Members(context, np.array([chunk_layers], dtype=np.int64))
    relieved, fits = members.relieved_layers(rules)
    return members.split(0, relieved) if fits[0] else None


class _Members:
    """Dealings of the layers over the chunks of one strategy, costed together."""

    def __init__(self, context: RowContext, sizes: Ints) -> None:
        self.context = context
        self.sizes = sizes
        stops = np.cumsum(sizes, axis=1)
        self.starts = stops - sizes
        stages = [context.strategy.chunk_stage(chunk) for chunk in range(sizes.shape[1])]
        self.stages = np.array(stages)
        self.owner = np.zeros((sizes.shape[1], context.strategy.pp))
        self.owner[np.arange(sizes.shape[1]), stages] = 1.0

    def split(self, member: int, relieved: Ints) -> Split:
        """One member as a split."""
        return Split(
            chunk_layers=tuple(self.sizes[member].tolist()), relieved=tuple(int(k) for k in relieved[member].tolist())
        )

    def on_devices(self, column: Array, counts: Ints | None = None) -> Array:
        """Sum of a running column over each device's layers, or over the first ``counts`` of each chunk: [F, P]."""
        lengths = self.sizes if counts is None else np.minimum(counts, self.sizes)
        sums: Array = (column[self.starts + lengths] - column[self.starts]) @ self.owner
        return sums

    def relieved_layers(self, rules: SplitRules) -> tuple[Ints, NDArray[np.bool_]]:
        """Fewest relieved layers a chunk for each stage [F, P], and which members then fit [F]."""
        context, strategy = self.context, self.context.strategy
        needs = self._needs(rules)
        tolerance = SLACK * context.costs.hardware.memory_bytes
        chosen = np.full((len(self.sizes), strategy.pp), -1, dtype=np.int64)
        most = int(self.sizes.max()) if context.prefix.saving_bytes[-1] > 0 else 0
        for count in range(most + 1):
            chosen = np.where((chosen < 0) & (self._left(needs, count) <= tolerance), count, chosen)
            if (chosen >= 0).all():
                break
        fits = np.asarray((chosen >= 0).all(axis=1))
        chosen = np.maximum(chosen, 0)
        if rules.first is not None and (strategy.recompute != "none" or strategy.activation_offload):
            fits = np.asarray((self._left(needs, rules.first) <= tolerance).all(axis=1))
            return np.full_like(chosen, rules.first), fits & self._host_fits(rules, np.full_like(chosen, rules.first))
        if (rules.uniform or rules.even) and (strategy.recompute != "none" or strategy.activation_offload):
            few = strategy.recompute == "full" and not (rules.even or rules.whole)
            every = chosen.max(axis=1) if few else self.sizes.max(axis=1)
            chosen = np.broadcast_to(every[:, None], chosen.shape).copy()
            for count in sorted({*every.tolist()}):
                same = every == count
                fits[same] &= (self._left(needs, count)[same] <= tolerance).all(axis=1)
        return chosen, fits & self._host_fits(rules, chosen)

    def _needs(self, rules: SplitRules) -> list[Array]:
        """Bytes over the limit on each stage without relief, at each moment of the step: [F, P]."""
        prefix = self.context.prefix
        dense, expert = self.on_devices(prefix.dense), self.on_devices(prefix.expert)
        saved, frozen = self.on_devices(prefix.saved_bytes), self.on_devices(prefix.frozen_bytes)
        needs = []
        for moment in self.context.memory.moments:
            state = dense * moment.dense_state.total[0] + expert * moment.expert_state.total[0] + frozen
            held = moment.fixed_bytes[0] + state + moment.in_flight[0] * saved
            needs.append(held - rules.limit_bytes)
        return needs

    def _left(self, needs: list[Array], count: int) -> Array:
        """Bytes over the limit with the first ``count`` layers of every chunk relieved: [F, P]."""
        if count:
            counts = np.full_like(self.sizes, count)
            saving = self.on_devices(self.context.prefix.saving_bytes, counts)
            moments = self.context.memory.moments
            needs = [
                need - moment.in_flight[0] * saving + moment.replay_bytes[0]
                for moment, need in zip(moments, needs, strict=True)
            ]
        left: Array = np.maximum.reduce(needs)
        return left

    def _host_fits(self, rules: SplitRules, chosen: Ints) -> NDArray[np.bool_]:
        strategy, prefix = self.context.strategy, self.context.prefix
        if not (strategy.optimizer_offload or strategy.activation_offload):
            return np.ones(len(self.sizes), dtype=bool)
        moved = self.on_devices(prefix.saving_bytes, chosen[:, self.stages])
        dense, expert = self.on_devices(prefix.dense), self.on_devices(prefix.expert)
        held = host_bytes(self.context, dense.T, expert.T, moved.T)
        return np.asarray((held <= rules.host_limit_bytes).all(axis=0))

    def tail_s(self) -> Array:
        """What follows the pipeline of every member: [F]."""
        context, prefix = self.context, self.context.prefix
        dense, expert = self.on_devices(prefix.dense), self.on_devices(prefix.expert)
        dense[:, 0] += context.cost.embedding_dense[0]
        dense[:, context.head_stage] += context.cost.head_dense[0]
        expert[:, context.head_stage] += context.cost.head_expert[0]
        tails = context.costs.tail_parts_s(context.cost, dense.max(axis=1), expert.max(axis=1))
        return np.asarray(tails[0] + tails[1])
