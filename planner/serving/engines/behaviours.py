"""How each engine schedules and reserves memory."""

from __future__ import annotations

from planner.serving.engines.sglang.behaviour import BEHAVIOUR as SGLANG
from planner.serving.engines.tensorrt_llm.behaviour import BEHAVIOUR as TENSORRT_LLM
from planner.serving.engines.vllm.behaviour import BEHAVIOUR as VLLM
from planner.serving.predict.behaviour import Behaviour
from planner.serving.words import EngineName

_BEHAVIOURS: dict[EngineName, Behaviour] = {"vllm": VLLM, "sglang": SGLANG, "tensorrt-llm": TENSORRT_LLM}


def behaviour(engine: EngineName, release: str) -> Behaviour:
    """The behaviour of an engine; that of its pinned release stands for the others."""
    return _BEHAVIOURS[engine]
