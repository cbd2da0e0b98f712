"""Which traits do the frameworks have whose runs were studied?  Facts of their code, with the place they are from."""

from __future__ import annotations

from planner.framework.traits import FrameworkTraits

MEGATRON_2021 = FrameworkTraits(name="Megatron-LM before flash attention", fused_attention=False, dropout=True)
"""Scores in 16 bit through the fused scale-mask-softmax kernel, dropout 0.1 throughout (Megatron-LM 2.x arguments)."""
MEGATRON_TEST = FrameworkTraits(name="Megatron-LM functional test", dropout=True)
"""Megatron-LM's arguments leave dropout at 0.1."""
MEGATRON_TEST_FLASH = FrameworkTraits(
    name="Megatron-LM functional test, flash-attention package", dropout=True, attention_output_copies=1.0
)
"""Before Hopper TransformerEngine runs attention with the flash-attention package, on transposed copies; on Hopper
with cuDNN's kernel, which takes Megatron's layout."""
MEGATRON_TEST_UNFUSED = FrameworkTraits(
    name="Megatron-LM functional test, unfused attention", dropout=True, fused_attention=False
)
PYTORCH_FSDP = FrameworkTraits(
    name="PyTorch FSDP", fp32_shards=True, operator_checkpointing=True, kept_logit_bytes=2.0, passing_logit_bytes=2.0
)
"""llm-foundry's default loss is flash-attention's fused cross-entropy: it keeps the 16-bit logits and writes a 16-bit
gradient (csrc/xentropy)."""
TORCHTITAN = FrameworkTraits(
    name="torchtitan",
    fp32_shards=True,
    operator_checkpointing=True,
    kept_logit_bytes=4.0,
    passing_logit_bytes=8.0,
    reserved_per_allocated=1.1,
)
"""Plain cross-entropy over fp32 logits: the kept log-softmax, the gradient of the loss and that of the softmax, three
fp32 tensors at the head's backward (torchtitan, components/loss.py)."""
