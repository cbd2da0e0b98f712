"""All engines, by name."""

from __future__ import annotations

from planner.serving.engines import sglang, tensorrt_llm, vllm
from planner.serving.engines.engine import Engine
from planner.serving.words import EngineName

ENGINES: dict[EngineName, Engine] = {room.ENGINE.name: room.ENGINE for room in (vllm, sglang, tensorrt_llm)}
