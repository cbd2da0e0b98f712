"""vLLM's words for number formats, methods of speculation and exchanges of experts."""

from __future__ import annotations

from pathlib import Path

from planner.serving.engines.flags import FlagTable, flag_table
from planner.serving.words import CacheFormat, WeightFormat

RELEASE = "0.33.0"
KV_CONNECTOR = "NixlConnector"
ONLINE: dict[WeightFormat, str] = {
    "fp8": "fp8_per_tensor",
    "fp8_block": "fp8_per_block",
    "mxfp4": "mxfp4",
}
"""What ``--quantization`` makes of a 16-bit checkpoint while it loads it (vllm/config/quantization.py:195)."""
ONLINE_EXPERTS: dict[WeightFormat, str] = {
    **ONLINE,
    "nvfp4": "nvfp4_per_token",
    "int8": "int8_per_channel_weight_only",
}
"""... of experts; the further ones leave dense weights in 16 bit, and a model without experts as it is."""
CACHE: dict[CacheFormat, str] = {"bf16": "bfloat16", "fp8": "fp8", "nvfp4": "nvfp4"}
"""``--kv-cache-dtype`` (vllm/config/cache.py:44)."""
CACHE_READ: dict[str, CacheFormat] = {
    "auto": "bf16",
    "bfloat16": "bf16",
    "float16": "bf16",
    "fp8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "fp8_ds_mla": "fp8",
    "nvfp4": "nvfp4",
    "nvfp4_ds_mla": "nvfp4",
}
EXCHANGES = {
    "allgather_reducescatter": (),
    "deepep_high_throughput": ("hopper", "blackwell"),
    "deepep_low_latency": ("hopper", "blackwell"),
    "deepep_v2": ("hopper", "blackwell"),
    "flashinfer_nvlink_one_sided": ("hopper", "blackwell"),
    "flashinfer_nvlink_two_sided": ("hopper", "blackwell"),
    "nixl_ep": ("hopper", "blackwell"),
}
"""``--all2all-backend`` (vllm/config/parallel.py:45) of NVIDIA devices, and the architectures that have its kernels;
none = all."""


def flags() -> FlagTable:
    """The flags of the pinned release."""
    return flag_table(Path(__file__).parent, "vllm", RELEASE)
