"""How TensorRT-LLM schedules and reserves memory (release 1.3.0rc27).

Part of free memory (0.9) and tokens of a block (32): KvCacheConfig, nvidia.github.io/TensorRT-LLM/1.3.0rc27/llm-api/
reference/KvCacheConfig.html.  Batch and token limits (2048, 8192): ``max_batch_size`` and ``max_num_tokens`` of
``tensorrt_llm/llmapi/llm_args.py``.  Generation first, whole prompts beside it as the token limit allows (the capacity
scheduler's GUARANTEED_NO_EVICT and the micro-batch scheduler without chunks).  ``reserved_bytes`` and
``activation_widths`` are priors.  The time factors are fitted: ``planner/serving/evidence/fitted.json``.
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
    host_s=0.0,
    host_s_a_sequence=0.0,
    reserved_bytes=2.0 * _GIB,
    reserved_bytes_a_token=0.0,
    reserved_bytes_a_device=0.0,
    reserved_bytes_a_graph_sequence=0.0,
    reserved_bytes_at_least=0.0,
    activation_widths=8.0,
)
FIRST_GENERATION = replace(BEHAVIOUR, prompt_factor=1.0)
"""Releases before 1.0, whose runtime was C++ over TensorRT engines: other host times and kernels."""
