"""Calibrating: the error of the planner for one back-end on one device, and the few factors that reduce it.

Runs are grouped by the name of their software, its version and the device.  Each group is predicted with the cost model
at a few settings of the factors, fitted on the logarithms, and judged by runs that a fit has not seen.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from planner.evidence.calibration.document import Calibration, ErrorFigures, FittedQuantity, HeavyRow, Rung, SourceUsed
from planner.evidence.calibration.fit import FitProblem, standard_errors
from planner.evidence.calibration.ladder import Step, climb
from planner.evidence.calibration.response import MemoryResponse, Predict, Response, TimeResponse
from planner.evidence.runs.mapped_run import MappedRun
from planner.evidence.runs.prediction import DATASHEET, Inputs, Prediction, Unmapped, predict_runs
from planner.predict.uncertainty import Z
from planner.question.factors import Factors
from planner.version import __version__
from solver.arrays import Array

SHOWN_ROWS = 5
DIGITS = 6


@dataclass(frozen=True, slots=True)
class CalibrationRun:
    """A measured run, whose it is in its own words, the file or batch that says so, and which back-end that is."""

    run: MappedRun
    framework: str
    framework_version: str
    source: str
    backend: str = ""
    """``NAME`` or ``NAME==RELEASE``; empty = a software that is not known here, or none is named."""

    @property
    def device(self) -> str:
        """Catalogue name of its device."""
        return self.run.cluster.pools[0].device.name

    @property
    def configuration(self) -> tuple[str, ...]:
        """What makes two runs the same experiment."""
        run = self.run
        shape = (run.model.content_hash(), run.workload.model_dump_json(), repr(run.strategy), repr(run.chunk_layers))
        return (*shape, run.cluster.content_hash())


@dataclass(frozen=True, slots=True)
class Outcome:
    """What calibrating gave: one calibration a group (the largest first), and the runs that could not be predicted."""

    calibrations: list[Calibration]
    unmapped: list[Unmapped]


def calibrate(
    runs: Sequence[CalibrationRun],
    sources: dict[str, str],
    inputs: Inputs = DATASHEET,
    profile_ids: dict[str, str] | None = None,
) -> Outcome:
    """Fit every group.  ``sources``: SHA-256 by source name; ``profile_ids``: measured inputs by device."""
    groups: dict[tuple[str, str, str], list[CalibrationRun]] = defaultdict(list)
    for each in runs:
        groups[each.framework, each.framework_version, each.device].append(each)
    calibrations: list[Calibration] = []
    unmapped: list[Unmapped] = []
    for (_, _, device), members in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        asked = _Predictions(inputs)
        unmapped.extend(asked.ask([each.run for each in members], inputs.factors))
        known = [each for each in members if each.run.row.id in asked.known[inputs.factors]]
        if known:
            calibrations.append(_calibrated(known, sources, asked, (profile_ids or {}).get(device)))
    return Outcome(calibrations, unmapped)


@dataclass(slots=True)
class _Predictions:
    """Predictions of one group by factors and row: the fits of time and memory ask under the same ones."""

    inputs: Inputs
    known: defaultdict[Factors, dict[str, Prediction]] = field(default_factory=lambda: defaultdict(dict))

    def ask(self, runs: Sequence[MappedRun], factors: Factors) -> list[Unmapped]:
        """Predict the runs that are not known under these factors; gives those that cannot be predicted."""
        known = self.known[factors]
        predictions, lost = predict_runs(
            [run for run in runs if run.row.id not in known], replace(self.inputs, factors=factors)
        )
        known.update((each.row.id, each) for each in predictions)
        return lost

    def of(self, members: Sequence[CalibrationRun]) -> Predict:
        """Predictions of these runs under any factors."""
        runs = [each.run for each in members]

        def predict(factors: Factors) -> list[Prediction]:
            self.ask(runs, factors)
            return [self.known[factors][run.row.id] for run in runs]

        return predict


def _calibrated(
    members: list[CalibrationRun], sources: dict[str, str], asked: _Predictions, profile_id: str | None
) -> Calibration:
    timed = [each for each in members if each.run.row.measured_step_s is not None]
    read = [each for each in members if _reads_peak_memory(each)]
    factors: dict[str, float] = {}
    time = memory = None
    if timed:
        time_predict = asked.of(timed)
        step_s = np.array([each.run.row.measured_step_s or np.nan for each in timed])
        time, found = _fitted(timed, TimeResponse.of(time_predict), np.log(step_s), alone=True)
        factors |= found
    if read:
        memory_predict = asked.of(read)
        peak = np.array([each.run.row.measured_peak_bytes or np.nan for each in read])
        memory, found = _fitted(read, MemoryResponse.of(memory_predict), np.log(peak), alone=False)
        factors |= found
    tidy = _tidy(factors)
    if timed and time is not None:
        after_s = np.array([each.step_time_s for each in time_predict(tidy)])
        time = time.model_copy(update={"after_in_sample": _figures(np.log(after_s / step_s))})
    if read and memory is not None:
        after = np.array([each.peak_memory_bytes for each in memory_predict(tidy)])
        memory = memory.model_copy(update={"after_in_sample": _figures(np.log(after / peak))})
    used = Counter(each.source for each in members)
    first = members[0]
    return Calibration(
        framework=first.framework,
        framework_version=first.framework_version,
        device=first.device,
        traits=first.run.traits.name,
        profile_id=profile_id,
        factors=tidy,
        time=time,
        memory=memory,
        memory_meaning=tuple(sorted({each.run.flavour.memory for each in read})),
        sources=tuple(SourceUsed(name=name, sha256=sources[name], rows=rows) for name, rows in sorted(used.items())),
        software=__version__,
    )


def _reads_peak_memory(each: CalibrationRun) -> bool:
    """A reading of what stays between steps says nothing about activations or buffers."""
    return each.run.row.measured_peak_bytes is not None and each.run.flavour.memory != "resident"


def _fitted(
    members: Sequence[CalibrationRun], response: Response, log_measured: Array, *, alone: bool
) -> tuple[FittedQuantity, dict[str, float]]:
    """The fit of one quantity, and its factors by name."""
    numbers: dict[tuple[str, ...], int] = {}
    configuration = np.array([numbers.setdefault(each.configuration, len(numbers)) for each in members])
    problem = FitProblem(response, log_measured, configuration, response.noise)
    chosen, steps = climb(problem, alone=alone)
    names = [parameter.name for parameter in response.parameters]
    factors = {names[index]: response.parameters[index].factor(float(chosen.values[index])) for index in chosen.free}
    before = problem.log_errors(np.zeros(len(names)))
    left_out = chosen.left_out_errors if problem.num_configurations > 1 else None
    quantity = FittedQuantity(
        n=len(members),
        num_configurations=len(numbers),
        before=_figures(before),
        after_in_sample=_figures(problem.log_errors(chosen.values)),
        after_leave_one_out=None if left_out is None else _figures(left_out),
        ladder=tuple(_rung(step, names, single=problem.num_configurations < 2) for step in steps),
        standard_errors=_standard_errors(problem, chosen),
        heaviest=_heaviest(members, chosen, configuration),
        sigma=None if left_out is None else _tidy_number(float(np.quantile(np.abs(left_out), 0.8)) / Z),
    )
    return quantity, factors


def _standard_errors(problem: FitProblem, chosen: Step) -> dict[str, float]:
    if not chosen.free:
        return {}
    parameters = [problem.response.parameters[index] for index in chosen.free]
    sigmas = standard_errors(problem, chosen.free, chosen.values)
    return {
        parameter.name: _tidy_number(parameter.factor_error(float(chosen.values[index]), float(sigma)))
        for parameter, index, sigma in zip(parameters, chosen.free, sigmas, strict=True)
    }


def _heaviest(
    members: Sequence[CalibrationRun], chosen: Step, configuration: NDArray[np.int64]
) -> tuple[HeavyRow, ...]:
    """Rows that move others most, one a configuration."""
    if chosen.shifts is None:
        return ()
    found: dict[int, HeavyRow] = {}
    for index in np.argsort(-chosen.shifts, kind="stable").tolist():
        if len(found) == SHOWN_ROWS:
            break
        part = _tidy_number(float(np.expm1(chosen.shifts[index])))
        row = members[index].run.row.id
        found.setdefault(int(configuration[index]), HeavyRow(row=row, moves_prediction_by=part))
    return tuple(found.values())


def _rung(step: Step, names: list[str], *, single: bool) -> Rung:
    return Rung(
        factors=tuple(names[index] for index in step.free),
        leave_one_out=None if single or step.left_out_errors is None else _figures(step.left_out_errors),
        mean_abs_log=None if single or step.mean_abs_log is None else _tidy_number(step.mean_abs_log),
        taken=step.taken,
    )


def _figures(log_errors: Array) -> ErrorFigures:
    """Errors from ln(predicted / measured)."""
    if not len(log_errors):
        return ErrorFigures(n=0)
    absolute = np.abs(np.expm1(log_errors))
    return ErrorFigures(
        n=len(log_errors),
        median=_tidy_number(float(np.median(absolute))),
        p90=_tidy_number(float(np.quantile(absolute, 0.9))),
        bias=_tidy_number(float(np.expm1(log_errors.mean()))),
    )


def _tidy(factors: dict[str, float]) -> Factors:
    """Factors with the digits that they deserve: equal rows give equal ids on every machine."""
    values = {name: _tidy_number(value, 4) for name, value in factors.items()}
    if "fixed_bytes" in values:
        values["fixed_bytes"] = round(values["fixed_bytes"])
    return Factors.model_validate(values)


def _tidy_number(value: float, digits: int = DIGITS) -> float:
    return float(f"{value:.{digits}g}")
