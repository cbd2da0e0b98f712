"""How accurate is the planner on these measured runs?  Everything that the command prints, as plain JSON data."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from planner.accuracy.baseline import baseline_step_s, same_source
from planner.accuracy.calibration import Calibration, calibrate
from planner.accuracy.prediction import Prediction, Unmapped, predict_rows
from planner.accuracy.ranking import ranking_key
from planner.accuracy.sources import source_group
from planner.accuracy.statistics import baseline_figures, memory_figures, oom_figures, time_figures
from planner.accuracy.truth import TruthRow

GroupBy = Literal["source", "device", "model"]
ALL = "all"

KEY_OF: dict[str, Callable[[TruthRow], str]] = {
    "source": lambda row: source_group(row.source),
    "device": lambda row: row.device,
    "model": lambda row: row.model,
}


@dataclass(frozen=True, slots=True)
class Assessment:
    """Predictions with all that is needed to report on them."""

    predictions: list[Prediction]
    unmapped: list[Unmapped]
    keys: list[str]
    """Ranking group of each prediction."""
    baseline_s: list[float | None]
    source_baseline_s: list[float | None]
    calibration: Calibration | None


def assess(rows: Sequence[TruthRow], groups: Mapping[str, str], calibrate_fraction: float | None = None) -> Assessment:
    """Predict every row; with a fraction, also fit one factor a source on that part."""
    predictions, unmapped = predict_rows(rows)
    sweeps = [ranking_key(each.row, groups) for each in predictions]
    # Where a file names the groups, the rows that it leaves out are compared with none.
    keys = [
        key if not groups or each.row.id in groups else f"alone|{each.row.id}"
        for each, key in zip(predictions, sweeps, strict=True)
    ]
    return Assessment(
        predictions=predictions,
        unmapped=unmapped,
        keys=keys,
        baseline_s=baseline_step_s(predictions),
        source_baseline_s=baseline_step_s(predictions, same_source),
        calibration=None if calibrate_fraction is None else calibrate(predictions, sweeps, calibrate_fraction),
    )


def report_data(assessment: Assessment, by: GroupBy) -> dict[str, Any]:
    """The whole answer: rows, groups, unmapped rows by reason, calibration."""
    data: dict[str, Any] = {
        "by": by,
        "rows": [_row_data(assessment, index) for index in range(len(assessment.predictions))],
        "groups": _groups(assessment, by),
        "unmapped": _unmapped(assessment, by),
    }
    if assessment.calibration is not None:
        data["calibration"] = _calibration(assessment, assessment.calibration, by)
    return data


def _row_data(assessment: Assessment, index: int) -> dict[str, Any]:
    each = assessment.predictions[index]
    data = {
        "id": each.row.id,
        "predicted_step_time_s": each.step_time_s,
        "predicted_peak_memory_bytes": round(each.peak_memory_bytes),
        "fits": each.fits,
        "interval": list(each.interval_s),
        "source": each.row.source,
        "group": source_group(each.row.source),
        "measured_step_time_s": each.row.measured_step_s,
        "measured_peak_memory_bytes": None
        if each.row.measured_peak_bytes is None
        else round(each.row.measured_peak_bytes),
        "memory_meaning": f"{each.flavour.memory}, {each.flavour.memory_rank} rank",
        "baseline_step_time_s": assessment.baseline_s[index],
        "ran_out_of_memory": each.row.out_of_memory,
    }
    if assessment.calibration is not None:
        data["calibrated_step_time_s"] = each.step_time_s * assessment.calibration.factor_of(each)
        data["held_out"] = assessment.calibration.held_out[index]
    return data


def _members(assessment: Assessment, by: GroupBy) -> dict[str, list[int]]:
    members: dict[str, list[int]] = defaultdict(list)
    for index, each in enumerate(assessment.predictions):
        members[KEY_OF[by](each.row)].append(index)
    ordered = dict(sorted(members.items(), key=lambda item: (-len(item[1]), item[0])))
    return {**ordered, ALL: list(range(len(assessment.predictions)))}


def _groups(assessment: Assessment, by: GroupBy) -> list[dict[str, Any]]:
    lost = Counter(KEY_OF[by](each.row) for each in assessment.unmapped)
    lost[ALL] = len(assessment.unmapped)
    members = _members(assessment, by)
    for name in sorted(set(lost) - set(members)):
        members = {**{key: value for key, value in members.items() if key != ALL}, name: [], ALL: members[ALL]}
    return [
        {"group": name, **_figures(assessment, indices), "unmapped": lost[name]} for name, indices in members.items()
    ]


def _figures(assessment: Assessment, indices: Sequence[int]) -> dict[str, Any]:
    predictions = [assessment.predictions[index] for index in indices]
    keys = [assessment.keys[index] for index in indices]
    return {
        "predicted": len(indices),
        **time_figures(predictions, keys),
        "oom": oom_figures(predictions),
        "memory": memory_figures(predictions),
        "baseline": baseline_figures(predictions, [assessment.baseline_s[index] for index in indices]),
        "baseline_within_source": baseline_figures(
            predictions, [assessment.source_baseline_s[index] for index in indices]
        ),
    }


def _unmapped(assessment: Assessment, by: GroupBy) -> dict[str, Any]:
    reasons = Counter(each.reason for each in assessment.unmapped)
    by_group: dict[str, Counter[str]] = defaultdict(Counter)
    for each in assessment.unmapped:
        by_group[KEY_OF[by](each.row)][each.reason] += 1
    return {
        "n": len(assessment.unmapped),
        "reasons": dict(reasons.most_common()),
        "by_group": {name: dict(found.most_common()) for name, found in sorted(by_group.items())},
        "rows": [{"id": each.row.id, "reason": each.reason} for each in assessment.unmapped],
    }


def _calibration(assessment: Assessment, calibration: Calibration, by: GroupBy) -> dict[str, Any]:
    groups = []
    for name, indices in _members(assessment, by).items():
        rest = [index for index in indices if calibration.held_out[index]]
        predictions = [assessment.predictions[index] for index in rest]
        keys = [assessment.keys[index] for index in rest]
        factors = [calibration.factor_of(each) for each in predictions]
        groups.append(
            {
                "group": name,
                "num_fitted": len(indices) - len(rest),
                "uncalibrated": time_figures(predictions, keys),
                "calibrated": time_figures(predictions, keys, factors),
            }
        )
    return {
        "factors": {
            source: {"factor": found.factor, "num_fitted": found.num_fitted}
            for source, found in calibration.factors.items()
        },
        "groups": groups,
    }
