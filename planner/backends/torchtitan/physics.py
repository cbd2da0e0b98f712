"""The behaviour of torchtitan, eager and as our files run it."""

from __future__ import annotations

from dataclasses import replace

from planner.backends.pytorch_fsdp.physics import EAGER, PYTORCH_FSDP

COMPILED_LOGIT_BYTES = 2.0
"""Of a logit under a compiled loss: the 16-bit logits, from which softmax is made again, and their 16-bit gradient
(torch, inductor: reductions over the logits and one kernel for the gradient)."""
TORCHTITAN = replace(
    PYTORCH_FSDP,
    name="torchtitan",
    time_spread=0.185,
    studied_devices=128,
    summary="torchtitan, eager FSDP2",
    attention="flash2",
    unfused=EAGER,
    eager_pointwise=True,
    kept_logit_bytes=4.0,
    passing_logit_bytes=8.0,
    pipeline_keeps_whole=True,
    pipeline_reduces_last=True,
    drops_chunks=True,
    regathers_zero2=True,
    dynamic_casts=True,
)
"""Eager unless it is compiled; scaled_dot_product_attention picks FlashAttention-2.
Under a pipeline its default is not to reshard after the forward pass (torchtitan 0.3.0, distributed/fsdp.py:69-72);
torch's stages switch gradient synchronisation off for every backward pass and reduce in an action of its own behind
the stage's last one, which the compute stream waits for (torch 2.13.0, distributed/pipelining/stage.py:844-847 and
1164-1191, schedules.py:1254-1282).  Accumulated gradients are whole, in the dtype of the reduction
(distributed/fsdp/_fully_shard/_fsdp_param.py:802-813).  Schedules of more than three chunks a rank drop and gather
chunks again (``planner.predict.cost.regathers``).
Without a pipeline every micro-batch reduces its gradients and drops its parameters (trainer.py:885, no switch is set).
Its 8-bit layers are torchao's Float8Linear, scaled by each tensor's present largest value (components/float8.py).
Plain cross-entropy over fp32 logits: the kept log-softmax, the gradient of the loss and that of the softmax, three
fp32 tensors at the head's backward (torchtitan, components/loss.py).
``time_spread``: eight rows of its own tables, 0.080, a third wider, and 0.15 by which sources differ (as Accelerate's):
torchao's runs of it are far from its own."""
TORCHTITAN_COMPILED = replace(
    TORCHTITAN,
    name="torchtitan-compiled",
    time_spread=None,
    studied_devices=0,
    summary="torchtitan 0.3.0 as we emit it: compiled layers and loss, FSDP2",
    unfused=frozenset(),
    eager_pointwise=False,
    compiled_checkpointing=True,
    kept_logit_bytes=COMPILED_LOGIT_BYTES,
    passing_logit_bytes=COMPILED_LOGIT_BYTES,
    rowwise_scales=True,
)
"""Our files compile model and loss, scale 8-bit products by rows (``planner.backends.torchtitan.values``, compiling and
float8_recipe) and choose FlexAttention, which the compiler makes a kernel of; its rate is taken as FlashAttention-2's.
Times: *not studied*.  Memory as of measured compiled runs: what no backward pass reads is not kept, and the compiled
loss keeps 16-bit logits and their gradient (predicted over measured reserved memory of two torchtitan runs with both
0.97 and 0.99, of five with a compiled model 0.99 to 1.02)."""
