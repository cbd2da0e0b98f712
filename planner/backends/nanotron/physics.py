"""Traits of nanotron, as the HF Ultra-Scale sweep ran it."""

from __future__ import annotations

from dataclasses import replace

from planner.predict.physics.physics import Physics

NANOTRON = Physics(
    name="nanotron",
    time_spread=0.12,
    studied_devices=256,
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
NANOTRON_MEETING = replace(NANOTRON, name="nanotron-meeting", meeting_s=215e-6)
"""The sweep's second pass, and the pipelines of the first: over several nodes a layer takes 2.15 ms more for each
tensor-parallel rank, however much is sent and however many samples are computed, and nothing more inside one node.  In
ten collectives a layer that is 215 us a rank and collective.  torch's collective checks (TORCH_DISTRIBUTED_DEBUG) have
this shape; that they are the cause is inferred, the rows do not state it.  Fitted on the fit part: median error of the
second pass 40 % -> 5 %, held part 70 % -> 7 %."""
NANOTRON_STALLING = replace(NANOTRON_MEETING, name="nanotron-stalling", transfer_stall_s=0.24)
"""Pipelines over nodes in the sweep's first pass (its notes: ``after_pp_fix=False``): each transfer blocks its hosts
for a quarter of a second, whatever its size, degree and model: a defect that the second pass does not have.  Fitted on
136 rows of the fit part: median error 94 % -> 6 %, held part 94 % -> 6 %."""
