"""The least time that a kernel can take on a device: its arithmetic or its bytes, whichever is longer, and a launch.

    time = max(operations / peak rate, bytes / memory bandwidth) + 3 us

Measured times are kept relative to these, and kernels without measurements take them times an efficiency.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from profiles.device import Device

LAUNCH_S = 3e-6
"""AIConfigurator's ``mem_empirical_constant_latency`` of all its systems (0.12.0)."""
WEIGHT_BYTES = {"bf16": 2.0, "fp8": 1.0, "fp8_block": 1.0, "nvfp4": 0.5625, "mxfp4": 0.53125, "int8": 1.0, "int4": 0.52}
ACTIVATION_BYTES = {"fp8": 1.0, "fp8_block": 1.0, "nvfp4": 0.5625}
"""Of matmul inputs; the others read 16 bit."""
CACHE_BYTES = {"bf16": 2.0, "fp8": 1.0, "nvfp4": 0.5625}
_PEAKS = {"fp8": ("fp8",), "fp8_block": ("fp8",), "nvfp4": ("fp4",)}
LATENT_KEY, LATENT_VALUE, LATENT_ROPE, LATENT_RANK = 128, 128, 64, 512
"""Widths of DeepSeek's latent attention: a head's key and value, the rotated part, keys and values compressed."""


@dataclass(frozen=True, slots=True)
class Links:
    """How a device reaches others."""

    link_bytes_per_s: float
    """One direction, to the other devices of a node."""
    node_link_bytes_per_s: float
    """One direction, of one device to other nodes."""
    devices_per_node: int


@dataclass(frozen=True, slots=True)
class Rates(Links):
    """What a device can do at most."""

    peak_flops_per_s: dict[str, float]
    memory_bytes_per_s: float

    def peak(self, number_format: str) -> float:
        """Operations a second in a format; formats that the device lacks are computed in 16 bit."""
        for name in (*_PEAKS.get(number_format, ()), "bf16", "fp16", "fp32"):
            if name in self.peak_flops_per_s:
                return self.peak_flops_per_s[name]
        return max(self.peak_flops_per_s.values())

    def time_s(self, operations: Any, num_bytes: Any, number_format: str) -> Any:
        """The formula of the file's head."""
        return np.maximum(operations / self.peak(number_format), num_bytes / self.memory_bytes_per_s) + LAUNCH_S


def rates_of(device: Device, links: Links) -> Rates:
    """Rates of a catalogue device with these links."""
    return Rates(
        **asdict(links),
        peak_flops_per_s=dict(device.peak_flops_per_s),
        memory_bytes_per_s=device.memory_bandwidth_bytes_per_s,
    )


def matmul_s(rates: Rates, rows: Any, columns: Any, inner: Any, number_format: str) -> Any:
    """One matmul with its weights read once."""
    read = rows * inner * ACTIVATION_BYTES.get(number_format, 2.0) + columns * inner * WEIGHT_BYTES[number_format]
    return rates.time_s(2.0 * rows * columns * inner, read + 2.0 * rows * columns, number_format)


Heads = tuple[Any, Any, Any, Any]
"""Query heads, key heads, width, window (infinite = none)."""


def seen_pairs(new: Any, cached: Any, window: Any) -> Any:
    """Pairs of a new token and a token that it sees (itself among them), with a window of so many tokens."""
    if isinstance(window, float) and window == np.inf:
        return new * cached + new * (new + 1.0) / 2.0
    # Tokens whose past is longer than the window see exactly the window.
    short = np.clip(window - cached, 0.0, new)
    rest = new - short
    return short * cached + short * (short + 1.0) / 2.0 + rest * np.where(rest > 0, window, 0.0)


def prefill_s(rates: Rates, batch: Any, new: Any, cached: Any, heads: Heads, kv: str) -> Any:
    """Causal attention."""
    num_heads, kv_heads, width, window = heads
    past = np.minimum(cached, window)
    moved = batch * width * (4.0 * new * num_heads + 2.0 * (new + past) * kv_heads * CACHE_BYTES[kv])
    return rates.time_s(4.0 * batch * num_heads * width * seen_pairs(new, cached, window), moved, "bf16")


