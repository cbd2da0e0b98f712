"""The strict schema of TensorRT-LLM's options, for want of a parser that runs without its C++ library.

``tensorrt_llm`` cannot be imported on a machine without CUDA, and its package on PyPI holds only a reference to
NVIDIA's index.  ``schema_1_3_0rc29.json`` has the names, types and words of ``TorchLlmArgs``, which forbids other keys;
what stands as ``dict`` there is not looked into.  ``relations`` are the checks that its classes make across fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from planner.serving.engines.strict import differences
from planner.serving.engines.tensorrt_llm.words import RELEASE


@cache
def schema() -> dict[str, Any]:
    """The fields of the pinned release."""
    path = Path(__file__).with_name(f"schema_{RELEASE.replace('.', '_')}.json")
    fields: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["fields"]
    return fields


def violations(options: Mapping[str, Any]) -> list[str]:
    """Everything that TensorRT-LLM would refuse in the options, each with its path; empty where nothing is."""
    return [*differences(options, schema()), *relations(options)]


def relations(options: Mapping[str, Any]) -> Iterator[str]:
    """The checks across fields (tensorrt_llm/mapping.py, llmapi/llm_args.py)."""
    tp, cp = options.get("tensor_parallel_size", 1), options.get("context_parallel_size", 1)
    ep, etp = options.get("moe_expert_parallel_size"), options.get("moe_tensor_parallel_size")
    if ep is not None and (ep < 1 or tp % ep or (etp is not None and ep * etp != tp)):
        yield f"/moe_expert_parallel_size: {ep} x moe_tensor_parallel_size is not tensor_parallel_size = {tp}"
    if cp > 1 and (ep or 1) > 1:
        yield "/context_parallel_size: context parallelism excludes expert parallelism"
    graphs = options.get("cuda_graph_config") or {}
    sizes, most = graphs.get("batch_sizes"), graphs.get("max_batch_size", 0)
    if sizes and most and most != max(sizes):
        yield f"/cuda_graph_config/max_batch_size: {most} is not the largest of batch_sizes, {max(sizes)}"
    fraction = (options.get("kv_cache_config") or {}).get("free_gpu_memory_fraction")
    if isinstance(fraction, int | float) and not 0 <= fraction <= 1:
        yield f"/kv_cache_config/free_gpu_memory_fraction: {fraction} is not from 0 to 1"
