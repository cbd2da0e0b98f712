"""What a run of a sharding plan needs beside the plan: steps, device, learning rate, seed, data."""

from __future__ import annotations

from dataclasses import dataclass

from planner.backends.native.trainer.settings import DeviceKind


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Switches of one run.

    ``data`` names a function ``package.module:function`` that is called with the step and returns the inputs of the
    module for the whole batch, the same on every rank; None = random ones.
    """

    steps: int = 10
    device: DeviceKind = "cuda"
    learning_rate: float = 3e-4
    weight_decay: float = 0.1
    seed: int = 0
    data: str | None = None
