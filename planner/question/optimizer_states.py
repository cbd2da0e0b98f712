"""The number formats of an optimizer's states, where the workload says them one by one."""

from __future__ import annotations

from typing import Literal

from profiles.document import Document

MomentFormat = Literal["fp32", "fp16", "bf16", "fp8"]
MasterFormat = Literal["fp32", "fp16"]
FORMAT_BYTES: dict[str, float] = {"fp32": 4.0, "fp16": 2.0, "bf16": 2.0, "fp8": 1.0}


class OptimizerStates(Document):
    """What ``adam_precision_aware`` stores, as Megatron's ``--exp-avg-dtype`` and its neighbours say.

    The arithmetic of an update is fp32 whatever the states are (megatron-core 0.19.2 training/arguments.py:3508).
    """

    first: MomentFormat = "fp32"
    second: MomentFormat = "fp32"
    master: MasterFormat = "fp32"

    @property
    def moment_bytes(self) -> float:
        """Bytes of both moments of a parameter; the scales of 8-bit moments are one a tensor."""
        return FORMAT_BYTES[self.first] + FORMAT_BYTES[self.second]

    @property
    def master_bytes(self) -> float:
        """Bytes of the master weight of a parameter."""
        return FORMAT_BYTES[self.master]
