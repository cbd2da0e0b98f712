"""Imported first by ``train_accelerate.py`` in a CPU run: Accelerate's own plugins on CPU ranks.

Accelerate takes ranks on a CPU for plain data parallelism (``MULTI_CPU``) whatever its variables say of FSDP
(accelerate 1.15.0 state.py:983).  Here they are told as it tells ranks with devices, which are then CPUs over gloo.
"""

from __future__ import annotations

import ctypes
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

    # diffusers takes rank modulo devices as the device of a rank (0.42.1 modeling_utils.py:1718).
    torch.accelerator.device_count = lambda: 1
    state.PartialState._prepare_backend = backend
    state.PartialState.set_device = device
    # FSDP2's own switch for groups that cannot scale while they reduce.
    from torch.distributed.fsdp import FSDPModule

    divide = FSDPModule.set_gradient_divide_factor

    def divided(self: Any, factor: float) -> None:
        divide(self, factor)
        self.set_force_sum_reduction_for_comms(True)

    FSDPModule.set_gradient_divide_factor = divided  # type: ignore[method-assign]


def keep_groups() -> None:
    """Groups of gloo are never destructed: they end with the process.

    DDP holds the group until the script's ``main`` returns.  Python then destructs it with the interpreter's lock held
    and waits for gloo's threads, and a thread that still releases the last tensor waits for that lock: a rank that has
    trained everything stays forever.  Seen on a busy machine with torch 2.13.
    """
    from torch.distributed import distributed_c10d

    destroy = state.PartialState.destroy_process_group

    def destroyed(self: Any, group: Any = None) -> None:
        for each in list(distributed_c10d._world.pg_map) if group is None else [group]:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))
        destroy(self, group)

    state.PartialState.destroy_process_group = destroyed


os.environ["ACCELERATE_MIXED_PRECISION"] = "no"
on_cpu()
keep_groups()
