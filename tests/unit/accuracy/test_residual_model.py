"""The small model of what factors leave: its closed form against refitting, and that chance does not pass for gain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.evidence.accuracy import residual_model
from planner.evidence.accuracy.residual_model import LARGEST_CORRECTION, few_rows, fit_residual_model, shrunken_level
from planner.evidence.accuracy.run_features import FEATURES, run_features
from planner.evidence.runs.prediction import map_rows, predict_runs
from tests.accuracy_rows import rows_of


def smooth(count: int = 60, seed: int = 1) -> tuple[np.ndarray, np.ndarray, list[str]]:
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(count, 3))
    errors = 0.3 + 0.4 * np.sin(features[:, 0]) + 0.02 * generator.normal(size=count)
    return features, errors, [f"group {index % 12}" for index in range(count)]


def test_a_smooth_dependence_is_found_and_foretells_new_rows() -> None:
    model = fit_residual_model(*smooth())
    assert model is not None
    features, errors, _ = smooth(200, seed=2)
    left = errors - model.log_correction(features)
    assert np.abs(left).mean() < 0.3 * np.abs(errors).mean()
    assert np.abs(model.left_out).mean() < 0.3 * np.abs(smooth()[1]).mean()


def test_left_out_errors_are_those_of_a_fit_without_the_group() -> None:
    features, errors, groups = smooth(24)
    model = fit_residual_model(features, errors, groups)
    assert model is not None
    out = np.array([group == "group 3" for group in groups])
    middle = float(np.median(errors[~out]))
    ridge = next(
        ridge
        for ridge in residual_model.RIDGES
        if np.allclose(_weights(model.features, errors, model, ridge), model.weights)
    )
    kernel = residual_model._kernel(model.features[~out], model.features[~out], model.width)
    weights = np.linalg.solve(kernel + ridge * np.eye(len(kernel)), errors[~out] - middle)
    across = residual_model._kernel(model.features[out], model.features[~out], model.width)
    expected = errors[out] - model.strength * (middle + across @ weights)
    assert model.left_out[out] == pytest.approx(expected, abs=1e-9)


def _weights(features: np.ndarray, errors: np.ndarray, model: residual_model.ResidualModel, ridge: float) -> np.ndarray:
    kernel = residual_model._kernel(features, features, model.width)
    return np.asarray(np.linalg.solve(kernel + ridge * np.eye(len(kernel)), errors - model.middle))


def test_noise_gives_no_model() -> None:
    kept = 0
    for seed in range(20):
        generator = np.random.default_rng(seed)
        groups = [f"group {index % 8}" for index in range(40)]
        kept += fit_residual_model(generator.normal(size=(40, 6)), 0.1 * generator.normal(size=40), groups) is not None
    assert kept <= 4, "left-out groups may gain by chance, seldom"


def test_left_out_groups_never_lose_by_a_model_that_is_kept() -> None:
    for seed in range(20):
        generator = np.random.default_rng(seed)
        features = generator.normal(size=(30, 4))
        errors = generator.normal(size=30) * 0.1 + 0.1 * features[:, 1]
        model = fit_residual_model(features, errors, [f"group {index % 5}" for index in range(30)])
        if model is not None:
            assert np.abs(model.left_out).mean() < np.abs(errors).mean()


@pytest.mark.parametrize("count", [0, 3, 5])
def test_too_few_rows_give_no_model(count: int) -> None:
    features, errors, groups = smooth()
    assert fit_residual_model(features[:count], errors[:count], groups[:count]) is None


def test_the_spread_is_that_of_left_out_errors_wider_for_few_groups_and_rows() -> None:
    model = fit_residual_model(*smooth(60))
    assert model is not None
    assert model.sigma > np.quantile(np.abs(model.left_out), 0.8) / 1.2816
    few, many = (replace(model, num_groups=number).sigma for number in (3, 30))
    assert few > many
    exact = replace(model, left_out=np.zeros(12), num_groups=12)
    assert exact.sigma == pytest.approx(0.15 * np.sqrt(8 / 20)), "twelve rows without error do not prove a spread of 0"


def test_one_group_cannot_be_left_out() -> None:
    features, errors, _ = smooth()
    assert fit_residual_model(features, errors, ["the only one"] * len(errors)) is None


def test_equal_features_and_far_runs_stay_bounded() -> None:
    model = fit_residual_model(np.ones((12, 3)), np.full(12, 5.0), [str(index) for index in range(12)])
    assert model is not None
    assert model.log_correction(1e6 * np.ones((1, 3))) == pytest.approx([LARGEST_CORRECTION])


def test_features_are_finite_and_tell_runs_apart() -> None:
    runs, _ = map_rows(rows_of({}, {"tp": "4"}, {"mbs": "2"}, {"recompute": "full"}, {"precision": "fp8"}))
    predictions, _ = predict_runs(runs)
    features = run_features(runs, predictions)
    assert features.shape == (5, len(FEATURES))
    assert np.isfinite(features).all()
    assert len({tuple(row) for row in features.tolist()}) == 5


def test_few_rows_say_a_level_and_noisy_ones_hardly_that() -> None:
    two, rows = np.array([0.10, 0.20]), np.full(200, 0.15)
    # n / (n + (0.12 / 0.12)^2): two rows as spread as levels are count for two thirds.
    assert shrunken_level(two, 0.12) == pytest.approx(0.15 * 2 / 3)
    assert shrunken_level(rows, 0.12) == pytest.approx(0.15, rel=0.01)
    assert shrunken_level(two, 0.42) < 0.2 * 0.15 < shrunken_level(two, 0.09)
    assert shrunken_level(two, None) < shrunken_level(two, 0.12)
    assert shrunken_level(np.array([]), 0.12) == 0.0
    assert few_rows(two, ["a", "b"])
    assert few_rows(rows, ["a", "b"] * 100)
    assert not few_rows(rows, ["a", "b", "c", "d"] * 50)
