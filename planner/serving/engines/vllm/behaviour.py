"""How vLLM schedules and reserves memory (release 0.33.0; files of its wheel).

Scheduler: ``vllm/v1/core/sched/scheduler.py``: running requests first, then waiting ones while the token budget lasts;
a prompt may be cut.  Token budget and number of requests: ``vllm/engine/arg_utils.py:2973-3007`` (of each data-parallel
engine; A100 is in the last tier by its name, which its memory does not say).  Part of all memory:
``vllm/config/cache.py:215``; what an iteration of the whole budget takes is measured at start and taken off it.
``reserved_bytes`` (context and NCCL buffers) and ``activation_widths`` are priors.  The time factors and the
intervals are fitted: ``python -m benchmarks.serving_fit``.
"""

from __future__ import annotations

from planner.serving.predict.behaviour import Behaviour, Limits

_GIB = 1 << 30
BEHAVIOUR = Behaviour(
    policy="decode_first",
    tiers=(
        Limits(160 * _GIB, 16384, 1024),
        Limits(70 * _GIB, 8192, 1024),
        Limits(0, 2048, 256),
    ),
    limits_a_rank=True,
    memory_fraction=0.92,
    fraction_of_free=False,
    fraction_without_reserves=False,
    cache_block_tokens=16,
    host_s=0.0,
    host_s_a_sequence=0.0,
    decode_factor=1.055,
    prompt_factor=1.134,
    request_s_a_layer=0.0004,
    wait_iterations=2.0,
    reserved_bytes=1.5 * _GIB,
    reserved_bytes_a_token=0.0,
    reserved_bytes_a_device=0.0,
    reserved_bytes_a_graph_sequence=2 << 20,
    reserved_bytes_at_least=0.0,
    activation_widths=8.0,
    held_output=0.6,
    likely_ttft=(0.48, 2.18),
    likely_tpot=(0.76, 1.58),
    likely_throughput=(0.58, 1.16),
)
