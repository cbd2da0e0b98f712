"""What no instance of a layout can beat: requests a second, by the roofline of every part of its steps.

Predictions add up the parts of a step on a device, and none of them is below its roofline: a matmul takes at least its
FLOPs at the peak and its weights at the memory bandwidth, attention in decode its keys and values at the bandwidth (the
latent kind also its FLOPs), a collective over tp its bytes at the rate of the scale-up links.  With ``B`` requests in
decode on ``n`` devices in ``pp`` stages, each of ``min(B, pp)`` parts of a batch at a time,

    step(B)   = matmuls + attention + collectives of all parts on one device, + host time where pp = 1
    prompt(1) = the same of one prompt, as device-seconds over n

a request in decode gets a token at most every ``step(B)`` seconds, and an instance completes at most
``B / (output tokens * step(B) + B * prompt)`` requests a second (aggregated), or without ``prompt`` (decode).  ``B`` is
limited by memory and by the promise of TPOT.  A prefill instance answers at most ``1 / prompt``.

Weights that a step reads: all dense ones, and of the experts ``distinct_experts``.  A shard holds at least one head.
What is left out only takes more: bubbles, pipelines' hand-overs, exchanges of experts, kernels below their peak.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.serving.layout import Formats
from planner.serving.search.amounts import FloatArray, ModelAmounts, RequestAmounts, distinct_experts
from planner.serving.search.layouts import Layouts
from planner.serving.words import CACHE_BYTES, WEIGHT_BYTES, Role, WeightFormat
from profiles.cluster import Pool
from profiles.device import Device

BATCHES = np.unique(np.round(2.0 ** np.arange(0, 14.01, 0.5)))
"""Requests in decode at which the bound is evaluated; between two of them the larger one's holds (monotone)."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of every row of layouts: what they allow at each of ``BATCHES``."""

    prompt_rate: FloatArray
    """Prompts a second, shape (rows)."""
    ttft_s: FloatArray
    """A mean prompt alone takes at least, shape (rows)."""
    token_s: FloatArray
    """Seconds between two tokens of a request at least, shape (rows, batches); infinite where memory ends."""
    rate_at: FloatArray
    """Requests a second with so many in decode, shape (rows, batches)."""
    fits: FloatArray
    """Whether the weights and one request have room (1 or 0), shape (rows)."""

    def rate(
        self,
        role: Role,
        ttft_s: float | None = None,
        tpot_s: float | None = None,
        most_running: float = np.inf,
    ) -> FloatArray:
        """Requests a second of each row's instance at most, under promises and a number of requests in flight."""
        fits = self.fits > 0
        if ttft_s is not None and role != "decode":
            fits = fits & (self.ttft_s <= ttft_s)
        if role == "prefill":
            return np.where(fits, self.prompt_rate, 0.0)
        # A batch between two of the grid: the larger one's rate, if the smaller one keeps the promise.
        allowed = np.isfinite(self.token_s) & (BATCHES[None, :] <= most_running)
        if tpot_s is not None:
            allowed &= self.token_s <= tpot_s
        last = allowed.sum(axis=1)
        upper = np.maximum.accumulate(self.rate_at, axis=1)
        found = upper[np.arange(len(last)), np.minimum(last, len(BATCHES) - 1)]
        return np.where(fits & (last > 0), found, 0.0)


@dataclass(frozen=True, slots=True)
class Shape:
    """What bounds depend on besides layouts."""

    amounts: ModelAmounts
    request: RequestAmounts
    pool: Pool
    formats: Formats
    host_s: float = 0.0
    """Seconds of an iteration that no device work hides, at least."""
    accepted: float = 1.0
    """Tokens that a step gives at most (speculation)."""


def bounds_of(shape: Shape, layouts: Layouts, role: Role) -> Bounds:
    """The bounds of instances with this role."""
    amounts, formats, device = shape.amounts, shape.formats, shape.pool.device
    tp, pp, dcp = (layouts.column(name).astype(float) for name in ("tp", "pp", "dcp"))
    stage, devices = layouts.stage_devices.astype(float), layouts.devices.astype(float)
    dense = (amounts.attention_weights / tp + amounts.other_weights / stage) * WEIGHT_BYTES[formats.weights] / pp
    expert = amounts.expert_weights * WEIGHT_BYTES[formats.of_experts] / devices
    room = device.memory_bytes - dense - expert * (1.0 + layouts.redundant / max(amounts.num_experts, 1))
    prompt_s = _prompt_seconds(shape)
    link_s = _link_seconds(shape, tp, layouts)
    prompt = prompt_s / devices + link_s * shape.request.new_input_tokens / pp
    alone = prompt_s / stage + link_s * shape.request.new_input_tokens + shape.host_s
    if role == "prefill":
        empty = np.zeros((len(tp), 0))
        return Bounds(1.0 / np.maximum(prompt, 1e-30), alone, empty, empty, (room > 0).astype(float))
    shards = np.minimum(np.maximum(tp / dcp, 1.0), amounts.kv_heads) * dcp
    groups = layouts.column("attention_dp").astype(float) * layouts.column("cp")
    kept = amounts.cache_values_per_token * CACHE_BYTES[formats.kv_cache] / pp / shards
    kept = kept * shape.request.context_tokens / groups
    most = np.where(kept > 0, np.maximum(room, 0.0) / np.maximum(kept, 1e-9), np.where(room > 0, np.inf, 0.0))
    step = _step_seconds(shape, layouts, dense, expert, kept) + BATCHES[None, :] * (link_s / pp)[:, None]
    step = step + np.where(pp == 1, shape.host_s, 0.0)[:, None]
    step /= shape.accepted
    rounds = shape.request.output_tokens * step
    if role == "aggregated":
        rounds = rounds + BATCHES[None, :] * prompt[:, None]
    token_s = np.where(BATCHES[None, :] <= most[:, None], step, np.inf)
    ttft = alone if role == "aggregated" else np.zeros_like(stage)
    return Bounds(1.0 / np.maximum(prompt, 1e-30), ttft, token_s, BATCHES[None, :] / rounds, (most >= 1).astype(float))


