"""Imported first by ``train_accelerate.py`` in a CPU run: Accelerate's own plugins on CPU ranks.

Accelerate takes ranks on a CPU for plain data parallelism (``MULTI_CPU``) whatever its variables say of FSDP
(accelerate 1.15.0 state.py:983).  Here they are told as it tells ranks with devices, which are then CPUs over gloo.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from accelerate import state
from accelerate.utils import DistributedType


def on_cpu() -> None:
    """One device a rank, which is a CPU."""
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    sharded = os.environ.get("ACCELERATE_USE_FSDP") == "true" or os.environ.get("ACCELERATE_USE_DEEPSPEED") == "true"
    kind = DistributedType.MULTI_GPU if sharded else DistributedType.MULTI_CPU
    found = ("gloo", kind) if ranks > 1 else (None, DistributedType.NO)

    def backend(self: Any, *_: Any, **__: Any) -> tuple[str | None, DistributedType]:
        return found

    def device(self: Any) -> None:
        self.device = torch.device("cpu")

    state.PartialState._prepare_backend = backend
    state.PartialState.set_device = device
    # FSDP2's own switch for groups that cannot scale while they reduce.
    from torch.distributed.fsdp import FSDPModule

    divide = FSDPModule.set_gradient_divide_factor

    def divided(self: Any, factor: float) -> None:
        divide(self, factor)
        self.set_force_sum_reduction_for_comms(True)

    FSDPModule.set_gradient_divide_factor = divided  # type: ignore[method-assign]


os.environ["ACCELERATE_MIXED_PRECISION"] = "no"
on_cpu()
