"""The ladder of factors, climbed by the error of rows that a fit has not seen.

none -> + compute -> + communication -> + host overhead (memory: none -> + fixed bytes -> + fragmentation).  A factor
is kept only if the mean |ln(predicted / measured)| of left-out configurations falls by more than the standard error
of the difference, and by at least ``LEAST_GAIN`` of it.  With few configurations only the first factor is tried; with
a single one nothing can be left out: then it is fitted, and its error is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.evidence.calibration.fit import FitProblem, fit, left_out_values
from solver.arrays import Array

LEAST_CONFIGURATIONS = 8
"""With fewer distinct runs only the first factor of the ladder is tried."""
LEAST_GAIN = 0.02
NOISE_ROUNDS = 3
LEAST_ERROR = 1e-3
"""Errors below a thousandth are not worth a factor."""


@dataclass(frozen=True, slots=True)
class Step:
    """Free parameters, their values from all rows, and ln(predicted / measured) of every row when left out."""

    free: tuple[int, ...]
    values: Array
    left_out_errors: Array | None
    shifts: Array | None
    """Largest change of any other row's log prediction when a row's configuration is left out: [N]."""
    taken: bool

    @property
    def mean_abs_log(self) -> float | None:
        """What the ladder compares."""
        return None if self.left_out_errors is None else float(np.abs(self.left_out_errors).mean())


def climb(problem: FitProblem, *, alone: bool = True) -> tuple[Step, list[Step]]:
    """The chosen step and all that were tried.  ``alone``: a single configuration may fit the first factor."""
    parameters = problem.response.parameters
    neutral = np.zeros(len(parameters))
    ones = np.ones(len(problem.log_measured))
    chosen = Step((), neutral, problem.log_errors(neutral), None, taken=True)
    steps = [chosen]
    if problem.num_configurations < 2:
        if not alone:
            return chosen, steps
        only = Step((0,), _settled(problem, (0,), ones, neutral)[1], None, None, taken=True)
        return only, [*steps, only]
    several = problem.num_configurations >= LEAST_CONFIGURATIONS
    for index in range(len(parameters) if several else 1):
        tried = _step(problem, (*chosen.free, index), ones, chosen)
        steps.append(tried)
        if tried.taken:
            chosen = tried
    return chosen, steps


def _step(problem: FitProblem, free: tuple[int, ...], ones: Array, before: Step) -> Step:
    problem, values = _settled(problem, free, ones, before.values)
    full, _ = problem.response.log_prediction(values)
    errors, shifts = np.empty(len(ones)), np.empty(len(ones))
    for held, others in left_out_values(problem, free, values):
        predicted, _ = problem.response.log_prediction(others)
        errors[held] = predicted[held] - problem.log_measured[held]
        moved = np.abs(predicted - full)
        moved[held] = 0.0
        shifts[held] = moved.max()
    taken = _helps(problem, before.left_out_errors, errors)
    return Step(free, values, errors, shifts, taken=taken)


def _settled(problem: FitProblem, free: tuple[int, ...], ones: Array, start: Array) -> tuple[FitProblem, Array]:
    """The fit of all rows once noise and values agree, and the problem with that noise."""
    values = start
    for _ in range(NOISE_ROUNDS):
        values = fit(problem, free, ones, values)
        problem = problem.with_noise_of(values, len(free))
    return problem, fit(problem, free, ones, values)


def _helps(problem: FitProblem, before: Array | None, after: Array) -> bool:
    """Whether errors of left-out rows fall by more than chance; differences are averaged by configuration."""
    if before is None:
        return False
    numbers = np.unique(problem.configuration)
    gain = np.abs(before) - np.abs(after)
    by_configuration = np.array([gain[problem.configuration == number].mean() for number in numbers])
    mean = float(by_configuration.mean())
    error = float(by_configuration.std(ddof=1) / np.sqrt(len(numbers)))
    level = float(np.abs(before).mean())
    return level > LEAST_ERROR and mean > error and mean > LEAST_GAIN * level
