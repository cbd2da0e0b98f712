"""What a run of a sharding plan needs beside the plan: steps, device, learning rate, seed, data."""

from __future__ import annotations

from dataclasses import dataclass

from planner.backends.native.trainer.settings import DeviceKind
from planner.backends.rules.optimizer_recipe import LEARNING_RATE, WEIGHT_DECAY


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Switches of one run.

    ``data`` names a function ``package.module:function`` that is called with the step and returns the inputs of the
    module for the whole batch, the same on every rank; None = random ones.
    """

    steps: int = 10
    device: DeviceKind = "cuda"
    learning_rate: float = LEARNING_RATE
    weight_decay: float = WEIGHT_DECAY
    seed: int = 0
    data: str | None = None
