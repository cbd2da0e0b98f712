"""The behaviour of Meshwright's own trainer."""

from __future__ import annotations

from planner.backends.pytorch_fsdp.physics import EAGER
from planner.predict.physics.host import EAGER_LAUNCH_S
from planner.predict.physics.physics import Physics

NATIVE = Physics(
    name="native",
    summary="Meshwright's own trainer: eager FSDP2",
    attention="flash2",
    unfused=EAGER,
    launch_s=EAGER_LAUNCH_S,
    eager_pointwise=True,
    fp32_shards=True,
    keeps_gate_output=True,
    kept_logit_bytes=4.0,
    passing_logit_bytes=8.0,
    split_loss_bytes=6.0,
    gathered_context=True,
    moments_apart=True,
    whole_head_input=True,
    pipeline_keeps_whole=True,
    pipeline_reduces_last=True,
    drops_chunks=True,
)
"""``native/trainer``: fp32 shards under FSDP2 (``data_parallel``), a gated non-linearity of two kernels
(``feed_forward``), loss over fp32 logits (``loss``), whose backward pass holds the gradient of the log-softmax and that
of its input.  Its times were not studied."""
