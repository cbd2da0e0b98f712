"""The fit of the factors to measured runs: bounded, shrunken least squares on log errors.

    minimise  sum_i w_i H( (ln measured_i - ln predicted_i(v)) / noise )  +  sum_p (v_p / prior_p)^2

``H`` is Huber's function (square up to ``HUBER`` sigmas, linear beyond: one absurd row does not decide), ``v = 0`` is
no calibration, ``prior_p`` how far a factor usually is from there.  The noise is that of the rows themselves, mixed
with an expectation that weighs like ``PRIOR_ROWS`` rows and is never exceeded (what errs more is an outlier): few rows
stay near no calibration, consistent ones decide.
Levenberg-Marquardt with projection on the bounds.  Left-out fits start from the fit of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.evidence.calibration.response import Response
from solver.arrays import Array, Ints

HUBER = 2.0
PRIOR_ROWS = 3.0
LEAST_NOISE = 0.01
MOST_STEPS = 60
CONVERGED = 1e-7
"""Change of the scaled parameters (in prior sigmas) below which a fit stands still."""


@dataclass(frozen=True, slots=True)
class FitProblem:
    """What is fitted: the response of the predictions, and the log of what was measured [N]."""

    response: Response
    log_measured: Array
    configuration: Ints
    """Number of each row's configuration [N]: rows of one configuration are left out together."""
    noise: float
    """Spread of the log error of one row."""

    @property
    def num_configurations(self) -> int:
        """Distinct runs."""
        return len(np.unique(self.configuration))

    def with_noise_of(self, values: Array, num_free: int) -> FitProblem:
        """The same problem with the noise left at ``values`` (from the median error), for few rows the expected one."""
        count = len(self.log_measured)
        spread = 1.4826 * float(np.median(np.abs(self.log_errors(values))))
        own = spread**2 * count**2 / max(count - num_free, 1)
        expected = PRIOR_ROWS * self.response.noise**2
        found = float(np.sqrt((own + expected) / (count + PRIOR_ROWS)))
        return replace(self, noise=min(max(found, LEAST_NOISE), self.response.noise))

    def log_errors(self, values: Array) -> Array:
        """ln(predicted / measured) [N]."""
        return self.response.log_prediction(values)[0] - self.log_measured


def fit(problem: FitProblem, free: tuple[int, ...], weights: Array, start: Array | None = None) -> Array:
    """Parameter values [P] with only ``free`` ones moved; rows of weight 0 are not seen."""
    parameters = problem.response.parameters
    values = np.zeros(len(parameters)) if start is None else start.copy()
    if not free:
        return values
    prior, low, high = (
        np.array([getattr(parameters[index], name) for index in free]) for name in ("prior_sigma", "low", "high")
    )
    chosen = list(free)
    damping, loss = 1e-3, _loss(problem, values, weights, chosen, prior)
    for _ in range(MOST_STEPS):
        normal, gradient = _normal_equations(problem, values, weights, chosen, prior)
        held = ((values[chosen] <= low) & (gradient < 0)) | ((values[chosen] >= high) & (gradient > 0))
        normal, gradient = _without(held, normal, gradient)
        step = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), gradient) * prior
        tried = values.copy()
        tried[chosen] = np.clip(values[chosen] + step, low, high)
        new_loss = _loss(problem, tried, weights, chosen, prior)
        if new_loss <= loss:
            moved = float(np.abs((tried[chosen] - values[chosen]) / prior).max())
            values, loss, damping = tried, new_loss, damping * 0.2
            if moved < CONVERGED:
                break
        else:
            damping *= 8.0
            if damping > 1e8:
                break
    return values


def left_out_values(problem: FitProblem, free: tuple[int, ...], start: Array) -> list[tuple[Ints, Array]]:
    """For every configuration: its rows, and the values fitted without them."""
    found = []
    for number in np.unique(problem.configuration):
        held = problem.configuration == number
        found.append((np.flatnonzero(held), fit(problem, free, np.where(held, 0.0, 1.0), start)))
    return found


def standard_errors(problem: FitProblem, free: tuple[int, ...], values: Array) -> Array:
    """Standard errors of the fitted values, the prior counted as information: [len(free)].

    ``s^2 (J'J + noise^2 / prior^2)^-1`` with the spread ``s`` of the residuals, at least a third of the noise.
    """
    parameters, chosen = problem.response.parameters, list(free)
    prior = np.array([parameters[index].prior_sigma for index in free])
    jacobian = problem.response.log_prediction(values)[1][:, chosen] * prior
    errors = problem.log_errors(values)
    freedom = max(len(errors) - len(free), 1)
    spread = max(float(np.sqrt((errors**2).sum() / freedom)), problem.noise / 3.0)
    information = jacobian.T @ jacobian / spread**2 + np.eye(len(free))
    sigmas: Array = np.sqrt(np.diag(np.linalg.inv(information))) * prior
    return sigmas


def _loss(problem: FitProblem, values: Array, weights: Array, chosen: list[int], prior: Array) -> float:
    scaled = np.abs(problem.log_errors(values)) / problem.noise
    robust = np.where(scaled <= HUBER, scaled**2, 2.0 * HUBER * scaled - HUBER**2)
    return float((weights * robust).sum() + ((values[chosen] / prior) ** 2).sum())


def _normal_equations(
    problem: FitProblem, values: Array, weights: Array, chosen: list[int], prior: Array
) -> tuple[Array, Array]:
    """Matrix and right side of a Gauss-Newton step in units of the prior sigmas, residuals weighted as Huber does."""
    log_predicted, jacobian = problem.response.log_prediction(values)
    residual = (problem.log_measured - log_predicted) / problem.noise
    weight = weights * np.minimum(1.0, HUBER / np.maximum(np.abs(residual), 1e-12))
    scaled = jacobian[:, chosen] * prior / problem.noise
    normal = scaled.T @ (scaled * weight[:, None]) + np.eye(len(chosen))
    gradient = scaled.T @ (weight * residual) - values[chosen] / prior
    return normal, gradient


def _without(held: NDArray[np.bool_], normal: Array, gradient: Array) -> tuple[Array, Array]:
    """The same step with parameters that push against their bound standing still."""
    if not held.any():
        return normal, gradient
    normal, gradient = normal.copy(), np.where(held, 0.0, gradient)
    normal[held, :] = 0.0
    normal[:, held] = 0.0
    normal[held, held] = 1.0
    return normal, gradient
