"""The memory that a back-end reports if it resets its peak counter before the optimizer step.

State that stays, buffers of its collectives, and what the step itself allocates: no activations.
"""

from __future__ import annotations

import numpy as np

from planner.model.spec import ModelSpec
from planner.predict.candidate import Candidate
from planner.predict.memory.activations import ELEMENT_BYTES
from planner.predict.memory.framework_memory import STEP_WORKSPACE_BYTES, collective_buffer_bytes, step_copy_bytes
from planner.predict.physics.physics import Physics
from planner.question.problem import Workload


def resident_bytes(candidate: Candidate, model: ModelSpec, workload: Workload, traits: Physics) -> list[float]:
    """Allocated bytes of every stage at the peak of the optimizer step."""
    strategy = candidate.strategy
    tokens = strategy.micro_batch_size * workload.sequence_length / strategy.cp
    whole = np.array([tokens * model.hidden_size * ELEMENT_BYTES])
    held = float(collective_buffer_bytes(traits, whole, np.array([strategy.tp]))[0])
    shards = np.array([float(strategy.dp_shard * strategy.cp)])
    copies = float(step_copy_bytes(traits, np.array([strategy.zero_stage]), shards)[0])
    return [
        stage.weights_bytes
        + stage.gradients_bytes
        + stage.optimizer_bytes
        + copies * (stage.dense_parameters + stage.expert_parameters)
        + held
        + STEP_WORKSPACE_BYTES
        for stage in candidate.stages
    ]
