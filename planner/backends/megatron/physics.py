"""Traits of Megatron-LM and what is built on it, by generation."""

from __future__ import annotations

from dataclasses import replace

from planner.predict.physics.host import (
    CORE_CALL_S,
    CORE_EACH_EXPERT_S,
    CORE_EXPERT_LAUNCHES,
    CORE_LAUNCH_S,
    MEGATRON_CALL_S,
    MEGATRON_LAUNCH_S,
)
from planner.predict.physics.physics import Physics

MEGATRON_2021 = Physics(
    name="megatron-2021",
    time_spread=0.09,
    studied_devices=8,
    summary="Megatron-LM before 2023: eager launches, unfused attention",
    attention="unfused",
    unfused=frozenset({"cross_entropy"}),
    separate_reductions=True,
    launch_s=MEGATRON_LAUNCH_S,
    call_s=MEGATRON_CALL_S,
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
MEGATRON_TEST = Physics(
    name="megatron-test",
    time_spread=0.42,
    studied_devices=8,
    summary="Megatron-LM's functional tests: deterministic, eager",
    launch_s=60e-6,
    call_s=300e-6,
    collective_launches=1.0,
    parameter_hooks=2.0,
    dropout=True,
    eight_bit_inputs=True,
    eight_bit_weights=True,
)
"""The tests leave dropout at 0.1.  Modules of TransformerEngine do more in Python than those of 2021, and deterministic
mode waits.  Launch and call seconds fitted on 69 rows (fit part): median error 87 % -> 23 %; held part 88 % -> 20 %."""
MEGATRON_TEST_FLASH = replace(MEGATRON_TEST, name="megatron-test-flash", attention_output_copies=1.0)
"""Before Hopper TransformerEngine runs attention with the flash-attention package, on transposed copies; on Hopper
with cuDNN's kernel, which takes Megatron's layout."""
MEGATRON_TEST_UNFUSED = replace(MEGATRON_TEST, name="megatron-test-unfused", attention="unfused")
MEGATRON_CORE = Physics(
    name="megatron-core",
    master_remainders=True,
    time_spread=0.105,
    studied_devices=2048,
    summary="Megatron-LM with Megatron-Core 0.19.2: fused kernels, what overlaps and what does not",
    wide_loss=True,
    launch_s=CORE_LAUNCH_S,
    call_s=CORE_CALL_S,
    expert_launches=CORE_EXPERT_LAUNCHES,
    eager_expert_bias=True,
    eager_expert_weights=True,
    sequence_first_scans=True,
    each_expert_s=CORE_EACH_EXPERT_S,
    overlaps_latent_tp=False,
    overlaps_tp_beside_ep=False,
    overlap_warmup_chunk=True,
    eight_bit_experts=True,
    eight_bit_inputs=True,
    eight_bit_weights=True,
)
"""As a tuned run, with a host and four facts of the release.

Our files set --cross-entropy-loss-fusion with the native form (``backends.megatron.flags``): ``wide_loss``.

A TransformerEngine linear layer whose buffer has another name than qkv, proj, fc1 or fc2 switches ``tp_comm_overlap``
off in the configuration that all layers share (core/extensions/transformer_engine.py:922-932); latent attention builds
such layers in every layer (core/transformer/multi_latent_attention.py:519-613), so that only the first layer's output
projection overlaps.

Before Blackwell tensor parallelism wants CUDA_DEVICE_MAX_CONNECTIONS = 1 and expert overlap a larger number
(training/arguments.py:1413-1436); our files set 32 for expert overlap (``backends.megatron.environment``), so that one
is counted and tensor-parallel overlap is not: which of the two wins is the release's words, how much is *not studied*.

Expert overlap runs one more chunk forward before an interleaved pipeline's first backward pass
(core/pipeline_parallel/schedules.py:939-943).  Memory beside that: *not studied*.

``time_spread`` is that of the same core under NeMo's recipes (dense models, 0.078), a third wider: of the command line
itself only six runs are published (median error 6.7 %), which cannot give one."""
