"""The engines' own parsers, each in a process of its own; install them with ``make serving-targets``."""

from __future__ import annotations

from planner.backends.checking.validator import Validator
from planner.serving.engines.sglang.validator import VALIDATOR as SGLANG
from planner.serving.engines.vllm.validator import VALIDATOR as VLLM

VALIDATORS: dict[str, Validator] = {"vllm": VLLM, "sglang": SGLANG}
