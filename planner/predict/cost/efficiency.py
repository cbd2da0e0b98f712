"""The time of one operator on one device when nobody has measured it.

Roofline with an efficiency by operator class and size::

    matmul      t = max( 2 m n k / (P * e_mm * f(m) f(n) f(k)),  bytes / (B * e_mem) ) + launch
    attention   planner.predict.cost.attention_time
    point-wise  t = bytes / (B * e_mem) + launch

``P`` dense peak, ``B`` memory bandwidth, ``f(x) = x / (x + x_half)`` (small and thin shapes waste tiles and waves).
``e_mm`` is the device's best measured matmul rate over peak where the catalogue has it, else ``matmul_fraction``.
Every result of this module is a *datasheet* prediction; a measured profile replaces it operator by operator.

Sources: utilisation of 35,742 measured bf16 matmuls a device (median .76 A100, .76 H100, .67 B200 for m, n, k >= 1024),
computed from AIConfigurator's published tables (ai-dynamo/aiconfigurator@095f58a51); 3 us + bytes / (0.8 B) for
memory-bound operators is that project's own prior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.predict.cost.measured import MeasuredRates, better_of
from planner.question.fp8_recipes import NARROW_BYTES
from profiles.catalogue.architectures import architectures
from profiles.device import Device
from profiles.errors import ProfileMissing
from solver.arrays import Array

DEFAULT_MATMUL_FRACTION = 0.70
"""Best matmul rate over peak where no measurement exists: the lower half of the measured devices (see module)."""
VECTOR_FRACTION = 0.90
"""The same in fp32 without tensor cores: vendors' SGEMM reaches it, and inside a step as well (prior, set after
seeing 0.59 too low on NeuSight's fp32 runs)."""
NARROW = frozenset(NARROW_BYTES)
WIDE_ELEMENT_BYTES: dict[str, float] = {"fp32": 4.0, "tf32": 4.0}
CAST_BYTES = 4.0
"""Bytes moved for each element that a matmul takes in 8 bit: read once (2), written as it stands and transposed for
the weight gradient (1 + 1): TransformerEngine's delayed scaling, not re-read. On the fit part 4 is nearer than 6;
current scaling reads once more unless a kernel before it found the largest value."""
MEMORY_FRACTION = 0.80
LAUNCH_S = 3e-6
REFERENCE_PEAK_FLOPS_PER_S = 989e12
HALF_ROWS, HALF_COLUMNS, HALF_DEPTH = 96.0, 96.0, 128.0
"""Sizes at which one dimension halves the matmul efficiency; about one output tile (128 x 256) deep."""


@dataclass(frozen=True, slots=True)
class DeviceRates:
    """Peaks and efficiencies of one device at one precision; methods accept arrays and broadcast."""

    matmul_flops_per_s: float
    wide_matmul_flops_per_s: float
    wide_flops_per_s: float
    memory_bytes_per_s: float
    element_bytes: float
    casts: bool = False
    narrow_bytes: float = 1.0
    """Bytes of a cast operand as it is kept and gathered."""
    vector_flops_per_s: float = 0.0
    """fp32 without tensor cores; 0 = not known."""
    cast_bytes: float = CAST_BYTES
    measured: MeasuredRates | None = None

    def matmul_s(self, m: Array, n: Array, k: Array, weights: Array | float = 1.0, phase: str = "forward") -> Array:
        """Seconds of ``weights`` matmuls [m, k] x [k, n] run as one (grouped) kernel; ``phase`` dgrad, wgrad.

        In 8 bit without the casts of their inputs: ``cast_s``.
        """
        seconds = self._model_s(m, n, k, weights, self.matmul_flops_per_s, self.element_bytes)
        return seconds if self.measured is None else better_of(self.measured.matmul(m, n, k, weights, phase), seconds)

    def wide_matmul_s(
        self, m: Array, n: Array, k: Array, products: Array | float = 1.0, phase: str = "forward"
    ) -> Array:
        """Seconds of ``products`` 16-bit matmuls whatever the precision of the run: vocabulary, router, scores."""
        seconds = self._model_s(m, n, k, products, self.wide_matmul_flops_per_s, 2.0)
        if self.measured is None:
            return seconds
        return better_of(self.measured.matmul(m, n, k, products, phase, wide=True), seconds)

    @property
    def gathered_bytes(self) -> float:
        """Bytes of an operand's element that is cast before it is gathered; 0 = none is."""
        return self.narrow_bytes if self.casts else 0.0

    def cast_s(self, elements: Array) -> Array:
        """Seconds to bring ``elements`` of 16 bit into the 8-bit formats of a matmul; none in 16 bit."""
        return self.memory_s(self.cast_bytes * elements) if self.casts else np.zeros_like(elements)

    def memory_s(self, moved_bytes: Array, operator: str = "") -> Array:
        """Seconds of a memory-bound operator (of class ``operator``) that moves ``moved_bytes``."""
        seconds = np.where(moved_bytes > 0, moved_bytes / self.memory_bytes_per_s + LAUNCH_S, 0.0)
        return seconds if self.measured is None else better_of(self.measured.moved(operator, moved_bytes), seconds)

    def slowed(self, slowdown: float) -> DeviceRates:
        """Rates of a device whose cores run ``slowdown`` times slower; the memory keeps its own clock."""
        return replace(
            self,
            matmul_flops_per_s=self.matmul_flops_per_s / slowdown,
            wide_matmul_flops_per_s=self.wide_matmul_flops_per_s / slowdown,
            wide_flops_per_s=self.wide_flops_per_s / slowdown,
            vector_flops_per_s=self.vector_flops_per_s / slowdown,
        )

    def _model_s(self, m: Array, n: Array, k: Array, products: Array | float, best: float, element: float) -> Array:
        flops = 2.0 * m * n * k * products
        shape = _saturate(m, HALF_ROWS) * _saturate(n, HALF_COLUMNS) * _saturate(k, HALF_DEPTH)
        compute_s = flops / (best * np.maximum(shape, 1e-6))
        moved = products * (m * k + k * n + m * n) * element
        return np.where(flops > 0, np.maximum(compute_s, moved / self.memory_bytes_per_s) + LAUNCH_S, 0.0)


