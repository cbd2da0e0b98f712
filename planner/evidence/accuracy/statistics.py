"""Error figures of one group of rows.

With ``e = predicted / measured``::

    mape = mean |e - 1|      median_ape, p90_ape = its quantiles      bias = exp(mean ln e) - 1

``bias`` is the geometric mean, so that twice too slow and twice too fast cancel.  ``interval_coverage`` is the part of
rows whose measured time lies in the stated interval (``STATED_LEVEL``), ``plan_interval_coverage`` in that of plans.
``oom``: positive = runs out of memory; tp and fn are runs that did, fp and tn are runs that finished.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from planner.evidence.accuracy.ranking import ranking_score
from planner.evidence.runs.prediction import STATED_LEVEL, Prediction
from planner.predict.uncertainty import PLAN_LEVEL
from solver.arrays import Array

CURVE_LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def error_figures(predicted: Array, measured: Array) -> dict[str, Any]:
    """n, mape, median_ape, p90_ape and bias; figures are None for no rows."""
    if not len(predicted):
        return {"n": 0, "mape": None, "median_ape": None, "p90_ape": None, "bias": None}
    ratio = predicted / measured
    error = np.abs(ratio - 1.0)
    return {
        "n": len(predicted),
        "mape": float(error.mean()),
        "median_ape": float(np.median(error)),
        "p90_ape": float(np.quantile(error, 0.9)),
        "bias": float(np.exp(np.log(ratio).mean()) - 1.0),
    }


def time_figures(predictions: Sequence[Prediction], keys: Sequence[str]) -> dict[str, Any]:
    """Errors of the step time, ranking and interval coverage."""
    timed = [index for index, each in enumerate(predictions) if each.row.measured_step_s is not None]
    predicted = np.array([predictions[index].step_time_s for index in timed])
    measured = np.array([predictions[index].row.measured_step_s or np.nan for index in timed])
    score = asdict(ranking_score([keys[index] for index in timed], predicted, measured))
    return {
        **error_figures(predicted, measured),
        **score,
        "interval_coverage": coverage(predictions, STATED_LEVEL),
        "plan_interval_coverage": coverage(predictions, PLAN_LEVEL),
    }


def coverage(predictions: Sequence[Prediction], level: float) -> float | None:
    """Part of the measured step times inside their interval of this level; None without any."""
    inside = []
    for each in predictions:
        if each.row.measured_step_s is not None:
            low_s, high_s = each.interval_at(level)
            inside.append(low_s <= each.row.measured_step_s <= high_s)
    return float(np.mean(inside)) if inside else None


def coverage_curve(predictions: Sequence[Prediction]) -> list[dict[str, float]]:
    """What intervals of several levels really hold."""
    held = ((level, coverage(predictions, level)) for level in CURVE_LEVELS)
    return [{"level": level, "holds": part} for level, part in held if part is not None]


def not_beaten(figures: Mapping[str, Any], baseline: Mapping[str, Any]) -> bool | None:
    """Whether a baseline's median or mean error is at most ours; None where there is none to compare with."""
    if not baseline["n"] or not figures["n"]:
        return None
    return bool(baseline["median_ape"] <= figures["median_ape"] or baseline["mape"] <= figures["mape"])


def memory_figures(predictions: Sequence[Prediction]) -> dict[str, Any]:
    """Errors of the memory figure that the source reports."""
    known = [each for each in predictions if each.row.measured_peak_bytes is not None]
    return error_figures(
        np.array([each.peak_memory_bytes for each in known]),
        np.array([each.row.measured_peak_bytes or np.nan for each in known]),
    )


def oom_figures(predictions: Sequence[Prediction]) -> dict[str, Any]:
    """Confusion matrix of "runs out of memory", balanced accuracy, and the part of our "fits" that died.

    ``not_judged``: rows whose verdict hangs on a recompute policy that they do not state; they are in no other figure.
    """
    judged = [each for each in predictions if each.fits is not None]
    died = [each for each in judged if each.row.out_of_memory]
    ran = [each for each in judged if not each.row.out_of_memory]
    tp = sum(not each.fits for each in died)
    fp = sum(not each.fits for each in ran)
    fn, tn = len(died) - tp, len(ran) - fp
    balanced = 0.5 * (tp / len(died) + tn / len(ran)) if died and ran else None
    return {
        "tp": tp,
        "fp": fp,
        "tn": tn,
        "fn": fn,
        "not_judged": len(predictions) - len(judged),
        "balanced_accuracy": balanced,
        "false_fits": fn / (fn + tn) if fn + tn else None,
    }


def baseline_figures(predictions: Sequence[Prediction], baseline_s: Sequence[float | None]) -> dict[str, Any]:
    """Errors of the constant-utilization baseline on the same rows."""
    pairs = [
        (guess, each.row.measured_step_s)
        for each, guess in zip(predictions, baseline_s, strict=True)
        if guess is not None and each.row.measured_step_s is not None
    ]
    return error_figures(np.array([guess for guess, _ in pairs]), np.array([truth for _, truth in pairs]))
