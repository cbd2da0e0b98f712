"""The words of serving: engines, roles of an instance, number formats."""

from __future__ import annotations

from typing import Literal, get_args

EngineName = Literal["vllm", "sglang", "tensorrt-llm"]
Role = Literal["aggregated", "prefill", "decode"]
"""What an engine instance does: whole requests, or one of the two phases of them."""
WeightFormat = Literal["bf16", "fp8", "fp8_block", "nvfp4", "mxfp4", "int8", "int4"]
"""How weights are stored and multiplied: ``fp8`` = scales a tensor or a channel, ``fp8_block`` = scales a block of
128 x 128, ``int8`` and ``int4`` = weights only, multiplied in 16 bit (AWQ, GPTQ)."""
CacheFormat = Literal["bf16", "fp8", "nvfp4"]
"""How keys and values are kept."""
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
WEIGHT_BYTES: dict[WeightFormat, float] = {
    "bf16": 2.0,
    "fp8": 1.0,
    "fp8_block": 1.0 + 4 / 128**2,
    "nvfp4": 0.5 + 1 / 16,
    "mxfp4": 0.5 + 1 / 32,
    "int8": 1.0,
    "int4": 0.5 + 2.5 / 128,
}
"""Bytes a weight with its scales: nvfp4 has an fp8 scale for 16 weights, mxfp4 an 8-bit exponent for 32, int4 a 16-bit
scale and a 4-bit zero for 128."""
CACHE_BYTES: dict[CacheFormat, float] = {"bf16": 2.0, "fp8": 1.0, "nvfp4": 0.5 + 1 / 16}