def _step_seconds(
    shape: Shape, layouts: Layouts, dense_bytes: FloatArray, expert_bytes: FloatArray, kept: FloatArray
) -> FloatArray:
    """Matmuls and attention of one token of all requests on a device, shape (rows, batches)."""
    amounts, device = shape.amounts, shape.pool.device
    batches, pp = BATCHES[None, :], layouts.column("pp").astype(float)[:, None]
    devices = layouts.devices.astype(float)[:, None]
    bandwidth = device.memory_bandwidth_bytes_per_s
    touched = distinct_experts(amounts, BATCHES) / max(amounts.num_experts, 1)
    parts = np.minimum(batches, pp)
    met = np.interp((batches / pp).ravel(), BATCHES, touched).reshape(len(devices), len(BATCHES))
    dense_flops, expert_flops = _flops_of_a_token(amounts)
    dense = np.maximum(
        parts * dense_bytes[:, None] / bandwidth, batches * dense_flops / peak(device, shape.formats.weights) / devices
    )
    experts = np.maximum(
        parts * expert_bytes[:, None] * met / bandwidth,
        batches * expert_flops / peak(device, shape.formats.of_experts) / devices,
    )
    attention = batches * kept[:, None] / bandwidth
    if amounts.latent_flops_per_pair:
        flops = amounts.latent_flops_per_pair * shape.request.context_tokens
        attention = np.maximum(attention, batches * flops / _attention_peak(shape) / devices)
    found: FloatArray = dense + experts + attention
    return found


def _prompt_seconds(shape: Shape) -> float:
    """Device-seconds of a prompt's matmuls and attention at the peak; the head runs for its last token alone."""
    amounts, request, device = shape.amounts, shape.request, shape.pool.device
    dense, expert = _flops_of_a_token(amounts)
    matmuls = (dense - 2.0 * amounts.head_weights) / peak(device, shape.formats.weights)
    matmuls += expert / peak(device, shape.formats.of_experts)
    attention = amounts.attention_flops_per_pair * request.prompt_pairs / _attention_peak(shape)
    return matmuls * request.new_input_tokens + attention


def _link_seconds(shape: Shape, tp: FloatArray, layouts: Layouts) -> FloatArray:
    """Seconds of a token in the collectives over tp at the links' rate, of all layers.

    Each layer sums the output of its mixer over tp (a switch that adds moves the data once), in 16 bit; a device has
    the tokens of its own attention group.
    """
    groups = layouts.column("attention_dp") * layouts.column("cp")
    scale_up = shape.pool.scale_up
    per_token = shape.amounts.residual_values * 2.0 / scale_up.bandwidth_bytes_per_s
    inside = np.minimum(tp, scale_up.domain_size)
    found: FloatArray = np.where(inside > 1, per_token * (inside - 1) / inside, 0.0) / groups
    return found


def _flops_of_a_token(amounts: ModelAmounts) -> tuple[float, float]:
    """FLOPs of dense matmuls and of the chosen experts, unsharded."""
    active = amounts.expert_weights * amounts.experts_per_token / max(amounts.num_experts, 1)
    return 2.0 * (amounts.attention_weights + amounts.other_weights), 2.0 * active


def _attention_peak(shape: Shape) -> float:
    device = shape.pool.device
    return peak(device, "bf16" if shape.formats.kv_cache == "bf16" else "fp8")


def peak(device: Device, weights: WeightFormat) -> float:
    """FLOP/s of matmuls with weights of a format: that of 16 bit where weights are only stored in it."""
    peaks = device.peak_flops_per_s
    sixteen = max(peaks.get("bf16", 0.0), peaks.get("fp16", 0.0)) or max(peaks.values())
    if weights in {"fp8", "fp8_block"}:
        return max(peaks.get("fp8", 0.0), sixteen)
    if weights in {"nvfp4", "mxfp4"}:
        return max(peaks.get("fp4", 0.0), peaks.get("fp8", 0.0), sixteen)
    return max(peaks.get("int8", 0.0), sixteen) if weights == "int8" else sixteen
