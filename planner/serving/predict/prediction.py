"""What a deployment gives: times that requests see, tokens a second, and how sure that is."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from profiles.document import Document

Limit = Literal["kv_memory", "prefill_compute", "decode_bandwidth", "batch_limit", "token_budget", "link", "arrivals"]
"""What keeps a deployment from answering more: room for keys and values, the prompts' matmuls, reading weights and keys
and values, ``max_num_sequences``, ``max_num_batched_tokens``, collectives or the transfer of keys and values; or
nothing, since everything that arrives is answered."""


class TimeSpread(Document):
    """One time over all requests, seconds."""

    mean_s: float = Field(ge=0)
    p50_s: float = Field(ge=0)
    p90_s: float = Field(ge=0)
    p95_s: float = Field(ge=0)
    p99_s: float = Field(ge=0)


class Likely(Document):
    """Factors on a predicted number between which the measured one lies in 9 of 10 cases."""

    low: float = Field(gt=0)
    high: float = Field(gt=0)


class IterationPart(Document):
    """Seconds of a kind of work in the mean iteration."""

    name: str
    seconds: float = Field(ge=0)


class InstancePrediction(Document):
    """One instance of a group, in steady state."""

    running: float = Field(ge=0, description="requests in an iteration, mean")
    iteration_s: float = Field(gt=0, description="mean iteration")
    parts: tuple[IterationPart, ...] = ()
    weight_bytes: float = Field(ge=0, description="a device's")
    reserved_bytes: float = Field(ge=0, description="activations, graphs and buffers, a device's")
    cache_bytes: float = Field(ge=0, description="room for keys and values, a device's")
    cache_tokens: int = Field(ge=0, description="tokens whose keys and values an instance holds")
    cache_used: float = Field(ge=0, le=1, description="mean part of that room which is in use")


class ServingPrediction(Document):
    """A deployment under one traffic."""

    fits: bool = Field(description="weights and at least one longest request have room")
    reason: str = Field(default="", description="why it does not fit")
    ttft: TimeSpread | None = None
    tpot: TimeSpread | None = None
    end_to_end: TimeSpread | None = None
    requests_per_s: float = Field(default=0.0, ge=0)
    output_tokens_per_s: float = Field(default=0.0, ge=0, description="of the whole deployment")
    output_tokens_per_s_per_device: float = Field(default=0.0, ge=0)
    output_tokens_per_s_per_user: float = Field(default=0.0, ge=0, description="1 / median tpot")
    kv_transfer_s: float = Field(default=0.0, ge=0, description="keys and values of a request, prefill to decode")
    bound_by: Limit | None = None
    instances: tuple[InstancePrediction, ...] = Field(default=(), description="one for each group")
    likely_ttft: Likely | None = None
    likely_tpot: Likely | None = None
    likely_throughput: Likely | None = None
    measured_share: float = Field(
        default=0.0, ge=0, le=1, description="part of the iteration's time that rests on measured kernels of the device"
    )
