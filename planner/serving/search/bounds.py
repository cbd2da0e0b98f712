"""What no instance of a layout can beat: requests a second, by the roofline of its devices.

In a second a device multiplies at most ``peak`` FLOPs and moves at most ``bandwidth`` bytes; host time, collectives,
kernels below their peak and pipeline bubbles only take more.  With ``B`` requests in decode on ``n`` devices, ``pp``
stages each of ``B / pp`` requests at a time, one token of all of them takes at least

    t(B) = pp * (weights of a stage + keys and values of B / pp requests) / bandwidth            a device's

so an instance completes at most ``B / (output tokens * t(B))`` requests a second, and a token comes at most every
``t(B) / accepted`` seconds.  ``B`` is limited by memory (weights and keys and values in the device) and by the promise
of TPOT, which ``t(B)`` must keep.  The FLOPs of a request limit the rate too: ``n / seconds of its matmuls``.

Weights that a step reads: all dense ones, and of the experts ``distinct_experts``.  A shard holds at least one head.
A prompt takes at least ``seconds of its matmuls / devices of a stage``, in ``pp`` stages one after another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.serving.layout import Formats
from planner.serving.search.amounts import FloatArray, ModelAmounts, RequestAmounts, distinct_experts
from planner.serving.search.layouts import Layouts
from planner.serving.words import CACHE_BYTES, WEIGHT_BYTES, Role, WeightFormat
from profiles.device import Device

BATCHES = np.unique(np.round(2.0 ** np.arange(0, 14.01, 0.5)))
"""Requests in decode at which the bound is evaluated; between two of them the larger one's holds (monotone)."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of every row of layouts: what they allow at each of ``BATCHES``."""

    devices: FloatArray
    compute_rate: FloatArray
    """Requests a second by matmuls, shape (rows)."""
    ttft_s: FloatArray
    """A mean prompt alone takes at least, shape (rows)."""
    token_s: FloatArray
    """Seconds between two tokens of a request at least, shape (rows, batches); infinite where memory ends."""
    decode_rate: FloatArray
    """Requests a second by memory traffic, shape (rows, batches)."""
    fits: FloatArray
    """Whether the weights and one request have room (1 or 0), shape (rows)."""

    def rate(
        self,
        role: Role,
        ttft_s: float | None = None,
        tpot_s: float | None = None,
        most_running: FloatArray | float = np.inf,
    ) -> FloatArray:
        """Requests a second of each row's instance at most, under promises and a number of requests in flight."""
        found = np.where(self.fits > 0, self.compute_rate, 0.0)
        if ttft_s is not None and role != "decode":
            found = np.where(self.ttft_s > ttft_s, 0.0, found)
        if role == "prefill":
            return found
        # A batch between two of the grid: the larger one's rate, if the smaller one keeps the promise.
        allowed = np.isfinite(self.token_s)
        if tpot_s is not None:
            allowed &= self.token_s <= tpot_s
        allowed &= BATCHES[None, :] <= np.reshape(most_running, (-1, 1))
        last = allowed.sum(axis=1)
        rows = np.arange(len(last))
        upper = np.maximum.accumulate(self.decode_rate, axis=1)[rows, np.minimum(last, len(BATCHES) - 1)]
        return np.where(last > 0, np.minimum(found, upper), 0.0)


