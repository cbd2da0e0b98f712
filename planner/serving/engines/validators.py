"""The engines' own parsers, each in a process of its own; install them with ``make serving-targets``."""

from __future__ import annotations

import sys

from planner.backends.checking.environment import make_ready
from planner.backends.checking.validator import Validator
from planner.serving.engines.sglang.validator import VALIDATOR as SGLANG
from planner.serving.engines.vllm.validator import VALIDATOR as VLLM

VALIDATORS: dict[str, Validator] = {"vllm": VLLM, "sglang": SGLANG}

if __name__ == "__main__":
    for each in sys.argv[1:] or VALIDATORS:
        chosen = VALIDATORS[each]
        print(f"validator: {each} {chosen.default_version} in {make_ready(chosen, chosen.default_version)}")
