"""Which frameworks do we know, and what is known of each?  Traits by name, with where they come from."""

from __future__ import annotations

from dataclasses import replace

from planner.errors import DocumentInvalid
from planner.framework.traits import TUNED, FrameworkTraits

MEGATRON_2021 = FrameworkTraits(
    name="megatron-2021",
    summary="Megatron-LM before 2023: eager launches, unfused attention",
    attention="unfused",
    unfused=frozenset({"cross_entropy"}),
    separate_reductions=True,
    launch_s=30e-6,
    call_s=150e-6,
    collective_launches=1.0,
    parameter_hooks=2.0,
    scattered_hops=True,
    dropout=True,
)
"""Batched matmuls around the fused scale-mask-softmax kernel (its model/transformer.py, CoreAttention), loss in fp32
(core/tensor_parallel/cross_entropy.py), a 16-bit gradient added to a weight's and a bias's buffer, hidden states
scattered over the tensor-parallel ranks between stages (arXiv 2104.04473, section 4.1), dropout of 0.1 unless a flag
says otherwise (arguments.py).  Launch and call seconds fitted on vTrain's one-node runs (539 rows of the fit part,
hosts of the A100's time), with all else of this table: median error 39 % -> 2.8 %; held part 46 % -> 2.4 %."""
MEGATRON_DEEPSPEED = replace(
    MEGATRON_2021,
    name="megatron-deepspeed",
    summary="Megatron-DeepSpeed of 2021-22: as megatron-2021, under DeepSpeed's pipeline engine",
    collective_skew_s=120e-6,
    pads_vocabulary=False,
)
"""Skew fitted on the same rows (fit part: without it mean error 5.7 % and regret 4.1 %, with it 5.0 % and 2.3 %).  Its
unsplit vocabulary matmul runs at less than half the rate of a split one: not padded."""
MEGATRON_TEST = FrameworkTraits(
    name="megatron-test",
    summary="Megatron-LM's functional tests: deterministic, eager",
    launch_s=60e-6,
    call_s=300e-6,
    collective_launches=1.0,
    parameter_hooks=2.0,
    dropout=True,
)
"""The tests leave dropout at 0.1.  Modules of TransformerEngine do more in Python than those of 2021, and deterministic
mode waits.  Launch and call seconds fitted on 69 rows (fit part): median error 87 % -> 23 %; held part 88 % -> 20 %."""
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
    summary="llm-foundry (FSDP, MPT models)",
    attention="triton",
    unfused=frozenset({"cross_entropy"}),
    passing_logit_bytes=2.0,
)
"""attn_impl: triton, FlashAttention 1 with ALiBi (llm-foundry scripts/train/benchmarking).  Its default loss is
flash-attention's cross-entropy, which keeps the 16-bit logits and writes a 16-bit gradient (csrc/xentropy)."""
TORCHTITAN = replace(
    PYTORCH_FSDP,
    name="torchtitan",
    summary="torchtitan, eager FSDP2",
    attention="flash2",
    unfused=EAGER,
    kept_logit_bytes=4.0,
    passing_logit_bytes=8.0,
)
"""Eager unless it is compiled; scaled_dot_product_attention picks FlashAttention-2.
Plain cross-entropy over fp32 logits: the kept log-softmax, the gradient of the loss and that of the softmax, three
fp32 tensors at the head's backward (torchtitan, components/loss.py)."""
AUTOMODEL = replace(
    PYTORCH_FSDP,
    name="nemo-automodel",
    summary="NeMo Automodel: Hugging Face models under FSDP2",
    attention="flash2",
    unfused=EAGER,
)
"""Hugging Face models under FSDP2: eager point-wise operators, scaled_dot_product_attention."""
HUGGING_FACE = FrameworkTraits(
    name="hugging-face",
    summary="Hugging Face models, eager, one device or plain data parallelism",
    attention="unfused",
    unfused=EAGER,
)
NEMO = FrameworkTraits(
    name="nemo", summary="a NeMo performance recipe: tuned Megatron-Core with DeepEP dispatch", dispatch="node"
)
"""Experts' tokens go through DeepEP or HybridEP (flex dispatcher), once a node and device."""

NANOTRON = FrameworkTraits(
    name="nanotron",
    summary="nanotron of 2024-25",
    launch_s=32e-6,
    eager_pointwise=True,
    parameter_hooks=3.0,
    accumulation_bytes=10.0,
    reduction_bucket_bytes=25.0 * 2**20,
    gather_by_tensor=True,
    reduction_launches=10.0,
    attention="flash2",
    unfused=frozenset({"activation", "cross_entropy", "rope"}),
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
"""huggingface/nanotron: FlashAttention-2 behind transposed copies; split, silu and product of a gated activation
(nn/activations.py); vocabulary-parallel loss over fp32 logits (parallel/tensor_parallel/functional.py); every gradient
added to an fp32 buffer once a micro-batch, 2 bytes read, 4 read, 4 written (optim/gradient_accumulator.py);
DistributedDataParallel buckets of 25 MiB; ZeRO-1 gathers weight by weight (optim/zero.py).

Fitted on the HF Ultra-Scale sweep (fit part): ``launch_s``, from 4.4 ms a layer that neither tensor parallelism nor
width changes; ``reduction_launches``, from 0.3 ms a gathered weight between two nodes.  With this and the mechanisms
that it switches on, median error of one node's runs 23 % -> 3 %, of the first pass without pipelines 36 % -> 4 % (held
part 50 % -> 6 %).

Memory: DistributedDataParallel without gradient views beside an fp32 accumulator
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
NANOTRON_MEETING = replace(NANOTRON, name="nanotron, ranks meet on the host", meeting_s=215e-6)
"""The sweep's second pass, and the pipelines of the first: over several nodes a layer takes 2.15 ms more for each
tensor-parallel rank, however much is sent and however many samples are computed, and nothing more inside one node.  In
ten collectives a layer that is 215 us a rank and collective.  torch's collective checks (TORCH_DISTRIBUTED_DEBUG) have
this shape; that they are the cause is inferred, the rows do not state it.  Fitted on the fit part: median error of the
second pass 40 % -> 5 %, held part 70 % -> 7 %."""
NANOTRON_STALLING = replace(NANOTRON_MEETING, name="nanotron, ranks meet and transfers stall", transfer_stall_s=0.24)
"""Pipelines over nodes in the sweep's first pass (its notes: ``after_pp_fix=False``): each transfer blocks its hosts
for a quarter of a second, whatever its size, degree and model: a defect that the second pass does not have.  Fitted on
136 rows of the fit part: median error 94 % -> 6 %, held part 94 % -> 6 %."""

FRAMEWORKS: dict[str, FrameworkTraits] = {
    traits.name: traits
    for traits in (
        TUNED,
        NEMO,
        MEGATRON_2021,
        MEGATRON_DEEPSPEED,
        NANOTRON,
        PYTORCH_FSDP,
        TORCHTITAN,
        LLM_FOUNDRY,
        AUTOMODEL,
        HUGGING_FACE,
    )
}
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
