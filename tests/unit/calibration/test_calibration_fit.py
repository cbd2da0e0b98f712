"""Known factors are found again, few rows shrink them, useless ones are left out; the cost model is the truth."""

from __future__ import annotations

import math
import random
from functools import cache

import numpy as np
import pytest

from planner.evidence.calibration.calibrate import CalibrationRun, calibrate
from planner.evidence.calibration.document import Calibration
from planner.evidence.calibration.response import RATIOS, MemoryResponse, TimeResponse
from planner.evidence.runs.prediction import Inputs, map_rows, predict_runs
from planner.question.factors import Factors
from tests.accuracy_rows import rows_of

SETTINGS = [
    {"tp": str(tp), "pp": str(pp), "mbs": str(mbs), "num_devices": str(devices), "gbs": str(gbs), "seq_len": length}
    for length in ("8192", "2048")
    for tp, pp, devices in ((1, 1, 8), (2, 2, 16), (8, 1, 16), (4, 2, 8), (8, 2, 32), (2, 4, 32))
    for mbs, gbs in ((1, 32), (2, 64))
]
SHA = {"rows": "0" * 64}


@cache
def measured(
    factors: Factors, settings: int = len(SETTINGS), noise: float = 0.0, memory: bool = False
) -> tuple[CalibrationRun, ...]:
    """Runs whose step time (and memory) is what the cost model says under ``factors``, with log-normal noise."""
    draw = random.Random(7)
    chosen = SETTINGS[:settings]
    runs, unmapped = map_rows(rows_of(*chosen))
    assert not unmapped
    predictions, _ = predict_runs(runs, Inputs(factors=factors))
    changes = []
    for setting, each in zip(chosen, predictions, strict=True):
        time_s = each.step_time_s * math.exp(draw.gauss(0, noise))
        peak = str(each.peak_memory_bytes / 2**30) if memory else ""
        changes.append({**setting, "step_time_s": repr(time_s), "peak_mem_gib": peak})
    runs, _ = map_rows(rows_of(*changes))
    return tuple(CalibrationRun(run, "framework", "1.0", "rows") for run in runs)


def one(runs: tuple[CalibrationRun, ...]) -> Calibration:
    """The only calibration of these runs."""
    (found,) = calibrate(runs, SHA).calibrations
    return found


def test_known_factors_are_found_again() -> None:
    true = Factors(compute=1.35, communication=2.0, host_overhead_s=0.06)
    found = one(measured(true))
    assert found.factors.compute == pytest.approx(true.compute, rel=0.03)
    assert found.factors.communication == pytest.approx(true.communication, rel=0.06)
    assert found.factors.host_overhead_s == pytest.approx(true.host_overhead_s, rel=0.1)
    assert found.time is not None
    assert found.time.before.median is not None
    assert found.time.after_leave_one_out is not None
    assert found.time.before.median > 0.25
    assert found.time.after_leave_one_out.p90 is not None
    assert found.time.after_leave_one_out.p90 < 0.02
    assert [rung.factors for rung in found.time.ladder if rung.taken][-1] == (
        "compute",
        "communication",
        "host_overhead_s",
    )


def test_memory_factors_are_found_again() -> None:
    true = Factors(fixed_bytes=3_000_000_000, fragmentation=1.4)
    found = one(measured(true, memory=True))
    assert found.factors.fixed_bytes == pytest.approx(true.fixed_bytes, rel=0.1)
    assert found.factors.fragmentation == pytest.approx(true.fragmentation, rel=0.05)
    assert found.factors.compute == 1.0
    assert found.memory_meaning == ("allocated",)


def test_standard_errors_cover_the_truth_under_noise() -> None:
    true = Factors(compute=1.5)
    found = one(measured(true, noise=0.05))
    assert found.time is not None
    error = found.time.standard_errors["compute"]
    assert 0.005 < error < 0.1
    assert abs(found.factors.compute - true.compute) < 3 * error


def test_runs_as_predicted_get_no_factor() -> None:
    found = one(measured(Factors()))
    assert found.factors == Factors()
    assert found.time is not None
    assert [rung.taken for rung in found.time.ladder] == [True, False, False, False]


def test_noise_alone_is_not_fitted() -> None:
    found = one(measured(Factors(), noise=0.2))
    assert found.factors == Factors()
    assert found.time is not None
    assert found.time.after_leave_one_out == found.time.before


def test_a_pure_compute_error_gives_a_compute_factor_only() -> None:
    found = one(measured(Factors(compute=1.6), noise=0.02))
    assert found.factors.compute == pytest.approx(1.6, rel=0.05)
    assert set(found.factors.changed()) == {"compute"}


