"""Calibrating on a part of each source: which rows, what the factors give, and that nothing leaks to the judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from planner.evidence.accuracy.calibration import Calibration, calibrate
from planner.evidence.accuracy.calibration_part import calibration_part
from planner.evidence.accuracy.ranking import ranking_key
from planner.evidence.accuracy.residual_model import shrunken_level
from planner.evidence.accuracy.statistics import coverage, memory_figures, time_figures
from planner.evidence.runs.mapped_run import MappedRun
from planner.evidence.runs.prediction import DATASHEET, Prediction, map_rows, predict_rows, predict_runs
from planner.predict.physics.physics import TUNED
from planner.question.factors import Factors
from tests.accuracy_rows import rows_of

TRUE = Factors(compute=1.5, communication=2.0)
Known = tuple[dict[str, MappedRun], list[Prediction], list[str]]


def changes(source: str, num_groups: int = 10) -> list[dict[str, str]]:
    """Groups of two runs, of a source of its own."""
    return [
        {"id": f"{source}-{group}-{tp}", "source": f"github:{source}/x", "gbs": str(32 * (group + 1)), "tp": str(tp)}
        for group in range(num_groups)
        for tp in (2, 4)
    ]


def measured(asked: list[dict[str, str]], factors: Factors) -> list[dict[str, str]]:
    """The same runs as a framework with these factors would have measured them."""
    runs, _ = map_rows(rows_of(*asked))
    predictions, _ = predict_runs(runs, replace(DATASHEET, factors=factors))
    times = {each.row.id: each.step_time_s for each in predictions}
    return [{**each, "step_time_s": repr(times[each["id"]])} for each in asked]


def known(*asked: dict[str, str]) -> Known:
    rows = rows_of(*asked)
    runs, _ = map_rows(rows)
    predictions, _ = predict_rows(rows)
    return {run.row.id: run for run in runs}, predictions, [ranking_key(each.row, {}) for each in predictions]


def calibrated(found: Known, fraction: float, spent: Mapping[str, bool] | None = None) -> Calibration:
    runs, predictions, keys = found
    return calibrate(runs, predictions, keys, [bool((spent or {}).get(each.row.id)) for each in predictions], fraction)


def test_factors_of_a_framework_are_found_on_a_part_and_hold_on_the_rest() -> None:
    found = known(*measured(changes("slow"), TRUE), *measured(changes("same"), Factors()))
    result = calibrated(found, 0.4)
    rest = [index for index, used in enumerate(result.part) if not used]
    keys = [found[2][index] for index in rest]
    before = time_figures([found[1][index] for index in rest], keys)
    after = time_figures([result.by_factors[index] for index in rest], keys)
    assert before["mape"] > 0.15
    assert after["mape"] < 0.02
    factors = {each.source: each.factors for each in result.factor_sets}
    assert factors["slow/x"].compute == pytest.approx(TRUE.compute, rel=0.1)
    assert factors["same/x"] == Factors()
    assert {each.source: each.num_rows for each in result.factor_sets} == {"slow/x": 8, "same/x": 8}


def test_the_rows_that_judge_never_move_the_calibration() -> None:
    asked = measured(changes("slow"), TRUE)
    first = calibrated(known(*asked), 0.3)
    ids = [each["id"] for each in asked]
    judges = {identity for identity, used in zip(ids, first.part, strict=True) if not used}
    absurd = [{**each, "step_time_s": "9999"} if each["id"] in judges else each for each in asked]
    second = calibrated(known(*absurd), 0.3)
    assert second.part == first.part
    assert [each.step_time_s for each in second.by_residuals] == [each.step_time_s for each in first.by_residuals]


def test_whole_groups_calibrate_whatever_the_order_of_the_file() -> None:
    found = known(*changes("one", 12))
    part = calibration_part(found[1], found[2], [False] * 24, 0.25)
    chosen = {key for key, used in zip(found[2], part, strict=True) if used}
    left = {key for key, used in zip(found[2], part, strict=True) if not used}
    assert (len(chosen), len(left), chosen & left) == (3, 9, set())
    turned = known(*reversed(changes("one", 12)))
    again = calibration_part(turned[1], turned[2], [False] * 24, 0.25)
    assert {key for key, used in zip(turned[2], again, strict=True) if used} == chosen


def test_groups_that_chose_constants_calibrate_first_so_that_judges_stay() -> None:
    found = known(*changes("one", 10))
    spent = [each.row.id.startswith(("one-3-", "one-7-")) for each in found[1]]
    assert list(calibration_part(found[1], found[2], spent, 0.2)) == spent


def test_every_device_of_a_source_gets_its_share() -> None:
    other = [{**each, "id": f"h200-{each['id']}", "device": "H200-SXM-141GB"} for each in changes("one", 5)]
    found = known(*changes("one", 10), *other)
    part = calibration_part(found[1], found[2], [False] * 30, 0.2)
    devices = [each.row.device for each, used in zip(found[1], part, strict=True) if used]
    assert {name: devices.count(name) for name in devices} == {"H100-SXM-80GB": 4, "H200-SXM-141GB": 2}


def test_a_large_group_is_passed_over_for_smaller_ones_that_fit() -> None:
    large = [
        {"id": f"large-{tp}-{mbs}", "gbs": "512", "tp": str(tp), "mbs": str(mbs)}
        for tp in (1, 2, 4, 8)
        for mbs in (1, 2, 4, 8)
    ]
    small = [
        {"id": f"small-{group}-{tp}", "gbs": str(16 * group), "tp": str(tp)} for group in range(1, 9) for tp in (2, 4)
    ]
    found = known(*large, *small)
    for fraction in (0.1, 0.2, 0.3):
        part = calibration_part(found[1], found[2], [False] * len(found[1]), fraction)
        names = [each.row.id for each, used in zip(found[1], part, strict=True) if used]
        assert all(name.startswith("small") for name in names)
        assert abs(len(names) - fraction * len(found[1])) <= 1


def test_a_single_group_is_never_used_up() -> None:
    result = calibrated(known({"tp": "1"}, {"tp": "2"}), 0.9)
    assert (result.part, result.factor_sets, result.residual_sets) == ((False, False), [], [])


def test_memory_has_factors_and_a_second_stage_too() -> None:
    asked = changes("heavy", 12)
    runs, _ = map_rows(rows_of(*asked))
    heavier, _ = predict_runs(runs, replace(DATASHEET, factors=Factors(fixed_bytes=6 * 10**9)))
    read = {each.row.id: each.peak_memory_bytes / 2**30 for each in heavier}
    found = known(*({**each, "step_time_s": "", "peak_mem_gib": repr(read[each["id"]])} for each in asked))
    result = calibrated(found, 0.4)
    rest = [index for index, used in enumerate(result.part) if not used]
    assert memory_figures([found[1][index] for index in rest])["mape"] > 0.05
    assert memory_figures([result.by_factors[index] for index in rest])["mape"] < 0.02
    assert memory_figures([result.by_residuals[index] for index in rest])["mape"] < 0.02


def test_a_level_of_memory_is_shrunken_by_the_spread_of_memory_not_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.evidence.accuracy.calibration._factors", lambda runs, source: None)
    asked = changes("lean", 4)
    plain = {each.row.id: each.peak_memory_bytes / 2**30 for each in predict_rows(rows_of(*asked))[0]}
    found = known(*({**each, "step_time_s": "", "peak_mem_gib": repr(plain[each["id"]] * 0.97)} for each in asked))
    result = calibrated(found, 0.25)
    assert (sum(result.part), result.factor_sets) == (2, [])
    level = shrunken_level(np.log([0.97, 0.97]), TUNED.memory_spread)
    ratios = [
        after.peak_memory_bytes / before.peak_memory_bytes
        for after, before in zip(result.by_residuals, found[1], strict=True)
    ]
    assert ratios == pytest.approx([float(np.exp(level))] * 8)


def test_what_depends_on_the_run_is_left_to_the_second_stage() -> None:
    """A framework that is the slower the larger its tensor groups: no bounded factor says that, the model does."""
    asked = [
        {"id": f"odd-{group}-{tp}", "source": "github:odd/x", "gbs": str(64 * (group + 1)), "tp": str(tp), "pp": "1"}
        for group in range(10)
        for tp in (1, 2, 4, 8)
    ]
    plain = {each.row.id: each.step_time_s for each in predict_rows(rows_of(*asked))[0]}
    odd = [{**each, "step_time_s": repr(plain[each["id"]] * (3.0 if each["tp"] == "2" else 1.0))} for each in asked]
    found = known(*odd)
    result = calibrated(found, 0.4)
    rest = [index for index, used in enumerate(result.part) if not used]
    keys = [found[2][index] for index in rest]
    first = time_figures([result.by_factors[index] for index in rest], keys)
    second = time_figures([result.by_residuals[index] for index in rest], keys)
    assert first["mape"] > 0.15
    assert second["mape"] < 0.35 * first["mape"]
    assert [(each.source, each.quantity) for each in result.residual_sets] == [("odd/x", "time")]
    assert (coverage([result.by_residuals[index] for index in rest], 0.9) or 0) > 0.85


def test_times_and_memory_alone_are_dealt_by_themselves() -> None:
    """A source whose memory rows are many small groups still gives times to calibrate with."""
    timed = changes("both", 6)
    memory = [
        {**each, "id": f"m-{each['id']}", "gbs": str(2 * int(each["gbs"])), "step_time_s": "", "peak_mem_gib": "30"}
        for each in changes("both", 12)
    ]
    _, predictions, keys = known(*timed, *memory)
    part = calibration_part(predictions, keys, [False] * len(predictions), 0.2)
    used = [each.row for each, chosen in zip(predictions, part, strict=True) if chosen]
    assert {row.measured_step_s is not None for row in used} == {True, False}
