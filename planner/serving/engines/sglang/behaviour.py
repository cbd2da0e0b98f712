"""How SGLang schedules and reserves memory (release 0.5.23; files of its wheel).

Scheduler: ``sglang/srt/managers/scheduler.py``: waiting prompts run in iterations of their own before decoding goes on,
up to ``chunked_prefill_size`` tokens an iteration.  Sizes by memory: ``sglang/srt/arg_groups/memory_hook.py:85-181``.
Reserves: the same file, 309-317 and 363-376: 512 MB, 1.5 MB a token of a chunk, 128 MB a device of the instance, 2 MB a
request of the largest captured batch, 10 GiB at least on devices above 60 GB; what is left over weights is cache.
The time factors and the
intervals are fitted: ``python -m benchmarks.serving_fit``.
"""

from __future__ import annotations

from planner.serving.predict.behaviour import Behaviour, Limits

_GIB, _MIB = 1 << 30, 1 << 20
BEHAVIOUR = Behaviour(
    policy="prefill_first",
    tiers=(
        Limits(160 * _GIB, 16384, 2048, 512),
        Limits(60 * _GIB, 8192, 2048, 512),
        Limits(35 * _GIB, 4096, 2048, 160),
        Limits(20 * _GIB, 4096, 2048, 160),
        Limits(0, 2048, 2048, 8),
    ),
    limits_a_rank=True,
    memory_fraction=1.0,
    fraction_of_free=False,
    fraction_without_reserves=True,
    cache_block_tokens=1,
    host_s=0.0,
    host_s_a_sequence=0.0,
    decode_factor=1.053,
    prompt_factor=1.183,
    request_s_a_layer=0.003,
    wait_iterations=12.0,
    reserved_bytes=512 * _MIB,
    reserved_bytes_a_token=1.5 * _MIB,
    reserved_bytes_a_device=128 * _MIB,
    reserved_bytes_a_graph_sequence=2 * _MIB,
    reserved_bytes_at_least=10 * _GIB,
    activation_widths=0.0,
    held_output=0.7,
    likely_ttft=(0.35, 14.7),
    likely_tpot=(0.53, 1.92),
    likely_throughput=(0.53, 1.48),
)