def test_one_row_gives_one_shrunken_factor_of_unknown_error() -> None:
    found = one(measured(Factors(compute=2.0), settings=1))
    assert set(found.factors.changed()) == {"compute"}
    assert 1.5 < found.factors.compute < 2.0
    assert found.time is not None
    assert found.time.after_leave_one_out is None
    assert found.time.sigma is None
    assert found.applied().framework_sigma is None


def test_shrinkage_fades_with_the_number_of_rows() -> None:
    few, many = (one(measured(Factors(compute=2.0), settings=count)).factors.compute for count in (2, 12))
    assert few < many <= 2.02
    assert many == pytest.approx(2.0, rel=0.02)


def test_few_configurations_try_the_first_factor_only() -> None:
    found = one(measured(Factors(compute=1.3, communication=3.0), settings=6))
    assert found.time is not None
    assert all(rung.factors in ((), ("compute",)) for rung in found.time.ladder)


def test_the_spread_of_left_out_runs_reaches_a_plan_from_eight_rows_on() -> None:
    enough, short = (one(measured(Factors(compute=1.5), settings=count, noise=0.1)) for count in (9, 6))
    assert enough.time is not None
    assert enough.applied().framework_sigma == enough.time.sigma
    assert short.applied().framework_sigma is None


def test_an_absurd_row_does_not_decide() -> None:
    runs = list(measured(Factors(compute=1.3)))
    row = runs[0].run.row
    rows = rows_of(*[{**SETTINGS[0], "step_time_s": repr(50 * (row.step_time_s or 0))}])
    (absurd,), _ = map_rows(rows)
    runs[0] = CalibrationRun(absurd, "framework", "1.0", "rows")
    assert one(tuple(runs)).factors.compute == pytest.approx(1.3, rel=0.12)


def test_the_response_is_the_cost_models_own_answer() -> None:
    runs = [each.run for each in measured(Factors())]

    def predict(factors: Factors) -> list:  # type: ignore[type-arg]
        return predict_runs(runs, Inputs(factors=factors))[0]

    response = TimeResponse.of(predict)
    assert response.by_ratio_s.shape == (len(runs), len(RATIOS))
    for compute, communication, host_s in ((1.3, 0.8, 0.0), (0.9, 3.3, 0.01), (3.0, 0.5, 0.2), (1.0, 1.0, 0.0)):
        factors = Factors(compute=compute, communication=communication, host_overhead_s=host_s)
        true = np.array([each.step_time_s for each in predict(factors)])
        told, _ = response.log_prediction(np.array([math.log(compute), math.log(communication), host_s]))
        np.testing.assert_allclose(np.exp(told), true, rtol=0.01)
    memory = MemoryResponse.of(predict)
    factors = Factors(fixed_bytes=2_000_000_000, fragmentation=2.0)
    true = np.array([each.peak_memory_bytes for each in predict(factors)])
    told, _ = memory.log_prediction(np.array([2e9, math.log(2.0)]))
    np.testing.assert_allclose(np.exp(told), true, rtol=0.01)


def test_derivatives_are_derivatives() -> None:
    runs = [each.run for each in measured(Factors())]
    response = TimeResponse.of(lambda factors: predict_runs(runs, Inputs(factors=factors))[0])
    at = np.array([0.2, 0.5, 0.01])
    value, slope = response.log_prediction(at)
    for index, step in enumerate((1e-6, 1e-6, 1e-8)):
        moved = at.copy()
        moved[index] += step
        np.testing.assert_allclose((response.log_prediction(moved)[0] - value) / step, slope[:, index], rtol=1e-3)


def test_frameworks_versions_and_devices_are_kept_apart() -> None:
    runs = measured(Factors(compute=1.5))
    other = [CalibrationRun(each.run, "framework", "2.0", "rows") for each in runs]
    found = calibrate([*runs, *other], SHA).calibrations
    assert [(each.framework, each.framework_version) for each in found] == [("framework", "1.0"), ("framework", "2.0")]


def test_rows_of_one_configuration_are_left_out_together() -> None:
    runs = measured(Factors(compute=1.5), settings=1)
    rows = rows_of(*[{**SETTINGS[0], "step_time_s": str(10.0 + index)} for index in range(9)])
    repeated = tuple(CalibrationRun(run, "framework", "1.0", "rows") for run in map_rows(rows)[0])
    found = one(repeated)
    assert found.time is not None
    assert (found.time.n, found.time.num_configurations) == (9, 1)
    assert found.time.after_leave_one_out is None
    assert len(runs) == 1


def test_the_identity_does_not_depend_on_the_date_but_on_the_rows() -> None:
    first, second = one(measured(Factors(compute=1.5))), one(measured(Factors(compute=1.5)))
    dated = first.model_copy(update={"created_at": "2026-01-01T00:00:00+00:00"})
    assert first.calibration_id == second.calibration_id == dated.calibration_id
    assert one(measured(Factors(compute=1.6))).calibration_id != first.calibration_id
