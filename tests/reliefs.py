"""A table of memory reliefs for tests of rows and costs that need one."""

from __future__ import annotations

from planner.strategy.strategy import Relief

RELIEFS = (
    Relief(),
    Relief("selective", ("norm", "activation")),
    Relief("selective", ("norm", "mlp")),
    Relief("selective", ("norm", "moe")),
    Relief("full"),
    Relief(offload=True),
)
