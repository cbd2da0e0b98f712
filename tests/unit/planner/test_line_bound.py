"""The pieces of the dealt bounds: the least bottleneck of a line, spans, what the fullest device holds."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from planner.search.chunk_family import chunk_family, family_layers, fullest_holds
from planner.search.layer_spans import spans_of
from planner.search.line_bound import least_bottleneck
from planner.search.split_terms import SplitRules
from planner.strategy.schedules import ScheduleName, chunk_stages
from planner.strategy.strategy import Strategy


@pytest.mark.parametrize("seed", range(60))
def test_the_least_bottleneck_is_that_of_the_best_dealing(seed: int) -> None:
    draw = random.Random(seed)
    stages, layers = draw.randint(1, 4), draw.randint(4, 9)
    spans = np.cumsum([[draw.uniform(0, 2) for _ in range(layers)] for _ in range(3)], axis=1)
    ends = np.array([[draw.choice([0.0, 0.5, draw.uniform(0, 3)]) for _ in range(stages)] for _ in range(3)])
    held = np.array([[draw.randint(1, layers) for _ in range(stages)] for _ in range(3)])
    least = SplitRules(limit_bytes=1.0, empty_ends=seed % 2 == 1).least_layers(stages)
    found = least_bottleneck(spans, ends, held, layers, least)
    spans = np.concatenate([np.zeros((3, 1)), spans], axis=1)
    for row in range(3):
        pairs = zip(least.tolist(), held[row].tolist(), strict=True)
        dealings = itertools.product(*(range(few, most + 1) for few, most in pairs))
        values = [
            max(float(spans[row, count] + ends[row, stage]) for stage, count in enumerate(counts))
            for counts in dealings
            if sum(counts) >= layers
        ]
        assert found[row] == min(values, default=np.inf)


def test_a_span_of_each_mixture_and_no_other() -> None:
    kinds = (1, 1, 0, 0, 1, 0)
    spans = spans_of(kinds, 3)
    found = {tuple(counts) for counts in spans.counts.astype(int).tolist()}
    wanted = {
        tuple(kinds[start:stop].count(kind) for kind in range(3))
        for start, stop in itertools.combinations(range(len(kinds) + 1), 2)
    }
    assert found == wanted
    assert np.array_equal(spans.counts.sum(axis=1), spans.lengths)
    assert np.array_equal(spans.lengths[spans.first], np.arange(1, len(kinds) + 1))


@pytest.mark.parametrize("seed", range(40))
def test_the_fullest_device_of_each_member(seed: int) -> None:
    """Counted chunk by chunk, with the placement of ``Strategy.chunk_stage``."""
    draw = random.Random(seed)
    layers, pp = draw.randint(8, 30), draw.randint(1, 4)
    choices: list[tuple[ScheduleName, int]] = [("interleaved", 2), ("interleaved", 3), ("zbv", 2)]
    schedule, vpp = draw.choice(choices)
    kinds = tuple(draw.choice([0, 0, 1]) for _ in range(layers))
    family, strategy = (
        chunk_family(layers, pp * vpp, empty_ends=True),
        Strategy(pp=pp, vpp=vpp, schedule=schedule),
    )
    if not family:
        assert fullest_holds(kinds, 0, pp, vpp, v_placed=schedule == "zbv") == np.inf
        return
    stages = chunk_stages(pp, vpp, v_placed=schedule == "zbv")
    assert stages == tuple(strategy.chunk_stage(chunk) for chunk in range(pp * vpp))
    layers = family_layers(kinds, 2, pp, vpp, v_placed=schedule == "zbv", empty_ends=True)
    assert layers is not None
    held = layers.first[-1]
    counted = np.zeros_like(held)
    for member, sizes in enumerate(family):
        for chunk, size in enumerate(sizes):
            for kind in kinds[sum(sizes[:chunk]) : sum(sizes[:chunk]) + size]:
                counted[member, stages[chunk], kind] += 1
    assert np.array_equal(held, counted)
    assert fullest_holds(kinds, 0, pp, vpp, v_placed=schedule == "zbv") == counted[:, :, 0].max(axis=1).min()


def test_of_whole_layers_some_stage_holds_at_least_the_mean_rounded_up() -> None:
    assert fullest_holds((0,) * 7 + (1,) * 3, 0, 4, 1, v_placed=False) == 2
    assert fullest_holds((0,) * 8, 0, 4, 1, v_placed=False) == 2
