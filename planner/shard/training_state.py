"""What lives as long as the training does: gradients, master copies and optimizer states of the parameters."""

from __future__ import annotations

from dataclasses import dataclass

from planner.errors import DocumentInvalid
from planner.predict.memory.states import MASTER_BYTES, MOMENT_BYTES
from planner.shard.operator_graph import TensorShape

ALIASES = {"adamw": "adam"}
GRADIENT_BYTES = 4.0


@dataclass(frozen=True, slots=True)
class TrainingState:
    """Bytes a parameter element beside the parameter itself, and bytes that an update moves."""

    optimizer: str
    moment_bytes: float

    def state_bytes(self, shape: TensorShape) -> float:
        """Gradient in fp32, moments, and a master copy in fp32 where the parameter is narrower."""
        return GRADIENT_BYTES + self.moment_bytes + self._master_bytes(shape)

    def update_bytes(self, shape: TensorShape) -> float:
        """The gradient is read, moments and master copy are read and written, the parameter is written."""
        return GRADIENT_BYTES + 2.0 * (self.moment_bytes + self._master_bytes(shape)) + shape.element_bytes

    def _master_bytes(self, shape: TensorShape) -> float:
        return MASTER_BYTES if shape.element_bytes < MASTER_BYTES else 0.0


def training_state(optimizer: str) -> TrainingState:
    """The state that ``optimizer`` keeps.  Raises DocumentInvalid."""
    known = {**MOMENT_BYTES, **{alias: MOMENT_BYTES[name] for alias, name in ALIASES.items()}, "none": 0.0}
    if optimizer not in known:
        raise DocumentInvalid(
            f"no optimizer is called {optimizer!r}",
            where="--optimizer",
            hint=f"choose among {', '.join(sorted(known))}",
        )
    return TrainingState(optimizer, known[optimizer])
