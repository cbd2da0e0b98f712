"""The accuracy of the planner on measured runs: everything that the command prints, as plain JSON data.

Every figure of ``groups`` is of rows that chose no constant of the cost model; those that did stand in
``fitted_groups``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from planner.evidence.accuracy.baseline import baseline_step_s, same_source
from planner.evidence.accuracy.calibration import Calibration, calibrate
from planner.evidence.accuracy.fitted_rows import FittedRows
from planner.evidence.accuracy.headline import headline
from planner.evidence.accuracy.left_out import left_out_data, without_own_constants
from planner.evidence.accuracy.memory_ratios import chance_data
from planner.evidence.accuracy.optimism import optimism_data
from planner.evidence.accuracy.ranking import ranking_groups, ranking_key
from planner.evidence.accuracy.recommended_picks import pick_data, runs_of
from planner.evidence.accuracy.statistics import (
    baseline_figures,
    coverage_curve,
    memory_figures,
    not_beaten,
    oom_figures,
    time_figures,
)
from planner.evidence.accuracy.telling_apart import apart_data
from planner.evidence.runs.prediction import STATED_LEVEL, Prediction, Unmapped, map_rows, predict_runs
from planner.evidence.runs.sources import source_group
from planner.evidence.runs.truth import TruthRow

GroupBy = Literal["source", "device", "model"]
ALL = "all"
NOT_STATED = "not stated"

KEY_OF: dict[str, Callable[[TruthRow], str]] = {
    "source": lambda row: source_group(row.source),
    "device": lambda row: row.device or NOT_STATED,
    "model": lambda row: row.model or NOT_STATED,
}


@dataclass(frozen=True, slots=True)
class Assessment:
    """Predictions with all that is needed to report on them."""

    predictions: list[Prediction]
    unmapped: list[Unmapped]
    keys: list[str]
    """Ranking group of each prediction."""
    fitted: list[bool]
    """Rows that chose a constant of the cost model: they judge nothing."""
    baseline_s: list[float | None]
    source_baseline_s: list[float | None]
    calibration: Calibration | None
    without_own: dict[str, Prediction]
    """Runs of sources that chose constants, predicted without these, by row."""
    optimism: dict[str, Any] | None
    """Our own picks for questions with tuned runs; None = not asked."""

    @property
    def judged(self) -> list[int]:
        """Rows that chose no constant."""
        return [index for index, fitted in enumerate(self.fitted) if not fitted]

    @property
    def held_out(self) -> list[int]:
        """Rows that chose no constant and did not calibrate."""
        part = self.calibration.part if self.calibration is not None else (False,) * len(self.fitted)
        return [index for index in self.judged if not part[index]]


def assess(
    rows: Sequence[TruthRow],
    groups: Mapping[str, str],
    calibrate_fraction: float | None = None,
    fitted: FittedRows | None = None,
    *,
    picks: bool = False,
) -> Assessment:
    """Predict every row; with a fraction, also calibrate on that part.  ``fitted``: None = no row chose a constant.

    ``picks``: also search for a pick of our own where tuned runs are known.
    """
    runs, unmapped = map_rows(rows)
    predictions, more = predict_runs(runs)
    sweeps = [ranking_key(each.row, groups) for each in predictions]
    # Where a file names the groups, the rows that it leaves out are compared with none.
    keys = [
        key if not groups or each.row.id in groups else f"alone|{each.row.id}"
        for each, key in zip(predictions, sweeps, strict=True)
    ]
    spent = [fitted is not None and fitted.holds(each.row) for each in predictions]
    calibration = None
    if calibrate_fraction is not None:
        by_id = {run.row.id: run for run in runs}
        calibration = calibrate(by_id, predictions, sweeps, spent, calibrate_fraction)
    return Assessment(
        predictions=predictions,
        unmapped=sorted([*unmapped, *more], key=lambda each: each.row.line),
        keys=keys,
        fitted=spent,
        baseline_s=baseline_step_s(predictions),
        source_baseline_s=baseline_step_s(predictions, same_source),
        calibration=calibration,
        without_own=without_own_constants(runs, _used(predictions, spent)),
        optimism=optimism_data(runs, predictions) if picks else None,
    )


def _used(predictions: Sequence[Prediction], spent: Sequence[bool]) -> frozenset[str]:
    """Sources of which some row chose a constant."""
    return frozenset(source_group(each.row.source) for each, used in zip(predictions, spent, strict=True) if used)


def report_data(assessment: Assessment, by: GroupBy) -> dict[str, Any]:
    """The whole answer: rows, groups, fitted rows, unmapped rows by reason, ranking groups, calibration, targets."""
    calibration = assessment.calibration
    predictions = assessment.predictions
    every = list(range(len(predictions)))
    fitted = [index for index in every if assessment.fitted[index]]
    data: dict[str, Any] = {
        "by": by,
        "interval_level": STATED_LEVEL,
        "num_judged": len(every) - len(fitted),
        "num_fitted": len(fitted),
        "rows": [_row_data(assessment, index, by) for index in every],
        "groups": _groups(assessment, by),
        "fitted_groups": [
            {"group": name, **_figures(assessment, predictions, indices)}
            for name, indices in _members(assessment, by, fitted).items()
            if fitted
        ],
        "ranking_groups": _ranking(assessment, by),
        "unmapped": _unmapped(assessment, by),
    }
    timed = [index for index in every if predictions[index].row.measured_step_s is not None]
    data["fit_chances"] = chance_data(predictions, assessment.fitted)
    data["telling_apart"] = apart_data(
        [assessment.keys[index] for index in timed],
        [predictions[index].step_time_s for index in timed],
        [predictions[index].row.measured_step_s or 0.0 for index in timed],
        [assessment.fitted[index] for index in timed],
    )
    data["recommended_picks"] = pick_data(runs_of(assessment.keys, predictions, assessment.fitted))
    stages: dict[str, list[Prediction]] = {}
    if calibration is not None:
        data["calibration"] = _calibration(assessment, calibration, by)
        stages = dict(calibration.stages())
    data["left_out"] = left_out_data(predictions, assessment.keys, assessment.fitted, assessment.without_own)
    if assessment.optimism is not None:
        data["optimism"] = assessment.optimism
    data["headline"] = headline(assessment.keys, predictions, assessment.judged, stages, assessment.held_out)
    return data


def _row_data(assessment: Assessment, index: int, by: GroupBy) -> dict[str, Any]:
    each, calibration = assessment.predictions[index], assessment.calibration
    measured_bytes = each.row.measured_peak_bytes
    data = {
        "id": each.row.id,
        "predicted_step_time_s": each.step_time_s,
        "predicted_peak_memory_bytes": round(each.peak_memory_bytes),
        # A run that some recompute lets fit, and whose row says nothing of recompute, is taken to fit and not judged.
        "fits": each.fits is not False,
        "fits_judged": each.fits is not None,
        "interval": list(each.interval_s),
        "interval_level": STATED_LEVEL,
        "source": each.row.source,
        "group": KEY_OF[by](each.row),
        "model": each.row.model or None,
        "device": each.row.device or None,
        "num_devices": each.row.num_devices,
        "ranking_group": assessment.keys[index],
        "fitted": assessment.fitted[index],
        "measured_step_time_s": each.row.measured_step_s,
        "measured_peak_memory_bytes": None if measured_bytes is None else round(measured_bytes),
        "memory_meaning": f"{each.flavour.memory}, {each.flavour.memory_rank} rank",
        "baseline_step_time_s": assessment.baseline_s[index],
        "ran_out_of_memory": each.row.out_of_memory,
    }
    if calibration is not None:
        after = calibration.by_residuals[index]
        data["factors_step_time_s"] = calibration.by_factors[index].step_time_s
        data["calibrated_step_time_s"] = after.step_time_s
        data["calibrated_interval"] = list(after.interval_s)
        data["calibrated_peak_memory_bytes"] = round(after.peak_memory_bytes)
        data["held_out"] = not calibration.part[index]
    return data


def _members(assessment: Assessment, by: GroupBy, indices: Iterable[int]) -> dict[str, list[int]]:
    """Rows by group, the largest first, and all of them."""
    members: dict[str, list[int]] = defaultdict(list)
    known = list(indices)
    for index in known:
        members[KEY_OF[by](assessment.predictions[index].row)].append(index)
    ordered = dict(sorted(members.items(), key=lambda item: (-len(item[1]), item[0])))
    return {**ordered, ALL: known}


def _groups(assessment: Assessment, by: GroupBy) -> list[dict[str, Any]]:
    lost = Counter(KEY_OF[by](each.row) for each in assessment.unmapped)
    members = _members(assessment, by, assessment.judged)
    everything = members.pop(ALL)
    for name in sorted({*lost, *(KEY_OF[by](each.row) for each in assessment.predictions)} - set(members)):
        members[name] = []
    members[ALL] = everything
    lost[ALL] = len(assessment.unmapped)
    return [
        {"group": name, **_figures(assessment, assessment.predictions, indices), "unmapped": lost[name]}
        for name, indices in members.items()
    ]


def _figures(assessment: Assessment, predictions: Sequence[Prediction], indices: Sequence[int]) -> dict[str, Any]:
    chosen = [predictions[index] for index in indices]
    time = time_figures(chosen, [assessment.keys[index] for index in indices])
    baseline = baseline_figures(chosen, [assessment.baseline_s[index] for index in indices])
    within = baseline_figures(chosen, [assessment.source_baseline_s[index] for index in indices])
    return {
        "predicted": len(indices),
        **time,
        "coverage_curve": coverage_curve(chosen),
        "oom": oom_figures(chosen),
        "memory": memory_figures(chosen),
        "baseline": {**baseline, "not_beaten": not_beaten(time, baseline)},
        "baseline_within_source": {**within, "not_beaten": not_beaten(time, within)},
    }


def _ranking(assessment: Assessment, by: GroupBy) -> list[dict[str, Any]]:
    """Every ranking group of judged rows with its figures."""
    timed = [i for i in assessment.judged if assessment.predictions[i].row.measured_step_s is not None]
    rows = [assessment.predictions[index] for index in timed]
    found = ranking_groups(
        [assessment.keys[index] for index in timed],
        [each.step_time_s for each in rows],
        [each.row.measured_step_s or 0.0 for each in rows],
    )
    group_of = {assessment.keys[index]: KEY_OF[by](assessment.predictions[index].row) for index in timed}
    return [{"ranking_group": each.key, "group": group_of[each.key], **each.figures()} for each in found]


def _unmapped(assessment: Assessment, by: GroupBy) -> dict[str, Any]:
    reasons = Counter(each.reason for each in assessment.unmapped)
    by_group: dict[str, Counter[str]] = defaultdict(Counter)
    for each in assessment.unmapped:
        by_group[KEY_OF[by](each.row)][each.reason] += 1
    return {
        "n": len(assessment.unmapped),
        "reasons": dict(reasons.most_common()),
        "by_group": {name: dict(found.most_common()) for name, found in sorted(by_group.items())},
        "rows": [{"id": each.row.id, "line": each.row.line, "reason": each.reason} for each in assessment.unmapped],
    }


def _calibration(assessment: Assessment, calibration: Calibration, by: GroupBy) -> dict[str, Any]:
    part = Counter(
        KEY_OF[by](each.row) for each, used in zip(assessment.predictions, calibration.part, strict=True) if used
    )
    part[ALL] = sum(calibration.part)
    groups = []
    for name, rest in _members(assessment, by, assessment.held_out).items():
        stages = {stage: _figures(assessment, each, rest) for stage, each in calibration.stages().items()}
        groups.append(
            {
                "group": name,
                "num_fitted": part[name],
                "uncalibrated": _figures(assessment, assessment.predictions, rest),
                "stages": stages,
                "calibrated": list(stages.values())[-1],
            }
        )
    return {
        "fraction": calibration.fraction,
        "factors": [{**asdict(each), "factors": each.factors.changed()} for each in calibration.factor_sets],
        "residual_models": [asdict(each) for each in calibration.residual_sets],
        "groups": groups,
    }
