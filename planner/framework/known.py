"""Which frameworks do we know, and what is known of each?  Traits by name, with where they come from."""

from __future__ import annotations

from dataclasses import replace

from planner.errors import DocumentInvalid
from planner.framework.traits import TUNED, FrameworkTraits

NANOTRON = FrameworkTraits(
    name="nanotron",
    bucket_bytes_per_parameter=2.0,
    passing_gradient_bytes=2.0,
    kept_fragmentation=1.10,
    keeps_gate_output=True,
    collective_buffers=2,
    whole_sequence_tensors=3.0,
    backward_working_share=2.0 / 3.0,
    step_copies=True,
    further_communicators=2,
    memory_spread=0.045,
    kept_logit_bytes=4.0,
    passing_logit_bytes=4.0,
)
"""huggingface/nanotron, sources of late 2024: DistributedDataParallel without gradient views beside an fp32 accumulator
that frees ``.grad`` after each backward pass (optim/gradient_accumulator.py); SwiGLU of split, silu and product
(models/llama.py); gathered inputs of column-parallel and gathered gradients of row-parallel matmuls in two global
buffers (parallel/tensor_parallel/functional.py, MemoryBuffer); unreduced outputs and input gradients as whole tensors
(same file: output of a row-parallel matmul, gradient before and after its reduce-scatter); all_gather_coalesced after
the ZeRO-1 step (optim/zero.py).  Backward of the feed-forward part holds the gradients of gate, up, silu and product,
4 f of the 8 h + 4 f elements that a layer keeps.  The world's group (barriers) and the model-parallel group (gradient
norm) have communicators of their own.

``kept_fragmentation`` and ``memory_spread`` are fitted on the fit part of the HF Ultra-Scale sweep, 122 runs without
tensor parallelism (with it the pool also counts what side streams release late): reserved = state + 1.11 x kept
activations + 1.17 x logits + 1.5 GiB, spread 4.5 %.  Reserved memory of all runs, mean error: 22 % -> 13 %."""

FRAMEWORKS: dict[str, FrameworkTraits] = {traits.name: traits for traits in (TUNED, NANOTRON)}
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
TORCHTITAN = replace(PYTORCH_FSDP, name="torchtitan", kept_logit_bytes=4.0, passing_logit_bytes=8.0)
"""Plain cross-entropy over fp32 logits: the kept log-softmax, the gradient of the loss and that of the softmax, three
fp32 tensors at the head's backward (torchtitan, components/loss.py)."""

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
