"""Questions of RL for tests, and an engine whose iterations are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.operations.question import cluster_of, model_of
from planner.question.sequences import Sequences
from planner.rl.problem import RlProblem
from planner.serving.layout import InstanceGroup


@dataclass(frozen=True)
class EvenEngine:
    """Every iteration takes ``step_s`` and ``more_s`` a running sample; prompts take no time."""

    step_s: float = 0.01
    more_s: float = 0.0
    max_running: int = 1_000
    cache_tokens: float = 1e12

    def decode_s(self, running: float, context: float) -> float:
        return self.step_s + self.more_s * running

    def prefill_s(self, tokens: float) -> float:
        return 0.0


def even_engine(problem: RlProblem, group: InstanceGroup, held_bytes: float) -> EvenEngine:
    """More devices generate faster, not in proportion."""
    return EvenEngine(step_s=0.01 / group.layout.tp**0.5, more_s=1e-4 / group.layout.tp**0.5)


def rl_problem(**changes: Any) -> RlProblem:
    """A small question on one node."""
    said: dict[str, Any] = {
        "actor": model_of("llama-3.2-1b"),
        "cluster": cluster_of("dgx-h100", 8),
        "prompts": 64,
        "samples_per_prompt": 4,
        "prompt_tokens": Sequences(kind="padded", histogram=((100.0, 1.0),)),
        "response_tokens": Sequences(kind="padded", mean=500),
        "longest_response": 2000,
    }
    return RlProblem.model_validate({**said, **changes})