def decode_s(rates: Rates, batch: Any, cached: Any, heads: Heads, kv: str) -> Any:
    """One new token of each request."""
    num_heads, kv_heads, width, window = heads
    keys = np.minimum(cached + 1.0, window)
    moved = batch * width * (2.0 * keys * kv_heads * CACHE_BYTES[kv] + 4.0 * num_heads)
    return rates.time_s(4.0 * batch * num_heads * width * keys, moved, "bf16")


def latent_prefill_s(rates: Rates, batch: Any, new: Any, cached: Any, num_heads: int) -> Any:
    """Latent attention with expanded keys and values."""
    width = LATENT_KEY + LATENT_ROPE + LATENT_VALUE
    moved = 2.0 * batch * num_heads * width * (2.0 * new + cached)
    return rates.time_s(2.0 * batch * num_heads * width * seen_pairs(new, cached, np.inf), moved, "bf16")


def latent_decode_s(rates: Rates, batch: Any, cached: Any, num_heads: int, kv: str) -> Any:
    """Latent attention on the compressed keys and values, without the two batched matmuls."""
    width, keys = LATENT_RANK + LATENT_ROPE, cached + 1.0
    moved = batch * (keys * width * CACHE_BYTES[kv] + 2.0 * num_heads * (width + LATENT_RANK))
    return rates.time_s(2.0 * batch * num_heads * keys * (width + LATENT_RANK), moved, "bf16")


def latent_matmul_s(rates: Rates, tokens: Any, num_heads: Any) -> Any:
    """One of the two batched matmuls between a head's width and the compressed width."""
    size = num_heads * LATENT_KEY * LATENT_RANK
    moved = 2.0 * (size + tokens * num_heads * (LATENT_KEY + LATENT_RANK))
    return rates.time_s(2.0 * tokens * size, moved, "bf16")


def experts_s(rates: Rates, tokens: Any, shape: dict[str, Any], number_format: str) -> Any:
    """Both grouped matmuls (gate and up, down) of the experts of one device under balanced routing.

    ``shape``: hidden; ffn and experts of one device; topk; ep.
    """
    pairs = tokens * shape["topk"] / shape["ep"]
    # Experts that no token asks for are not read.
    asked = np.minimum(shape["topk"] / (shape["experts"] * shape["ep"]), 1.0 - 1e-9)
    used = -shape["experts"] * np.expm1(tokens * np.log1p(-asked))
    weights = 3.0 * shape["hidden"] * shape["ffn"]
    act = ACTIVATION_BYTES.get(number_format, 2.0)
    moved = used * weights * WEIGHT_BYTES[number_format]
    moved = moved + pairs * (shape["hidden"] * (act + 2.0) + shape["ffn"] * (4.0 + act))
    return rates.time_s(2.0 * pairs * weights, moved, number_format)


def collective_s(rates: Rates, operation: str, num_bytes: Any, num_devices: Any) -> Any:
    """Ring over the links of a node."""
    if operation == "send_recv":
        return num_bytes / rates.link_bytes_per_s + LAUNCH_S
    passes = 2.0 if operation == "all_reduce" else 1.0
    return passes * num_bytes * (num_devices - 1.0) / num_devices / rates.link_bytes_per_s + LAUNCH_S


def exchange_s(rates: Rates, phase: str, values: Any, devices: Any, nodes: Any) -> Any:
    """Values of one device's routed tokens to their experts (8 bit) or back (16 bit), inside and between nodes."""
    moved = values * (1.0 if phase == "dispatch" else 2.0)
    inside = moved * (devices - 1.0) / devices / rates.link_bytes_per_s
    between = moved * (nodes - 1.0) / nodes / rates.node_link_bytes_per_s
    return np.maximum(inside, between) + LAUNCH_S


def pass_over_s(rates: Rates, num_bytes: Any) -> Any:
    """A kernel that only moves bytes."""
    return num_bytes / rates.memory_bytes_per_s + LAUNCH_S
