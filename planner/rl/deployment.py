"""What is started: where samples are generated, where weights are trained, and in which layouts."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from planner.rl.words import Offload, Placement, Synchrony, Trainer
from planner.serving.layout import Formats, InstanceGroup
from profiles.document import Document

SyncMethod = Literal["reshard", "broadcast", "sharded"]
"""How new weights reach the engines: within the devices that hold them (colocated), as whole tensors from one rank to
all, or each part from where it is to where it is needed."""


class TrainerLayout(Document):
    """The trainer's devices, its software and its strategy."""

    trainer: Trainer
    num_devices: int = Field(gt=0)
    strategy: dict[str, Any]
    stage_layers: tuple[int, ...] = Field(default=(), description="layers of each pipeline stage")


class RlDeployment(Document):
    """Trainer and engines; ``colocated`` ones share all devices, in turns."""

    schema_version: Literal[1] = 1
    placement: Placement
    synchrony: Synchrony = "synchronous"
    trainer: TrainerLayout
    engine: str = "vllm"
    rollout: InstanceGroup
    formats: Formats = Formats()
    weight_sync: SyncMethod = "reshard"
    offload: Offload = Field(default="nothing", description="what is in host memory while it is not used")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        colocated = self.placement == "colocated"
        if colocated and self.synchrony != "synchronous":
            raise ValueError("colocated devices generate and train in turns: synchrony is synchronous")
        if colocated and self.trainer.num_devices != self.rollout.num_devices:
            raise ValueError(
                f"colocated: trainer and engines share all devices, but they have {self.trainer.num_devices}"
                f" and {self.rollout.num_devices}"
            )
        if colocated != (self.weight_sync == "reshard"):
            raise ValueError("weights are resharded in place exactly where trainer and engines are colocated")
        return self

    @property
    def num_devices(self) -> int:
        """Devices of both."""
        trainer = self.trainer.num_devices
        return trainer if self.placement == "colocated" else trainer + self.rollout.num_devices