def _saturate(x: Array, half: float) -> Array:
    return x / (x + half)


def sustained_fraction(device: Device) -> float:
    """Matmul rate inside a training step over the rate of a lone matmul: the device's own, else its architecture's."""
    known = architectures().sustained_matmul_fraction
    return known.values.get(device.name, known.values.get(device.architecture, known.other or 1.0))


def matmul_fraction(device: Device, precision: str) -> float:
    """Best rate of a lone matmul over the peak of a precision: measured, or from what is nearest to a measurement.

    Systolic arrays have one rate.  Tensor cores run fp16 and bf16 at the same rate; what holds a device back in bf16
    (power, clocks) holds it back in fp8 as well, a little more (``fp8_over_bf16_matmul_fraction``).
    """
    known, measured = architectures(), device.achievable_matmul_fraction
    systolic = known.systolic_matmul_fraction.values.get(device.architecture)
    if systolic is not None:
        return systolic
    if precision in measured:
        return measured[precision]
    if precision == "fp32":
        return VECTOR_FRACTION
    wide = measured.get("bf16")
    if wide is None or precision not in {"fp16", "fp8"}:
        return DEFAULT_MATMUL_FRACTION
    ratios = known.fp8_over_bf16_matmul_fraction
    return wide if precision == "fp16" else wide * ratios.values.get(device.architecture, ratios.other or 1.0)


def device_rates(device: Device, precision: str) -> DeviceRates:
    """Build the rates of ``device`` for ``precision`` (fp8, fp4: matmuls only, attention stays 16 bit).

    Raises ProfileMissing when the catalogue has no peak for the precision: a throughput is never invented.
    """
    wide = "bf16" if precision in NARROW else precision
    peaks = device.peak_flops_per_s
    base = peaks.get(wide)
    if base is None and precision in NARROW:
        base = peaks.get("fp16")
    peak = peaks.get(precision)
    if base is None or peak is None:
        missing = precision if peak is None else wide
        raise ProfileMissing(
            f"{device.name} has no {missing} peak rate",
            where=f"device {device.name} /peak_flops_per_s/{missing}",
            hint=f"choose among {', '.join(sorted(peaks)) or 'none known'}, or add the rate to the device file",
        )
    systolic = device.architecture in architectures().systolic_matmul_fraction.values
    sustained = 1.0 if precision == "fp32" or systolic else sustained_fraction(device)
    return DeviceRates(
        matmul_flops_per_s=peak * matmul_fraction(device, precision) * sustained,
        wide_matmul_flops_per_s=base * matmul_fraction(device, wide) * sustained,
        wide_flops_per_s=base,
        # Operators count 16-bit elements: wider ones take their bytes from the bandwidth.
        memory_bytes_per_s=device.memory_bandwidth_bytes_per_s
        * MEMORY_FRACTION
        * 2.0
        / WIDE_ELEMENT_BYTES.get(wide, 2.0),
        # Two operands of a product are narrow, its result is not.
        element_bytes=0.5 * (NARROW_BYTES.get(precision, 2.0) + 2.0),
        casts=precision in NARROW,
        narrow_bytes=NARROW_BYTES.get(precision, 1.0),
        vector_flops_per_s=peaks.get("fp32", 0.0),
    )
