"""What calibrating on a part of each source gains on unseen rows: two stages, reported apart.

1. *factors*: the bounded factors of ``planner.evidence.calibration`` (compute, communication, host overhead; fixed
   bytes, fragmentation), one set for each source, back-end and device, fitted on the calibrating rows; the other rows
   are predicted again with them.
2. *factors + residual model*: a small smooth model of what is left (``residual_model``), one for each source and
   back-end, kept only where left-out ranking groups of the calibrating rows gain from it.

Which rows calibrate: ``calibration_part``.  The spread of the intervals is that of left-out rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.evidence.accuracy.calibration_part import calibration_part
from planner.evidence.accuracy.residual_model import ResidualModel, few_rows, fit_residual_model, shrunken_level
from planner.evidence.accuracy.run_features import run_features
from planner.evidence.calibration.calibrate import CalibrationRun
from planner.evidence.calibration.calibrate import calibrate as fit_factors
from planner.evidence.calibration.document import Calibration as FactorDocument
from planner.evidence.runs.mapped_run import MappedRun
from planner.evidence.runs.prediction import DATASHEET, Prediction, predict_runs
from planner.evidence.runs.sources import source_group
from planner.question.factors import SPREAD_ROWS, Factors
from solver.arrays import Array

MOST_FACTOR_ROWS = 160
"""Rows from which one set of factors is fitted: five numbers need no more, and each row costs a dozen predictions."""
STAGES = ("factors", "factors + residual model")


@dataclass(frozen=True, slots=True)
class FactorSet:
    """Factors of one source, back-end and device, and the rows behind them."""

    source: str
    framework: str
    device: str
    factors: Factors
    num_rows: int
    framework_sigma: float | None


@dataclass(frozen=True, slots=True)
class ResidualSet:
    """Where the residual model of one source and back-end is in use, with the error of left-out groups."""

    source: str
    framework: str
    quantity: str
    num_rows: int
    strength: float
    left_out_before: float
    left_out_after: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Calibrated predictions of all rows by stage, and which rows calibrated."""

    fraction: float
    part: tuple[bool, ...]
    factor_sets: list[FactorSet]
    residual_sets: list[ResidualSet]
    by_factors: list[Prediction]
    by_residuals: list[Prediction]

    def stages(self) -> Mapping[str, list[Prediction]]:
        """Predictions by the name of the stage."""
        return dict(zip(STAGES, (self.by_factors, self.by_residuals), strict=True))


def calibrate(
    runs: Mapping[str, MappedRun],
    predictions: Sequence[Prediction],
    keys: Sequence[str],
    spent: Sequence[bool],
    fraction: float,
) -> Calibration:
    """Both stages.  ``runs``: by row id; ``keys``: ranking groups; ``spent``: rows that chose constants already."""
    part = calibration_part(predictions, keys, spent, fraction)
    by_factors = list(predictions)
    factor_sets: list[FactorSet] = []
    for (source, framework, device), indices in _families(runs, predictions).items():
        chosen = [index for index in indices if part[index]]
        if not chosen:
            continue
        used = _spread(chosen)
        found = _factors([runs[predictions[index].row.id] for index in used], source)
        if found is None:
            continue
        applied = found.applied()
        factor_sets.append(FactorSet(source, framework, device, found.factors, len(used), applied.framework_sigma))
        again = _again([runs[predictions[index].row.id] for index in indices], found.factors)
        for index in indices:
            each = again.get(predictions[index].row.id, predictions[index])
            by_factors[index] = replace(each, framework_sigma=applied.framework_sigma)
    by_residuals, residual_sets = _with_residuals(runs, predictions, by_factors, keys, part)
    return Calibration(fraction, part, factor_sets, residual_sets, by_factors, by_residuals)


def _families(
    runs: Mapping[str, MappedRun], predictions: Sequence[Prediction]
) -> dict[tuple[str, str, str], list[int]]:
    """Rows of one source, back-end and device, in the order of these names."""
    families: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for index, each in enumerate(predictions):
        device = runs[each.row.id].cluster.pools[0].device.name
        families[source_group(each.row.source), each.flavour.name, device].append(index)
    return dict(sorted(families.items()))


