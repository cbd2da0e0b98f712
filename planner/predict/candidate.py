"""A candidate, the result of the inner search: strategy, layers on chunks, relief per stage, and numbers."""

from __future__ import annotations

from dataclasses import dataclass

from planner.predict.schedule.paths import ChunkTimes
from planner.strategy.strategy import Strategy


@dataclass(frozen=True, slots=True)
class Split:
    """How layers and relief are dealt.

    ``chunk_layers``: layers of each model chunk along the model, length pp * vpp.
    ``relieved``: layers of each of the stage's chunks that use the strategy's relief (the first ones), length pp.
    """

    chunk_layers: tuple[int, ...]
    relieved: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StageBill:
    """Time and memory of one stage (one device of it), one micro-batch."""

    forward_s: float
    backward_s: float
    weight_gradient_s: float
    dense_parameters: float
    expert_parameters: float
    weights_bytes: float
    gradients_bytes: float
    optimizer_bytes: float
    activations_bytes: float
    buffers_bytes: float
    host_optimizer_bytes: float
    host_activations_bytes: float

    @property
    def host_bytes(self) -> float:
        """What one device keeps in its node's memory."""
        return self.host_optimizer_bytes + self.host_activations_bytes

    @property
    def total_bytes(self) -> float:
        """Peak device memory."""
        return (
            self.weights_bytes
            + self.gradients_bytes
            + self.optimizer_bytes
            + self.activations_bytes
            + self.buffers_bytes
        )

    @property
    def total_s(self) -> float:
        """Forward and backward of one micro-batch."""
        return self.forward_s + self.backward_s


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fully decided configuration with its predicted step time and memory."""

    strategy: Strategy
    split: Split
    stages: tuple[StageBill, ...]
    step_time_s: float
    makespan_s: float
    hop_s: float
    chunks: ChunkTimes
    breakdown_s: dict[str, float]

    @property
    def peak_memory_bytes(self) -> float:
        """Peak of the worst stage."""
        return max(stage.total_bytes for stage in self.stages)
