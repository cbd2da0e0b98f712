"""The response of predictions of measured runs to the factors, tabulated once: a fit takes milliseconds.

Step time: all times of a step scale together, so with compute factor ``c``, communication factor ``m`` and host
overhead ``h`` seconds

    step(c, m, h) = c S(m / c) + h K

``S`` is the cost model's own answer at a few ratios (overlap decides how much of ``m`` shows), linear between them;
``K``: how often a step waits for one overhead (1F1B: micro-batches + stages - 1), from the cost model too.
Optimizer states on the host scale with neither factor; such runs are approximated.

Memory: ``B + x + (f - 1) A`` with fixed bytes ``x`` and fragmentation ``f``; ``A``: what activations add to a reading.

Ratios are fitted as logarithms.  Shape letters: N runs, G ratios, P parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from planner.evidence.runs.prediction import Prediction
from planner.question.factors import Factors
from solver.arrays import Array

Predict = Callable[[Factors], Sequence[Prediction]]
"""Predictions of the same runs in the same order under some factors."""

RATIOS = np.array([0.1, 0.3, 0.6, 1.0, 1.6, 2.5, 4.5, 10.0])
PROBE_S = 1e-3
PROBE_FRAGMENTATION = 1.5
HOST_PRIOR_SHARE, HOST_PRIOR_S = 0.25, 0.01
"""Prior size of the host overhead: this part of the median time of a micro-batch on a stage, or 10 ms if that is more
(a thousand launches of 10 us)."""
TIME_NOISE, MEMORY_NOISE = 0.15, 0.08
"""Expected spread of ln(measured / predicted) of single runs, before any is seen."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One factor in the space of the fit; ``ratio``: fitted as a logarithm."""

    name: str
    low: float
    high: float
    prior_sigma: float
    ratio: bool

    def factor(self, value: float) -> float:
        """The factor that a fitted value stands for."""
        return math.exp(value) if self.ratio else value

    def factor_error(self, value: float, sigma: float) -> float:
        """Standard error of the factor from that of the fitted value."""
        return math.exp(value) * sigma if self.ratio else sigma


class Response(Protocol):
    """Predictions as a function of the parameters; all parameters are 0 without calibration."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """In the order of the ladder."""
        ...

    @property
    def noise(self) -> float:
        """Expected spread of the log error of one run."""
        ...

    def log_prediction(self, values: Array) -> tuple[Array, Array]:
        """Log of the predictions [N] and their derivatives [N, P]."""
        ...


@dataclass(frozen=True, slots=True)
class TimeResponse:
    """Step times [N, G] at ``RATIOS``, and waits for a host overhead [N]."""

    by_ratio_s: Array
    overheads: Array
    noise: float = TIME_NOISE

    @classmethod
    def of(cls, predict: Predict) -> TimeResponse:
        """Ask the cost model."""
        columns = [_at(predict, float(ratio)) for ratio in RATIOS]
        delayed = _step_s(predict(Factors(host_overhead_s=PROBE_S)))
        plain = columns[int(np.flatnonzero(RATIOS == 1.0)[0])]
        return cls(np.stack(columns, axis=1), (delayed - plain) / PROBE_S)

    def take(self, index: NDArray[np.int64]) -> TimeResponse:
        """Some of the runs."""
        return TimeResponse(self.by_ratio_s[index], self.overheads[index], self.noise)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """In the order of the ladder."""
        each_s = self.by_ratio_s[:, RATIOS == 1.0].ravel() / self.overheads
        low, high = math.log(0.4), math.log(4.0)
        host_s = max(HOST_PRIOR_SHARE * float(np.median(each_s)), HOST_PRIOR_S)
        return (
            Parameter("compute", low, high, 0.35, ratio=True),
            Parameter("communication", low, high, 0.5, ratio=True),
            Parameter("host_overhead_s", 0.0, 0.25, host_s, ratio=False),
        )

    def log_prediction(self, values: Array) -> tuple[Array, Array]:
        """Log of the step times and their derivatives."""
        compute, communication, host_s = math.exp(values[0]), math.exp(values[1]), float(values[2])
        ratio = communication / compute
        at = min(max(int(np.searchsorted(RATIOS, ratio)) - 1, 0), len(RATIOS) - 2)
        slope = (self.by_ratio_s[:, at + 1] - self.by_ratio_s[:, at]) / (RATIOS[at + 1] - RATIOS[at])
        base_s = self.by_ratio_s[:, at] + slope * (ratio - RATIOS[at])
        step_s = compute * base_s + host_s * self.overheads
        changes = (compute * (base_s - ratio * slope), communication * slope, self.overheads)
        return np.log(step_s), np.stack(changes, axis=1) / step_s[:, None]


@dataclass(frozen=True, slots=True)
class MemoryResponse:
    """Readings without calibration [N], and their part that activations make [N]."""

    base_bytes: Array
    activation_bytes: Array
    noise: float = MEMORY_NOISE

    @classmethod
    def of(cls, predict: Predict) -> MemoryResponse:
        """Ask the memory model."""
        base = _memory_bytes(predict(Factors()))
        more = _memory_bytes(predict(Factors(fragmentation=PROBE_FRAGMENTATION)))
        return cls(base, (more - base) / (PROBE_FRAGMENTATION - 1.0))

    def take(self, index: NDArray[np.int64]) -> MemoryResponse:
        """Some of the runs."""
        return MemoryResponse(self.base_bytes[index], self.activation_bytes[index], self.noise)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """In the order of the ladder."""
        return (
            Parameter("fixed_bytes", -0.9e9, 24e9, 2e9, ratio=False),
            Parameter("fragmentation", math.log(0.5), math.log(3.0), 0.3, ratio=True),
        )

    def log_prediction(self, values: Array) -> tuple[Array, Array]:
        """Log of the readings and their derivatives."""
        factor = math.exp(values[1])
        total = self.base_bytes + values[0] + (factor - 1.0) * self.activation_bytes
        floor = 0.05 * self.base_bytes
        total = np.maximum(total, floor)
        changes = np.stack((np.ones_like(total), factor * self.activation_bytes), axis=1)
        return np.log(total), np.where((total > floor)[:, None], changes / total[:, None], 0.0)


def _at(predict: Predict, ratio: float) -> Array:
    """Step times with communication ``ratio`` times as slow beside compute: within the bounds of both factors."""
    high = min(ratio, 4.0) if ratio > 1 else max(ratio, 0.4)
    factors = Factors(communication=high, compute=high / ratio)
    return _step_s(predict(factors)) / factors.compute


def _step_s(predictions: Sequence[Prediction]) -> Array:
    return np.array([each.step_time_s for each in predictions])


def _memory_bytes(predictions: Sequence[Prediction]) -> Array:
    return np.array([each.peak_memory_bytes for each in predictions])
