"""Traits of the back-ends that train models of Hugging Face transformers: DeepSpeed and Accelerate, as we emit them."""

from __future__ import annotations

from dataclasses import replace

from planner.framework.pytorch import EAGER
from planner.framework.traits import FrameworkTraits

TRANSFORMERS = FrameworkTraits(
    name="transformers",
    summary="Layers of Hugging Face transformers, eager, under any data parallelism",
    attention="flash2",
    unfused=EAGER,
    keeps_gate_output=True,
    norm_copies=2.0,
    reduces_each_column=True,
    kept_logit_bytes=4.0,
    passing_logit_bytes=8.0,
)
"""transformers 5.23.0 with attn_implementation "sdpa", which our scripts ask for.  RMSNorm computes in fp32 and keeps
that copy and the normalized 16-bit input (models/llama/modeling_llama.py, LlamaRMSNorm); gate, product and sum are
kernels of their own (LlamaMLP).  What one Llama layer keeps was counted on a CPU (torch 2.13.0, saved_tensors_hooks;
hidden 512, width 1536, 8 and 4 heads, 2 x 256 tokens): 23.29 x 16-bit hidden states, of which these traits give 23.00
(the rest: rotary tables, statistics).  The loss turns logits to fp32 and runs PyTorch's cross-entropy
(loss/loss_utils.py, ForCausalLMLoss): kept log-softmax, and two fp32 gradients, as in torchtitan.
Query, key, value, gate and up projections are linear layers of their own, each of which sums its input gradient over
the tensor-parallel ranks (models/llama/configuration_llama.py:49-57; distributed/tensor_parallel.py:606; deepspeed
0.19.8, module_inject/layers.py:258-320): five all_reduces in a layer's backward pass, not two.
Launches and calls of the host: *not studied* (eager layers launch several times as many kernels as fused ones)."""
DEEPSPEED = replace(
    TRANSFORMERS,
    name="deepspeed",
    summary="DeepSpeed 0.19.8 around Hugging Face layers",
    splits_backward=False,
    zero_all_reduces=True,
    overlaps_tp_forward=False,
    bucket_bytes_per_parameter=2.0,
)
"""Our script (``planner.emit.deepspeed``) builds transformers layers, in a PipelineModule too.

DualPipeV keeps weight gradients inside the backward pass (deepspeed 0.19.8, runtime/pipe/schedule.py:338-341).
ZeRO-1 and 2 all_reduce buckets of gradients and copy their part out: use_multi_rank_bucket_allreduce is on by default
(runtime/zero/config.py:119, runtime/zero/stage_1_and_2.py:1695 and 1545); so does ZeRO-1 with fp32 gradients on bf16
weights, with a pipeline too (runtime/engine.py:3921, runtime/pipe/engine.py:287-298).  There the optimizer keeps 16-bit
gradients beside the fp32 ones and zeroes instead of freeing them (runtime/bf16_optimizer.py:500-533); with 16-bit
gradients the two bytes are too many.
AutoTP's tp_overlap_comm starts the all_reduce of an input gradient before the matmul of the weight gradient, and does
nothing in the forward pass (module_inject/layers.py:388-389 and 993-998, AsyncColumnParallel).
Not modelled: buffers of reduce_bucket_size (500 million elements, twice with overlap_comm: up to 2 GB) and
allgather_bucket_size (runtime/zero/config.py:113 and 132).
Times: four published rows alone (FlagOpen/FlagPerf@1b5a03039, llama2_7b-deepspeed, ZeRO-3 on eight A800): 1.08, median
error 10 %; their memory, in a unit that the page does not state, is predicted at 0.73.  Nothing is fitted."""
ACCELERATE = replace(
    TRANSFORMERS,
    name="accelerate",
    time_spread=0.127,
    studied_devices=8,
    summary="Accelerate 1.15.0: FSDP2 around Hugging Face models",
    fp32_shards=True,
    regathers_zero2=True,
)
"""FSDP2 of fp32 parameters (accelerate 1.15.0, utils/fsdp_utils.py:768-885); without resharding after the forward pass
parameters are still dropped after each backward pass (torch 2.13.0, _fsdp_param_group.py:607-638).
``Accelerator.accumulate`` would keep whole gradients until the last micro-batch (accelerator.py:1166-1171); our script
asks for a reduction of each (sync_each_batch, accelerator.py:1285-1293), so they are ZeRO-2 and 3.  Its plans through
DeepSpeed are ``DEEPSPEED``'s.

Nothing is fitted.  ``time_spread``: published runs of Hugging Face trainers on one to eight A100
(foundation-model-stack/fms-acceleration@876e2ed6f: transformers 4.48, FSDP, full and LoRA).  Fit part, Mistral 7B, 69
rows: median predicted over measured 1.06, median error 6 %, 90th percentile 15.7 % on one device and 13.3 % on several.
Held part: Llama 3 8B, 58 rows, 1.06, 7 %, 12-15 %; VectorInstitute/vectorlm, 18 rows, 1.06, 6 % (7 % with compiled
FSDP's traits).  A mixture of experts (PowerLM 3B, 14 rows) is at 0.81, with twice and more in single rows: experts are
*not studied*."""
