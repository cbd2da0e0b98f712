"""The behaviour of DeepSpeed 0.19.8 around the models that our script builds."""

from __future__ import annotations

from dataclasses import replace

from planner.backends.hugging_face.physics import TRANSFORMERS

DEEPSPEED = replace(
    TRANSFORMERS,
    name="deepspeed",
    summary="DeepSpeed 0.19.8 around Hugging Face layers",
    splits_backward=False,
    zero_all_reduces=True,
    newton_schulz="gram",
    overlaps_tp_forward=False,
    reduce_bucket_elements=5e8,
    live_elements=1e9,
    blocking_hops=True,
)
"""Our script (``planner.backends.deepspeed``) builds transformers layers, in a PipelineModule too.

DualPipeV keeps weight gradients inside the backward pass (deepspeed 0.19.8, runtime/pipe/schedule.py:338-341).
ZeRO-1 and 2 all_reduce buckets of gradients and copy their part out: use_multi_rank_bucket_allreduce is on by default
(runtime/zero/config.py:119, runtime/zero/stage_1_and_2.py:1695 and 1545); so does ZeRO-1 with fp32 gradients on bf16
weights, with a pipeline too (runtime/engine.py:3921, runtime/pipe/engine.py:287-298).
Buckets have the default sizes (runtime/zero/config.py:113, 245 and 251), which our files leave; what they and ZeRO's
other copies hold is in ``planner.predict.memory.zero_memory``.
Stages of its pipeline send and receive on the stream that computes (runtime/pipe/p2p.py, no async_op).
AutoTP's tp_overlap_comm starts the all_reduce of an input gradient before the matmul of the weight gradient, and does
nothing in the forward pass (module_inject/layers.py:388-389 and 993-998, AsyncColumnParallel).
Not modelled: copies of at most one part of the gradients (ZeRO-2 and 3) at the step, when activations are gone; the
buffer of the largest tensor under offload (runtime/zero/stage_1_and_2.py:659).
Times: four published rows alone (FlagOpen/FlagPerf@1b5a03039, llama2_7b-deepspeed, ZeRO-3 on eight A800): 1.08, median
error 10 %; their memory, in a unit that the page does not state, is predicted at 0.80.  Twenty-four rows of LoRA
(QwenLM/Qwen@2df8e8ac4, one A100, the largest with ZeRO-3 on four; another model code, memory of the whole process):
memory 0.70, seconds 0.77.  Nothing is fitted."""
