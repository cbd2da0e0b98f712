"""SGLang's words for number formats, methods of speculation and exchanges of experts."""

from __future__ import annotations

from pathlib import Path

from planner.serving.engines.flags import FlagTable, flag_table
from planner.serving.words import CacheFormat, WeightFormat

RELEASE = "0.5.23"
TRANSFER = "nixl"
"""``--disaggregation-transfer-backend``."""
GIGABYTE = 10**9
"""The unit of ``--hicache-size``."""
ONLINE: dict[WeightFormat, str] = {"fp8": "fp8", "nvfp4": "nvfp4_online"}
"""What ``--quantization`` makes of a 16-bit checkpoint while it loads it (srt/arg_groups/choices.py:32)."""
CACHE: dict[CacheFormat, str] = {"bf16": "bf16", "fp8": "fp8_e4m3", "nvfp4": "nvfp4"}
"""``--kv-cache-dtype`` (srt/arg_groups/fields/model.py:197)."""
CACHE_READ: dict[str, CacheFormat] = {
    "auto": "bf16",
    "bf16": "bf16",
    "bfloat16": "bf16",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "nvfp4": "nvfp4",
}
ALGORITHMS = {"mtp": "NEXTN", "eagle": "EAGLE", "eagle3": "EAGLE3", "ngram": "NGRAM", "draft_model": "STANDALONE"}
"""``--speculative-algorithm`` (srt/arg_groups/fields/spec.py:31)."""
EXCHANGES = {
    "none": (),
    "deepep": ("hopper", "blackwell"),
    "deepep_v2": ("hopper", "blackwell"),
    "flashinfer": ("hopper", "blackwell"),
    "mooncake": ("hopper", "blackwell"),
    "nixl": ("hopper", "blackwell"),
    "pplx": ("hopper", "blackwell"),
}
"""``--moe-a2a-backend`` of NVIDIA devices, and the architectures that have its kernels; none = all."""


def flags() -> FlagTable:
    """The flags of the pinned release."""
    return flag_table(Path(__file__).parent, "SGLang", RELEASE)
