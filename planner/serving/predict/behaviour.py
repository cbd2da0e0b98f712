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
class Behaviour:
    """How one release of an engine schedules and reserves; every value has its source beside it in the room."""

    policy: Policy
    max_num_sequences: int
    """Default of requests that run at once, an instance's (a data-parallel rank's, see ``limits_a_rank``)."""
    max_num_batched_tokens: int
    limits_a_rank: bool
    """Whether both limits are of each attention data-parallel rank."""
    memory_fraction: float
    fraction_of_free: bool
    """Whether ``memory_fraction`` is of what the loaded weights leave (TensorRT-LLM) or of all memory (vLLM,
    SGLang)."""
    cache_block_tokens: int
    host_s: float
    """Seconds an iteration of the scheduler, the sampler and the launch take that no device work hides."""
    host_s_a_sequence: float
    """... and more for each running request."""
    reserved_bytes: float
    """Bytes of a device that the engine keeps for its context, graphs and communication."""
    activation_bytes_a_token: float
    """Bytes of a device for each token of ``max_num_batched_tokens``, as multiples of the hidden width in 16 bit."""
