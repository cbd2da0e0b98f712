"""Traits of frameworks around PyTorch FSDP, and of plain eager PyTorch."""

from __future__ import annotations

from dataclasses import replace

from planner.framework.traits import FrameworkTraits

EAGER = frozenset({"norm", "activation", "rope", "cross_entropy"})
"""Operator classes that PyTorch runs as several kernels without a compiler."""
PYTORCH_FSDP = FrameworkTraits(
    name="pytorch-fsdp",
    summary="PyTorch FSDP, compiled",
    fp32_shards=True,
    operator_checkpointing=True,
    kept_logit_bytes=2.0,
    passing_logit_bytes=4.0,
)
"""Plain cross-entropy over 16-bit logits: the kept log-softmax beside logits or gradient, and its input's gradient."""
LLM_FOUNDRY = replace(
    PYTORCH_FSDP,
    name="llm-foundry",
    time_spread=0.11,
    studied_devices=512,
    summary="llm-foundry (FSDP, MPT models)",
    attention="triton",
    unfused=frozenset({"cross_entropy"}),
    passing_logit_bytes=2.0,
)
"""attn_impl: triton, FlashAttention 1 with ALiBi (llm-foundry scripts/train/benchmarking).  Its default loss is
flash-attention's cross-entropy, which keeps the 16-bit logits and writes a 16-bit gradient (csrc/xentropy)."""
LLM_FOUNDRY_FIRST = replace(
    LLM_FOUNDRY, name="llm-foundry-first", unfused=frozenset({"cross_entropy", "norm", "activation"})
)
"""The first revision of its benchmark tables: norms that autocast keeps in fp32, plain activations.  The tables do not
say so; inferred on the fit part, where with fp32 reduction 34 such rows go from ratios of 0.79 (A100-40GB) and 0.88 to
0.91 and 0.94 (all rows: median error 6.8 % -> 4.8 %; held part 4.1 % -> 3.6 %)."""
TORCHTITAN = replace(
    PYTORCH_FSDP,
    name="torchtitan",
    time_spread=0.12,
    studied_devices=128,
    summary="torchtitan, eager FSDP2",
    attention="flash2",
    unfused=EAGER,
    kept_logit_bytes=4.0,
    passing_logit_bytes=8.0,
    pipeline_keeps_whole=True,
    pipeline_reduces_last=True,
    regathers_zero2=True,
)
"""Eager unless it is compiled; scaled_dot_product_attention picks FlashAttention-2.
Under a pipeline its default is not to reshard after the forward pass (torchtitan 0.3.0, distributed/fsdp.py:69-72);
torch's stages switch gradient synchronisation off for every backward pass and reduce in an action of its own behind
the stage's last one, which the compute stream waits for (torch 2.13.0, distributed/pipelining/stage.py:844-847 and
1164-1191, schedules.py:1254-1282).  Accumulated gradients are whole, in the dtype of the reduction
(distributed/fsdp/_fully_shard/_fsdp_param.py:802-813).  Schedules of more than three chunks a rank drop and gather
chunks again (schedules.py:1285-1364, max_active_stages): not modelled.
Without a pipeline every micro-batch reduces its gradients and drops its parameters (trainer.py:885, no switch is set).
Plain cross-entropy over fp32 logits: the kept log-softmax, the gradient of the loss and that of the softmax, three
fp32 tensors at the head's backward (torchtitan, components/loss.py)."""
TORCHTITAN_COMPILED = replace(
    TORCHTITAN,
    name="torchtitan-compiled",
    time_spread=None,
    studied_devices=0,
    summary="torchtitan 0.3.0 as we emit it: compiled layers and loss, FSDP2",
    unfused=frozenset(),
)
"""Our files compile model and loss (``planner.emit.torchtitan.values``, compiling) and choose FlexAttention, which the
compiler makes a kernel of; its rate is taken as FlashAttention-2's.  Times and what the compiler keeps: *not studied*;
logits as in the eager loss."""
AUTOMODEL = replace(
    PYTORCH_FSDP,
    name="nemo-automodel",
    time_spread=0.35,
    studied_devices=1024,
    summary="NeMo Automodel: Hugging Face models under FSDP2",
    attention="flash2",
    unfused=EAGER,
    pipeline_keeps_whole=True,
    pipeline_reduces_last=True,
)
"""Hugging Face models under FSDP2: eager point-wise operators, scaled_dot_product_attention.  Pipelines are torch's:
layers stay gathered (NVIDIA-NeMo/Automodel@36044ad3d, nemo_automodel/components/distributed/parallelizer.py:682-688),
gradients are reduced once (components/distributed/config.py:318, defer_fsdp_grad_sync)."""
NATIVE = FrameworkTraits(
    name="native",
    summary="Meshwright's own trainer: eager FSDP2",
    attention="flash2",
    unfused=EAGER,
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
)
"""``planner.native``: fp32 shards under FSDP2 (``data_parallel``), a gated non-linearity of two kernels
(``feed_forward``), loss over fp32 logits (``loss``), whose backward pass holds the gradient of the log-softmax and that
of its input.  Its times were not studied."""
HUGGING_FACE = FrameworkTraits(
    name="hugging-face",
    summary="Hugging Face models, eager, one device or plain data parallelism",
    attention="unfused",
    unfused=EAGER,
    dropout=True,
)
"""Dropout of 0.1 in the configurations of GPT-2, OPT and BERT (transformers, GPT2Config and so on)."""
