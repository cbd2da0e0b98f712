"""How TensorRT-LLM schedules and reserves memory (release 1.3.0rc27).

Part of free memory (0.9) and tokens of a block (32): KvCacheConfig, nvidia.github.io/TensorRT-LLM/1.3.0rc27/llm-api/
reference/KvCacheConfig.html.  Token limit 8192: ``max_num_tokens`` of ``tensorrt_llm/llmapi/llm_args.py``; that of
requests, 2048, from memory.  Generation first, whole prompts beside it as the token limit allows (from memory: the
capacity scheduler GUARANTEED_NO_EVICT and the micro-batch scheduler without chunks).  ``reserved_bytes`` and
``activation_widths`` are priors.  The time factors and the intervals are fitted: ``python -m benchmarks.serving_fit``.
"""

from __future__ import annotations

from dataclasses import replace

from planner.serving.predict.behaviour import Behaviour, Limits

_GIB = 1 << 30
BEHAVIOUR = Behaviour(
    policy="mixed",
    tiers=(Limits(0, 8192, 2048),),
    limits_a_rank=True,
    memory_fraction=0.9,
    fraction_of_free=True,
    fraction_without_reserves=False,
    cache_block_tokens=32,
    host_s=0.0006,
    host_s_a_sequence=0.0,
    decode_factor=0.966,
    prompt_factor=1.067,
    request_s_a_layer=0.0015,
    wait_iterations=1.0,
    reserved_bytes=2.0 * _GIB,
    reserved_bytes_a_token=0.0,
    reserved_bytes_a_device=0.0,
    reserved_bytes_a_graph_sequence=0.0,
    reserved_bytes_at_least=0.0,
    activation_widths=8.0,
    likely_ttft=(0.25, 4.33),
    likely_tpot=(0.53, 1.29),
    likely_throughput=(0.59, 2.21),
)
FIRST_GENERATION = replace(
    BEHAVIOUR, decode_factor=1.079, prompt_factor=1.0, host_s=0.0, request_s_a_layer=0.0, wait_iterations=1.0
)
"""Releases before 1.0, whose runtime was C++ over TensorRT engines: other host times and kernels."""
