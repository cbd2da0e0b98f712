"""Traits of back-ends around PyTorch FSDP, and of plain eager PyTorch."""

from __future__ import annotations

from planner.predict.physics.host import EAGER_LAUNCH_S
from planner.predict.physics.physics import Physics

EAGER = frozenset({"norm", "activation", "rope", "cross_entropy"})
"""Operator classes that PyTorch runs as several kernels without a compiler."""
PYTORCH_FSDP = Physics(
    name="pytorch-fsdp",
    summary="PyTorch FSDP, compiled",
    launch_s=EAGER_LAUNCH_S,
    fp32_shards=True,
    operator_checkpointing=True,
    kept_logit_bytes=2.0,
    passing_logit_bytes=4.0,
)
"""Plain cross-entropy over 16-bit logits: the kept log-softmax beside logits or gradient, and its input's gradient."""
