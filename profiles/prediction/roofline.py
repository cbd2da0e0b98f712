"""The roofline of an operator on a device: the unit in which measured times are interpolated.

    roofline = max(FLOPs / peak, bytes moved / memory bandwidth) + launch

Dense FLOPs: matmul 2 m n k; causal attention 2 b h s^2 d (half of 4 b h s^2 d).  ``launch`` is the floor of a kernel
(3 us: AIConfigurator's own empirical constant); it keeps utilisation smooth for small shapes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiles.arrays import Array
from profiles.device import Device

LAUNCH_S = 3e-6
_WIDTH_BYTES = {"fp64": 8.0, "fp32": 4.0, "tf32": 4.0, "fp16": 2.0, "bf16": 2.0}
_PEAK_OF = {"fp16": ("fp16", "bf16"), "bf16": ("bf16", "fp16"), "fp32": ("fp32",), "tf32": ("tf32", "fp32")}


@dataclass(frozen=True, slots=True)
class Roofline:
    """Peak rate, memory bandwidth and element width of one device at one number format."""

    flops_per_s: float
    bytes_per_s: float
    width_bytes: float

    def matmul_s(self, m: Array, n: Array, k: Array, groups: Array | float = 1.0) -> Array:
        """Seconds of ``groups`` products [m, k] x [k, n]; the result is written in 16 bit."""
        moved = groups * ((m * k + k * n) * self.width_bytes + m * n * max(self.width_bytes, 2.0))
        return self._bound(2.0 * m * n * k * groups, moved)

    def attention_s(self, batch: Array, query: Array, heads: Array, kv_heads: Array, head_dim: Array | float) -> Array:
        """Seconds of causal fused attention over whole sequences, forward."""
        moved = 2.0 * batch * query * head_dim * (heads + kv_heads) * self.width_bytes
        return self._bound(2.0 * batch * heads * query**2 * head_dim, moved)

    def moved_s(self, moved_bytes: Array) -> Array:
        """Seconds of a memory-bound operator."""
        return self._bound(np.zeros_like(moved_bytes), moved_bytes)

    def _bound(self, flops: Array, moved: Array) -> Array:
        bound: Array = np.maximum(flops / self.flops_per_s, moved / self.bytes_per_s) + LAUNCH_S
        return bound


def roofline_of(device: Device, dtype: str) -> Roofline | None:
    """The roofline of a catalogue device at a number format; None where it has no peak for it."""
    peaks = device.peak_flops_per_s
    family = "fp8" if dtype.startswith("fp8") else "fp4" if "fp4" in dtype else dtype
    names = _PEAK_OF.get(family, (family,))
    peak = next((peaks[name] for name in names if name in peaks), None)
    if peak is None:
        return None
    width = _WIDTH_BYTES.get(family, 0.5 if family == "fp4" else 1.0)
    return Roofline(peak, device.memory_bandwidth_bytes_per_s, width)
