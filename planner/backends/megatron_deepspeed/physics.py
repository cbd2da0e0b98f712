"""The behaviour of Megatron-DeepSpeed of 2021-22."""

from __future__ import annotations

from dataclasses import replace

from planner.backends.megatron.physics import MEGATRON_2021

MEGATRON_DEEPSPEED = replace(
    MEGATRON_2021,
    name="megatron-deepspeed",
    summary="Megatron-DeepSpeed of 2021-22: as megatron-2021, under DeepSpeed's pipeline engine",
    collective_skew_s=120e-6,
    pads_vocabulary=False,
    reduce_bucket_elements=5e8,
    live_elements=1e9,
)
"""Skew fitted on the same rows (fit part: without it mean error 5.7 % and regret 4.1 %, with it 5.0 % and 2.3 %).  Its
unsplit vocabulary matmul runs at less than half the rate of a split one: not padded.
Buckets have DeepSpeed's default sizes (``planner.predict.memory.zero_memory``)."""
MEGATRON_DEEPSPEED_PIPELINE = replace(
    MEGATRON_DEEPSPEED,
    name="megatron-deepspeed-pipeline",
    summary="Megatron-DeepSpeed of 2022 in bf16: DeepSpeed's pipeline engine and its bf16 optimizer",
    blocking_hops=True,
    accumulation_bytes=26.0,
)
"""Stages send and receive on the stream that computes (deepspeed, runtime/pipe/p2p.py, no async_op).  For each
micro-batch the bf16 optimizer clears the 16-bit gradient (2 bytes a parameter), autograd adds to it (6), a copy in fp32
is made (6) and added to the accumulator (12) (deepspeed@38327e07f, runtime/bf16_optimizer.py:316-362,
runtime/pipe/engine.py:854-867).  In fp16 autograd's sum is all: 6, so that such plans are up to 3 % too slow.  Three
published runs in bf16 (arXiv 2201.11990, table 4) that no constant was chosen with: 0.85 -> 0.99 of what they took."""
