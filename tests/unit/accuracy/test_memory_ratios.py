"""Distributions of measured over predicted memory come out of the rows that made them, and judge others."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.evidence.accuracy.memory_ratios import KINDS, Observation, chance_figures, fitted_ratios
from planner.evidence.accuracy.memory_sources import MEDIANS, SCALES, likelihood
from planner.evidence.accuracy.telling_apart import apart_data, band, fitted_spread, pair_figures, pairs_of
from planner.predict.memory.fit_chance import POOLED, memory_ratio

MEDIAN, SCALE = 1.05, 0.04


def _drawn(count: int, seed: int) -> np.ndarray:
    return MEDIAN * np.exp(SCALE * np.random.default_rng(seed).standard_t(4, count))


def _ended(ratios: np.ndarray, backend: str, seed: int) -> list[Observation]:
    """Runs of which only the end is known, on devices about as large as their prediction."""
    rooms = np.random.default_rng(seed).uniform(0.8, 1.4, len(ratios))
    pairs = zip(ratios, rooms, strict=True)
    return [Observation(backend, "finished" if need <= room else "out_of_memory", room) for need, room in pairs]


def test_peaks_and_ends_of_runs_give_the_distribution_back() -> None:
    """Rows of either kind are most likely under what drew them."""
    ended = _ended(_drawn(1_500, 2), "two", 3)
    rooms = {kind: np.log([each.ratio for each in ended if each.kind == kind]) for kind in KINDS}
    none = np.zeros(0)
    for found in (
        likelihood(np.log(_drawn(700, 1)), none, none),
        likelihood(none, rooms["finished"], rooms["out_of_memory"]),
    ):
        median, scale = np.unravel_index(int(found.argmax()), found.shape)
        assert math.exp(MEDIANS[median]) == pytest.approx(MEDIAN, rel=0.01)
        assert SCALES[scale] == pytest.approx(SCALE, rel=0.2)


def test_survivors_bound_the_median_from_above() -> None:
    tried = np.random.default_rng(7).uniform(-0.5, math.log(2.0), 800)
    shown = tried[tried >= np.log(_drawn(800, 8))]
    found = likelihood(np.zeros(0), shown, np.zeros(0))
    best = found.max(axis=1)
    assert best[MEDIANS < -0.2] == pytest.approx(best.max(), abs=1e-9)  # room left by a user says nothing
    inside = np.exp(MEDIANS[best > best.max() - 2.0])
    assert inside.max() == pytest.approx(MEDIAN, abs=0.03)


def test_sources_that_differ_widen_what_is_said_of_a_further_one() -> None:
    """Of the same back-end, and more so of one that nobody measured; few rows give no distribution of their own."""
    own = {name: [Observation(name, "exact", float(ratio), name) for ratio in _drawn(300, 1)] for name in "abc"}
    same = fitted_ratios([each for rows in own.values() for each in rows])
    far = [Observation("c", "exact", 1.2 * each.ratio, "c") for each in own["c"]]
    few = [Observation("d", "exact", 1.1, "d")] * 5
    found = fitted_ratios([*own["a"], *own["b"], *far, *few])
    assert set(found) == {POOLED, "a", "b", "c"}
    assert found["a"].sources == 1
    assert found["a"].scale > same["a"].scale
    assert found[POOLED].scale > max(found[name].scale for name in "abc")
    assert found["a"].median < found[POOLED].median < found["c"].median


def test_relatives_sources_speak_for_both() -> None:
    rows = [Observation("a", "exact", float(ratio), "of a") for ratio in _drawn(40, 1)]
    cousins = [Observation("cousin", "exact", float(ratio), "of cousin") for ratio in _drawn(40, 2)]
    others = [Observation("b", "exact", float(ratio), "of b") for ratio in _drawn(40, 3)]
    found = fitted_ratios([*rows, *cousins, *others], {"cousin": "a"})
    assert set(found) == {POOLED, "a", "b"}
    assert (found["a"].sources, found["b"].sources) == (2, 1)


def test_one_back_end_says_nothing_of_others() -> None:
    with pytest.raises(ValueError, match="spread between them"):
        fitted_ratios([Observation("one", "exact", 1.0)] * 40)


def test_stated_chances_are_held_against_what_happened() -> None:
    ratio = memory_ratio("megatron")
    sure, even = ratio.quantile(0.97), ratio.quantile(0.6)
    rows = [Observation("megatron", "finished", sure)] * 3 + [Observation("megatron", "out_of_memory", sure)]
    rows += [Observation("megatron", "out_of_memory", even)] * 2
    rows += [Observation("megatron", "exact", ratio.quantile(part)) for part in (0.3, 0.7, 0.93, 0.97)]
    figures = chance_figures(rows)
    bins = {each["from"]: each for each in figures["bins"] if each["n"]}
    assert bins[0.95]["fitted"] == 0.75
    assert bins[0.95]["stated"] == pytest.approx(0.97)
    assert bins[0.5]["fitted"] == 0.0
    assert bins[0.5]["n"] == 2
    assert [each["below"] for each in figures["levels"]] == [0.25, 0.5, 0.5, 0.75, 1.0]


def test_pairs_of_a_group_are_right_where_the_order_is() -> None:
    pairs = pairs_of(["a", "a", "a", "b"], [1.0, 1.03, 1.3, 9.0], [2.0, 1.9, 3.0, 1.0])
    rows = {each["from"]: each for each in pair_figures(pairs, None)}
    assert pairs.num_groups == 1
    assert rows[0.02]["pairs"] == 1
    assert rows[0.02]["right"] == 0.0
    assert rows[0.2]["pairs"] == 2
    assert rows[0.2]["right"] == 1.0
    assert pairs_of(["a", "a", "a"], [1.0, 1.03, 1.3], [2.0, 1.9, 3.0], near=1.25).slower.tolist() == pytest.approx(
        [0.03]
    )


def test_the_band_widens_with_the_noise() -> None:
    drawn = np.random.default_rng(5)
    truth = np.exp(drawn.uniform(0, 0.3, (300, 2)))
    spreads = []
    for noise in (0.01, 0.1):
        guess = truth * np.exp(noise * drawn.standard_normal(truth.shape))
        keys = [str(index) for index in range(len(truth)) for _ in range(2)]
        spread = fitted_spread(pairs_of(keys, guess.ravel().tolist(), truth.ravel().tolist()))
        assert spread is not None
        spreads.append(band(spread))
    assert spreads[0] < 0.03 < spreads[1] < 0.3


def test_parts_are_kept_apart() -> None:
    data = apart_data(["a", "a", "b", "b"], [1, 2, 1, 2], [1, 2, 2, 1], [True, True, False, False])["every"]
    assert data["fitted"]["bins"][-1]["right"] == 1.0
    assert data["judged"]["bins"][-1]["right"] == 0.0