def _spread(indices: Sequence[int]) -> list[int]:
    """At most ``MOST_FACTOR_ROWS`` of them, evenly."""
    places = np.linspace(0, len(indices) - 1, min(MOST_FACTOR_ROWS, len(indices)))
    return [indices[place] for place in np.rint(places).astype(int)]


def _factors(runs: Sequence[MappedRun], source: str) -> FactorDocument | None:
    members = [CalibrationRun(run, run.flavour.name, "", source) for run in runs]
    found = fit_factors(members, {source: ""}).calibrations
    return found[0] if found else None


def _again(runs: Sequence[MappedRun], factors: Factors) -> dict[str, Prediction]:
    """Predictions with the factors, by row id; none where the factors change nothing."""
    if not factors.changed():
        return {}
    predictions, _ = predict_runs(runs, replace(DATASHEET, factors=factors))
    return {each.row.id: each for each in predictions}


def _with_residuals(
    runs: Mapping[str, MappedRun],
    plain: Sequence[Prediction],
    predictions: Sequence[Prediction],
    keys: Sequence[str],
    part: Sequence[bool],
) -> tuple[list[Prediction], list[ResidualSet]]:
    """The predictions with the second stage on top, and where it is in use.

    Few rows without a factor give a level; with one, the factor is what they say.
    """
    answer = list(predictions)
    used: list[ResidualSet] = []
    sources: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, each in enumerate(predictions):
        sources[source_group(each.row.source), each.flavour.name].append(index)
    for (source, framework), indices in sorted(sources.items()):
        if not any(part[index] for index in indices):
            continue
        features = run_features(
            [runs[predictions[index].row.id] for index in indices], [predictions[i] for i in indices]
        )
        for quantity in ("time", "memory"):
            measured = _log_errors([predictions[index] for index in indices], quantity)
            fits = np.array([part[index] for index in indices]) & np.isfinite(measured)
            chosen = np.flatnonzero(fits)
            groups = [keys[indices[at]] for at in chosen]
            if few_rows(measured[chosen], groups):
                traits = predictions[indices[0]].flavour.traits
                spread = traits.time_spread if quantity == "time" else traits.memory_spread
                level = shrunken_level(measured[chosen], spread)
                for index in indices:
                    if _value(predictions[index], quantity) == _value(plain[index], quantity):
                        answer[index] = _shifted(answer[index], quantity, level)
                continue
            model = fit_residual_model(features[chosen], measured[chosen], groups)
            if model is None:
                continue
            used.append(_residual_set(source, framework, quantity, measured[chosen], model))
            for index, shift in zip(indices, model.log_correction(features), strict=True):
                answer[index] = _shifted(answer[index], quantity, float(shift), model)
    return answer, used


def _value(each: Prediction, quantity: str) -> float:
    return each.step_time_s if quantity == "time" else each.peak_memory_bytes


def _log_errors(predictions: Sequence[Prediction], quantity: str) -> Array:
    """ln(measured / predicted); NaN where nothing was measured."""
    found = np.full(len(predictions), np.nan)
    for index, each in enumerate(predictions):
        measured = each.row.measured_step_s if quantity == "time" else each.row.measured_peak_bytes
        if measured is not None:
            found[index] = np.log(measured / _value(each, quantity))
    return found


def _shifted(each: Prediction, quantity: str, log_correction: float, model: ResidualModel | None = None) -> Prediction:
    factor = float(np.exp(log_correction))
    if quantity == "memory":
        return replace(each, peak_memory_bytes=each.peak_memory_bytes * factor)
    sigma = each.framework_sigma
    if model is not None and len(model.left_out) >= SPREAD_ROWS:
        sigma = model.sigma
    return replace(each, step_time_s=each.step_time_s * factor, framework_sigma=sigma)


def _residual_set(source: str, framework: str, quantity: str, before: Array, model: ResidualModel) -> ResidualSet:
    errors = (float(np.median(np.abs(np.expm1(-each)))) for each in (before, model.left_out))
    return ResidualSet(source, framework, quantity, len(before), model.strength, *errors)
