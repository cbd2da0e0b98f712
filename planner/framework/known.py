"""Which frameworks do we know, and what is known of each?  Traits by name, with where they come from."""

from __future__ import annotations

from dataclasses import replace

from planner.errors import DocumentInvalid
from planner.framework.traits import TUNED, FrameworkTraits

MEGATRON_2021 = FrameworkTraits(
    name="Megatron-LM before 2023", attention="unfused", unfused=frozenset({"cross_entropy"}), dropout=True
)
"""Batched matmuls around the fused scale-mask-softmax kernel (its model/transformer.py, CoreAttention); dropout is 0.1
throughout unless a flag says otherwise (its arguments.py)."""
MEGATRON_TEST = FrameworkTraits(name="Megatron-LM functional test", dropout=True)
"""The tests leave dropout at 0.1."""
MEGATRON_TEST_FLASH = replace(
    MEGATRON_TEST, name="Megatron-LM functional test, flash-attention package", attention_output_copies=1.0
)
"""Before Hopper TransformerEngine runs attention with the flash-attention package, on transposed copies; on Hopper
with cuDNN's kernel, which takes Megatron's layout."""
MEGATRON_TEST_UNFUSED = replace(
    MEGATRON_TEST, name="Megatron-LM functional test, unfused attention", attention="unfused"
)
EAGER = frozenset({"norm", "activation", "rope", "cross_entropy"})
"""Operator classes that PyTorch runs as several kernels without a compiler."""
PYTORCH_FSDP = FrameworkTraits(
    name="PyTorch FSDP", fp32_shards=True, operator_checkpointing=True, kept_logit_bytes=2.0, passing_logit_bytes=4.0
)
"""Plain cross-entropy over 16-bit logits: the kept log-softmax beside logits or gradient, and its input's gradient."""
LLM_FOUNDRY = replace(
    PYTORCH_FSDP,
    name="llm-foundry (MPT)",
    attention="triton",
    unfused=frozenset({"cross_entropy"}),
    passing_logit_bytes=2.0,
)
"""attn_impl: triton, FlashAttention 1 with ALiBi (llm-foundry scripts/train/benchmarking).  Its default loss is
flash-attention's cross-entropy, which keeps the 16-bit logits and writes a 16-bit gradient (csrc/xentropy)."""
TORCHTITAN = replace(
    PYTORCH_FSDP,
    name="torchtitan",
    attention="flash2",
    unfused=EAGER,
    kept_logit_bytes=4.0,
    passing_logit_bytes=8.0,
    reserved_per_allocated=1.1,
)
"""Eager unless it is compiled; scaled_dot_product_attention picks FlashAttention-2.
Plain cross-entropy over fp32 logits: the kept log-softmax, the gradient of the loss and that of the softmax, three
fp32 tensors at the head's backward (torchtitan, components/loss.py).  ``reserved_per_allocated`` is fitted on five
runs of the fit part: mean error of reserved memory 75 % -> 11 % with all of this, one run of another cluster apart
1-9 %; held part 120 % -> 30 %."""
AUTOMODEL = replace(PYTORCH_FSDP, name="NeMo Automodel", attention="flash2", unfused=EAGER)
"""Hugging Face models under FSDP2: eager point-wise operators, scaled_dot_product_attention."""
HUGGING_FACE = FrameworkTraits(name="Hugging Face, eager", attention="unfused", unfused=EAGER)
NEMO = FrameworkTraits(name="NeMo performance recipe", dispatch="node")
"""Experts' tokens go through DeepEP or HybridEP (flex dispatcher), once a node and device."""

FRAMEWORKS: dict[str, FrameworkTraits] = {traits.name: traits for traits in (TUNED,)}
"""By the name that ``--framework`` and ``Problem.framework`` use."""


def framework_traits(name: str) -> FrameworkTraits:
    """Traits of one framework.  Raises DocumentInvalid with the names that exist."""
    if name not in FRAMEWORKS:
        raise DocumentInvalid(
            f"no framework is called {name!r}",
            where="--framework",
            hint=f"choose among {', '.join(sorted(FRAMEWORKS))}",
        )
    return FRAMEWORKS[name]
