"""What a training run needs beside the plan: steps, device, learning rate, seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.backends.rules.optimizer_recipe import CLIP_GRADIENT_NORM, LEARNING_RATE, WEIGHT_DECAY

DeviceKind = Literal["cuda", "cpu"]
ComputePrecision = Literal["plan", "fp32"]


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """Switches of one run.

    ``precision``: ``plan`` computes in the plan's precision with fp32 master weights; ``fp32`` computes in fp32
    (parity checks).  ``clip_gradient_norm`` 0 means no clipping.  ``data`` names a loader factory, ``package:function``
    (see ``planner.backends.native.trainer.data``); None = synthetic tokens.
    """

    steps: int = 10
    device: DeviceKind = "cuda"
    precision: ComputePrecision = "plan"
    learning_rate: float = LEARNING_RATE
    weight_decay: float = WEIGHT_DECAY
    clip_gradient_norm: float = CLIP_GRADIENT_NORM
    seed: int = 0
    data: str | None = None