def bounds_of(  # noqa: PLR0917  # what a bound is made of
    amounts: ModelAmounts,
    request: RequestAmounts,
    device: Device,
    formats: Formats,
    layouts: Layouts,
    role: Role,
    accepted: float = 1.0,
) -> Bounds:
    """The bounds of instances with this role; ``accepted``: tokens that a step gives at most (speculation)."""
    tp, pp, dcp = (layouts.column(name).astype(float) for name in ("tp", "pp", "dcp"))
    stage, devices = layouts.stage_devices.astype(float), layouts.devices.astype(float)
    dense_bytes, expert_bytes = WEIGHT_BYTES[formats.weights], WEIGHT_BYTES[formats.of_experts]
    # An instance multiplies with all its devices at once only where several requests fill its stages.
    dense = (amounts.attention_weights / tp + amounts.other_weights / stage) * dense_bytes / pp
    expert = amounts.expert_weights * expert_bytes / stage / pp
    spare = layouts.redundant / max(amounts.num_experts, 1)
    room = device.memory_bytes - dense - expert * (1.0 + spare)
    shards = np.minimum(np.maximum(tp / dcp, 1.0), amounts.kv_heads)
    token_bytes = amounts.cache_values_per_token * CACHE_BYTES[formats.kv_cache] / pp / shards / dcp
    groups = layouts.column("attention_dp").astype(float) * layouts.column("cp")
    kept = token_bytes * request.context_tokens / groups
    most = np.where(kept > 0, room / np.maximum(kept, 1e-9), np.inf)
    prompt_s, token_flops_s = _matmul_seconds(amounts, request, device, formats)
    if role == "prefill":
        rate = devices / max(prompt_s, 1e-30)
        empty = np.zeros((len(tp), 0))
        return Bounds(devices, rate, prompt_s / stage, empty, empty, (room > 0).astype(float))
    batches = BATCHES[None, :]
    touched = distinct_experts(amounts, BATCHES) / max(amounts.num_experts, 1)
    # A stage reads its weights once for each of the pp parts of a batch; a part of B / pp meets at least what 1 meets.
    parts = np.minimum(batches, pp[:, None])
    met = np.interp((batches / pp[:, None]).ravel(), BATCHES, touched).reshape(len(tp), -1)
    step = (parts * (dense[:, None] + expert[:, None] * met) + batches * kept[:, None]) / (
        device.memory_bandwidth_bytes_per_s
    )
    token_s = np.where(batches <= np.maximum(most, 0.0)[:, None], step / accepted, np.inf)
    rate = batches / (request.output_tokens * step / accepted)
    # A token that speculation accepts was multiplied too.
    seconds = token_flops_s * request.output_tokens + (prompt_s if role == "aggregated" else 0.0)
    ttft = prompt_s / stage if role == "aggregated" else np.zeros_like(stage)
    return Bounds(devices, devices / max(seconds, 1e-30), ttft, token_s, rate, (most >= 1).astype(float))


def _matmul_seconds(
    amounts: ModelAmounts, request: RequestAmounts, device: Device, formats: Formats
) -> tuple[float, float]:
    """Device-seconds of the matmuls of a prompt, and of one token in decode, at the peak of the device."""
    dense, expert = peak(device, formats.weights), peak(device, formats.of_experts)
    active = amounts.expert_weights * amounts.experts_per_token / max(amounts.num_experts, 1)
    a_token = 2.0 * ((amounts.attention_weights + amounts.other_weights) / dense + active / expert)
    sixteen = max(device.peak_flops_per_s.get(name, 0.0) for name in ("bf16", "fp16"))
    eight = device.peak_flops_per_s.get("fp8", sixteen) if formats.kv_cache != "bf16" else sixteen
    # The head runs for the last token of a prompt alone.
    of_prompt = (a_token - 2.0 * amounts.head_weights / dense) * request.new_input_tokens
    prompt = of_prompt + amounts.attention_flops_per_pair * request.prompt_pairs / eight
    return prompt, a_token


def peak(device: Device, weights: WeightFormat) -> float:
    """FLOP/s of matmuls with weights of a format: that of 16 bit where weights are only stored in it."""
    peaks = device.peak_flops_per_s
    sixteen = max(peaks.get("bf16", 0.0), peaks.get("fp16", 0.0)) or max(peaks.values())
    if weights in {"fp8", "fp8_block"}:
        return max(peaks.get("fp8", 0.0), sixteen)
    if weights in {"nvfp4", "mxfp4"}:
        return max(peaks.get("fp4", 0.0), peaks.get("fp8", 0.0), sixteen)
    return max(peaks.get("int8", 0.0), sixteen) if weights == "int8" else sixteen
