"""What can be asked of a device's measured serving kernels.

All sizes may be arrays and broadcast against each other; all answers are seconds, as arrays of the broadcast shape.
A table answers inside its measured sizes by interpolation, outside by the roofline of the device scaled to the nearest
measured sizes; where it has no table of a kernel at all, by the roofline with the efficiency of the nearest kernel.
``measured`` says which of these an answer was.  Collectives between nodes were not measured: ``collective_s`` is inside
a node or scale-up domain, and what crosses nodes is the fabric's (``profiles.fabric``, ``profiles.link_rates``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Seconds = NDArray[np.float64]
Basis = Literal["measured", "extrapolated", "roofline"]
Exchange = Literal["gathered", "normal", "low_latency"]
"""All tokens to all devices, or each to its experts' devices by DeepEP's normal (prompts) or low-latency kernels."""
CollectiveName = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"]


@dataclass(frozen=True, slots=True)
class AttentionHeads:
    """The heads of one device, of one layer."""

    num_heads: int
    num_kv_heads: int
    head_dim: int
    window: int | None = None
    """Tokens that a token sees at most; none = all before it."""


@dataclass(frozen=True, slots=True)
class Experts:
    """The routed experts of one layer, and how devices share them."""

    hidden_size: int
    ffn_hidden_size: int
    experts_per_token: int
    num_experts: int
    etp: int
    ep: int


class KernelTimes(Protocol):
    """Kernels of one engine on one device type, as one release of the engine runs them in CUDA graphs."""

    device: str
    """Name in the catalogue of devices."""
    engine: str
    """vllm, sglang or tensorrt-llm."""

    def matmul_s(self, rows: ArrayLike, columns: ArrayLike, inner: ArrayLike, number_format: str) -> Seconds:
        """``[rows, inner] @ [inner, columns]``, weights in this format (``planner.serving.words``)."""
        ...

    def prefill_attention_s(
        self,
        batch: ArrayLike,
        new_tokens: ArrayLike,
        cached_tokens: ArrayLike,
        heads: AttentionHeads,
        cache_format: str,
    ) -> Seconds:
        """Causal attention of ``new_tokens`` of each of ``batch`` prompts after ``cached_tokens``, one layer."""
        ...

    def decode_attention_s(
        self,
        batch: ArrayLike,
        cached_tokens: ArrayLike,
        heads: AttentionHeads,
        cache_format: str,
    ) -> Seconds:
        """One new token of each of ``batch`` requests over ``cached_tokens``, one layer."""
        ...

    def latent_prefill_s(
        self, batch: ArrayLike, new_tokens: ArrayLike, cached_tokens: ArrayLike, num_heads: int, cache_format: str
    ) -> Seconds:
        """Multi-head latent attention of prompts (DeepSeek), one layer, without its projections."""
        ...

    def latent_decode_s(self, batch: ArrayLike, cached_tokens: ArrayLike, num_heads: int, cache_format: str) -> Seconds:
        """Multi-head latent attention of one new token a request, absorbed form, with its two batched matmuls."""
        ...

    def experts_s(
        self,
        tokens: ArrayLike,
        experts: Experts,
        number_format: str,
        skew: float = 1.01,
        exchange: Exchange = "gathered",
    ) -> Seconds:
        """Routed experts of one layer on the device with most tokens: grouped matmuls, activation and sort.

        ``tokens``: tokens of all devices that share the experts.  ``skew``: exponent of the power law of the routing;
        0 = balanced.  ``exchange``: how tokens came to the device.  Where all are gathered, vLLM's and SGLang's kernels
        go through all of them, so that they are slow with many devices; DeepEP's bring only the device's own.
        """
        ...

    def collective_s(self, operation: CollectiveName, num_bytes: ArrayLike, num_devices: int) -> Seconds:
        """One collective in a node or a scale-up domain, with the engine's own kernel where it has one.

        ``num_bytes``: the whole tensor (all_reduce: of each device; all_gather: after; reduce_scatter: before;
        all_to_all: what one device sends in all; send_recv: what one device sends).
        """
        ...

    def expert_exchange_s(
        self,
        phase: Literal["dispatch", "combine"],
        tokens: ArrayLike,
        experts: Experts,
        devices_per_node: int,
        *,
        low_latency: bool,
    ) -> Seconds:
        """Routed tokens of one device to their experts, or back (DeepEP and the like)."""
        ...

    def pass_over_s(self, num_bytes: ArrayLike) -> Seconds:
        """A point-wise kernel that reads and writes so many bytes: norms, activations, casts."""
        ...

    def measured(self, kernel: str, number_format: str = "") -> Basis:
        """On what the answers for one kernel (the method's name) rest.

        ``measured``: a table of this engine on this device; ``extrapolated``: the device's table of another engine, or
        of another number format; ``roofline``: efficiencies of another device.  ``number_format`` is the weights' or
        the cache's; collectives are judged by all_reduce, the exchange by dispatch.
        """
        ...
