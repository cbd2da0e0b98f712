"""Bounds that know how a back-end deals layers are bounds: against the exact search, leaf by leaf."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from planner.backends.asked import problem_hardware
from planner.predict.candidate import Candidate
from planner.question.problem import Problem
from planner.search.branch import Search
from planner.search.dealt_bounds import DealtBounds
from planner.search.leaves import Leaves
from planner.search.line_split import LeftOpen, _best_line
from planner.search.memory_bound import relief_bounds_s
from planner.search.options import SearchOptions
from planner.search.row_context import RowContext, row_context
from planner.search.setups import shardings_by_setup
from planner.search.split import best_split
from tests.sampling import runs_whole
from tests.search_problems import Size, random_problem

BACKENDS = ("unrestricted", "megatron", "torchtitan")
ONE_CHUNK = (*BACKENDS, "deepspeed")
DEEP = Size(max_devices=16, max_layers=14, max_batch=16, narrowings=1)
LEAVES = 60 if runs_whole() else 20
"""Of each question: every one is solved exactly."""
ROUNDING = 1 + 1e-12
SHARED = range(4000, 4014)
"""Questions that the tests of a quick run share: to solve their leaves takes longer than to compare them."""


def _questions(whole: range) -> range:
    """Questions of a test: its own where every case is run."""
    return whole if runs_whole() else SHARED


@dataclass(frozen=True)
class Sample:
    """Some leaves of a problem, their bounds, and what the exact search says of each."""

    search: Search
    leaves: Leaves
    index: NDArray[np.int64]
    contexts: list[RowContext]
    solved: list[Candidate | None]

    def bounds_s(self, cutoff_s: float = np.inf) -> NDArray[np.float64]:
        """Bounds as the search computes them."""
        return DealtBounds(self.leaves, self.search.rules, lambda: cutoff_s).bounds_s(self.index, cutoff_s)

    def steps_s(self) -> NDArray[np.float64]:
        """Exact step times; infinity where nothing fits."""
        return np.array([np.inf if one is None else one.step_time_s for one in self.solved])


def _sample(problem: Problem, seed: int) -> Sample | None:
    search = Search(problem, problem_hardware(problem), SearchOptions(top_k=0))
    cores = search.space.cores
    if len(cores) == 0:
        return None
    table, key = search.costs.keyed(cores)
    layouts, key = search.space.layouts(cores, key)
    shared = shardings_by_setup(search.costs, search.space, layouts, (table, key), None) if len(layouts) else None
    if shared is None:
        return None
    at = shared.promising(np.inf, search.rules.limit_bytes)
    if len(at) == 0:
        return None
    terms, reliefs = shared.bound_terms(at), search.space.relief_codes
    leaves = Leaves(terms, reliefs, table, relief_bounds_s(terms, table.layers, reliefs, search.limits), at)
    draw = random.Random(seed)
    index = np.array(draw.sample(leaves.order.tolist(), min(LEAVES, len(leaves.order))), dtype=np.int64)
    contexts = [row_context(search.costs, table, *leaves.written_out(index[at : at + 1])) for at in range(len(index))]
    return Sample(search, leaves, index, contexts, [best_split(context, search.rules) for context in contexts])


@cache
def _samples(backend: str, seeds: range) -> list[Sample]:
    found = []
    for seed in seeds:
        sample = _sample(random_problem(seed, DEEP, backend), seed)
        if sample is not None:
            found.append(sample)
    assert len(found) > len(seeds) // 3
    return found


@pytest.mark.parametrize("backend", ONE_CHUNK)
def test_no_leaf_is_faster_than_its_bound(backend: str) -> None:
    finite = 0
    for sample in _samples(backend, SHARED):
        steps_s = sample.steps_s()
        assert (sample.bounds_s() <= steps_s * ROUNDING).all()
        finite += int(np.isfinite(steps_s).sum())
    assert finite > 5 * LEAVES // 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_several_chunks_fit_where_the_bound_says_so_and_are_near_it(backend: str) -> None:
    several, shares = 0, list[float]()
    for sample in _samples(backend, _questions(range(4020, 4034))):
        chunks = np.array([context.strategy.vpp for context in sample.contexts]) > 1
        bounds_s, steps_s = sample.bounds_s()[chunks], sample.steps_s()[chunks]
        assert np.array_equal(np.isinf(bounds_s), np.isinf(steps_s))
        fits = np.isfinite(steps_s)
        assert (bounds_s[fits] <= steps_s[fits] * ROUNDING).all()
        shares += (bounds_s[fits] / steps_s[fits]).tolist()
        several += int(fits.sum())
    assert several > LEAVES // 3
    # The way to a device and back leaves out how uneven chunks wait for each other; with so few layers most are uneven.
    assert np.median(shares) > 0.8


def test_layers_that_are_relieved_whole_bound_closer_than_parts_of_them() -> None:
    """Of back-ends whose stages choose their relief: most leaves that must relieve something are bounded closer."""
    closer = memory_binds = 0
    for sample in _samples("unrestricted", SHARED):
        chunks = np.array([context.strategy.vpp for context in sample.contexts])
        at = np.flatnonzero((chunks == 1) & np.isfinite(sample.steps_s()))
        loose_s, bounds_s = sample.leaves.bounds[sample.index[at]], sample.bounds_s()[at]
        assert (bounds_s >= loose_s).all()
        solved = [sample.solved[one] for one in at.tolist()]
        relieves = np.array([one is not None and any(one.split.relieved) for one in solved], dtype=np.bool_)
        closer += int((bounds_s[relieves] > loose_s[relieves] * ROUNDING).sum())
        memory_binds += int(relieves.sum())
    assert memory_binds > LEAVES // 6
    assert closer > memory_binds // 4


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_cutoff_rules_out_only_what_is_not_faster(backend: str) -> None:
    for sample in _samples(backend, _questions(range(4040, 4050))):
        steps_s = sample.steps_s()
        fits = np.isfinite(steps_s)
        for cutoff_s in np.quantile(steps_s[fits], [0.1, 0.5, 0.9]) if fits.any() else []:
            bounds_s = sample.bounds_s(float(cutoff_s))
            faster = steps_s < cutoff_s / ROUNDING
            assert (bounds_s[faster] <= steps_s[faster] * ROUNDING).all()


def test_numbers_of_relieved_layers_left_out_are_not_faster() -> None:
    """A back-end with one number for every chunk: the exact search solves few numbers; here each one is solved."""
    compared = 0
    for sample in _samples("megatron", _questions(range(4060, 4080))):
        for context, solved in zip(sample.contexts, sample.solved, strict=True):
            if context.strategy.vpp > 1 or context.strategy.recompute != "full" or sample.search.rules.whole:
                continue
            layers = context.costs.model.num_layers
            each = [_best_line(context, sample.search.rules, np.inf, count, LeftOpen()) for count in range(layers + 1)]
            best_s = min((one.step_time_s for one in each if one is not None), default=np.inf)
            assert (np.inf if solved is None else solved.step_time_s) == pytest.approx(best_s, rel=1e-12)
            compared += np.isfinite(best_s)
    assert compared > LEAVES // 3


class WithoutLooking(Search):
    """The search that does not look ahead."""

    def _look_ahead(self, cores: object, cutoff_s: float) -> None:
        self._ahead = None


def test_looking_ahead_changes_no_plan() -> None:
    """Only a search that is not over after its first layouts looks ahead: some of these do."""
    looked = 0
    for seed in range(4100, 4112):
        narrow = Size(max_devices=16, max_layers=12, max_batch=16, narrowings=0)
        problem = random_problem(seed, narrow, BACKENDS[seed % 2])
        hardware = problem_hardware(problem)
        search, plain = (kind(problem, hardware, SearchOptions(top_k=0)) for kind in (Search, WithoutLooking))
        one, other = search.run().best, plain.run().best
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert (one.step_time_s, one.strategy, one.split) == (other.step_time_s, other.strategy, other.split)
        if search._surely is not None:
            assert one is not None
            assert search._surely.step_time_s >= one.step_time_s
            looked += 1
    assert looked > 0
