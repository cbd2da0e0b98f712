"""How an engine schedules and reserves memory: the type, whose values stand in the engines' rooms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Policy = Literal["prefill_first", "decode_first", "mixed"]
"""``prefill_first``: waiting prompts run in iterations of their own before decoding goes on (SGLang without mixed
chunks).  ``decode_first``: running requests get their token first, prompts fill what the token budget leaves, in the
same iteration (vLLM's chunked prefill).  ``mixed``: as decode_first, whole prompts only (TensorRT-LLM without
chunks)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Defaults of an engine on devices with at least ``device_bytes``."""

    device_bytes: float
    max_num_batched_tokens: int
    max_num_sequences: int
    graph_sequences: int = 512
    """Largest batch of decoding requests whose launch is captured."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How one release of an engine schedules and reserves; every value has its source beside it in the room.

    Room for keys and values of a device: ``fraction x all - weights - reserves`` or, ``fraction_of_free``,
    ``fraction x (all - weights - reserves)``.
    """

    policy: Policy
    tiers: tuple[Limits, ...]
    """By device memory, the largest first; the last holds for every device."""
    limits_a_rank: bool
    """Whether both limits are of each attention data-parallel rank."""
    memory_fraction: float
    fraction_of_free: bool
    """Whether ``memory_fraction`` is of what the loaded weights leave (TensorRT-LLM) or of all memory (vLLM,
    SGLang)."""
    fraction_without_reserves: bool
    """Whether a fraction that is asked for covers weights and cache only, reserves being what it leaves (SGLang)."""
    cache_block_tokens: int
    host_s: float
    """Seconds an iteration of the scheduler, the sampler and the launch take that no device work hides."""
    host_s_a_sequence: float
    """... and more for each running request."""
    reserved_bytes: float
    """Bytes of a device that the engine keeps for its context, graphs and communication."""
    reserved_bytes_a_token: float
    """... and more for each token of ``max_num_batched_tokens``."""
    reserved_bytes_a_device: float
    """... and more for each device of the instance."""
    reserved_bytes_a_graph_sequence: float
    """... and more for each request of the largest captured batch."""
    reserved_bytes_at_least: float
    """... of which these at least."""
    activation_widths: float
    """Tensors of the hidden width, 16 bit, that an iteration's tokens hold at its peak, beside those reserves."""
    held_output: float = 1.0
    """Part of its output that a request's room is kept for while it runs: all where nothing is ever evicted
    (TensorRT-LLM), the mean half and some slack where requests grow into free blocks."""
    wait_iterations: float = 1.0
    """Decoding iterations between a request's arrival or its prompt's end and what is seen of it."""
    prompt_factor: float = 1.0
    """Measured over looked-up time of iterations that read prompts."""
    decode_factor: float = 1.0
    """... and of iterations that decode."""
    request_s: float = 0.0
    """Seconds from a request's arrival to its scheduling, and from its first token to the client."""
    request_s_a_layer: float = 0.0
    """... and more for each layer: launches of a prompt's pass, which no graph holds, one kernel after the other."""

    likely_ttft: tuple[float, float] = (0.4, 2.5)
    """Measured over predicted, of which 9 in 10 lie between these two..."""
    likely_tpot: tuple[float, float] = (0.7, 1.4)
    likely_throughput: tuple[float, float] = (0.7, 1.4)

    def limits(self, device_bytes: float) -> Limits:
        """Defaults on a device."""
        return next((tier for tier in self.tiers if device_bytes >= tier.device_bytes), self.tiers[-1])

    def reserves(self, tokens: float, num_devices: int, graph_sequences: int, hidden_size: int) -> float:
        """Bytes of a device that neither weights nor the cache may have."""
        kept = (
            self.reserved_bytes
            + self.reserved_bytes_a_token * tokens
            + self.reserved_bytes_a_device * num_devices
            + self.reserved_bytes_a_graph_sequence * graph_sequences
        )
        return max(kept, self.reserved_bytes_at_least) + self.activation_widths * hidden_size * 2.0 * tokens
