"""The behaviour of each generation of releases, with its fitted factors."""

from __future__ import annotations

from planner.serving.engines.sglang.behaviour import BEHAVIOUR as SGLANG
from planner.serving.engines.tensorrt_llm.behaviour import BEHAVIOUR as TENSORRT_LLM
from planner.serving.engines.tensorrt_llm.behaviour import FIRST_GENERATION
from planner.serving.engines.vllm.behaviour import BEHAVIOUR as VLLM
from planner.serving.predict.behaviour import Behaviour

TENSORRT_LLM_0 = "tensorrt-llm 0"
BEHAVIOURS: dict[str, Behaviour] = {
    "vllm": VLLM,
    "sglang": SGLANG,
    "tensorrt-llm": TENSORRT_LLM,
    TENSORRT_LLM_0: FIRST_GENERATION,
}


def generation(engine: str, release: str) -> str:
    """Releases that share fitted factors: TensorRT-LLM before 1.0 (its C++ runtime) apart; else the engine.

    Dynamo's runtime images (``0.8.1.post..``) have a version of their own and hold TensorRT-LLM 1.x.
    """
    old = engine == "tensorrt-llm" and release.startswith("0.") and not release.startswith("0.8.1.post")
    return TENSORRT_LLM_0 if old else engine
