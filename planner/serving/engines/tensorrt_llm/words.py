"""TensorRT-LLM's words for number formats and methods of speculation."""

from __future__ import annotations

from planner.serving.words import CacheFormat, WeightFormat

RELEASE = "1.3.0rc29"
OPTIONS_FILE = "options.yaml"
"""What ``--extra_llm_api_options`` names: fields of ``TorchLlmArgs``."""
CACHE: dict[CacheFormat, str] = {"bf16": "auto", "fp8": "fp8", "nvfp4": "nvfp4"}
"""``kv_cache_config.dtype``; bfloat16 is said by ``auto``."""
METHODS = {"mtp": "MTP", "eagle": "Eagle", "eagle3": "Eagle3", "ngram": "NGram", "draft_model": "DraftTarget"}
"""``speculative_config.decoding_type``."""
ONLINE: dict[WeightFormat, str] = {}
"""Weights are quantised before, with ModelOpt: the checkpoint says its format."""
