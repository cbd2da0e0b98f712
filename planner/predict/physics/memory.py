"""Memory traits: what a back-end keeps in memory beside what model and strategy ask for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class MemoryTraits:
    """States, activations, logits and buffers; the defaults are Megatron-Core's."""

    bucket_bytes_per_parameter: float = 0.0
    """Bytes a parameter of 16-bit reduction buckets that live beside the accumulated gradients, where several ranks
    reduce whole gradients (ZeRO-0 and ZeRO-1)."""
    reduce_bucket_elements: float = 0.0
    """Elements of the buffers through which DeepSpeed's ZeRO reduces gradients
    (``planner.predict.memory.zero_memory``); 0 = another data parallelism."""
    live_elements: float = 0.0
    """Parameters that its ZeRO-3 gathers ahead at most, and within which a module is used again that stays whole."""
    deepspeed_where_needed: bool = False
    """Whether DeepSpeed shards only what the framework cannot shard itself: ZeRO-1, and states on the host."""
    passing_gradient_bytes: float = 0.0
    """Bytes a parameter of 16-bit gradients that a backward pass leaves behind and the accumulation then frees."""
    fp32_shards: bool = False
    """Whether sharded parameters and gradients are fp32 (PyTorch FSDP): the parameter is its own master."""
    master_remainders: bool = False
    """Whether a precision-aware optimizer (ZeRO-1) stores of fp32 master weights only the 16 bits that bf16 weights
    lack (megatron-core 0.19.2 core/optimizer/optimizer_config.py:192, distrib_optimizer.py:1008)."""
    keeps_gate_output: bool = False
    """Whether a gated non-linearity is two kernels, so that its first one's output is kept beside gate and up."""
    norm_copies: float = 0.0
    """Further 16-bit elements kept for each input element of a norm: an fp32 copy of the input, the normalized input
    before the weight."""
    attention_output_copies: float = 0.0
    """Further copies of the attention output that are kept: flash kernels want batch-first tensors, Megatron's are
    sequence-first, so the kernel keeps its output and the projection a transposed copy."""
    gathered_context: bool = False
    """Whether ring context parallelism is an all-gather of keys and values, which are then kept whole."""
    operator_checkpointing: bool = False
    """Whether selective recompute is PyTorch's by operator: outputs of every second matmul and of attention stay."""
    compiled_checkpointing: bool = False
    """Whether a compiler cuts that layer's backward pass: what it never reads, the output of the last matmul, is not
    kept then (torch, functorch partitioners: saved are tensors with a reader in the backward graph)."""
    kept_logit_bytes: float = 4.0
    """Bytes a logit kept for the loss's backward pass: an fp32 softmax."""
    passing_logit_bytes: float = 2.0
    """Bytes a logit beside the kept ones while the loss runs: the 16-bit logits, or their 16-bit gradient."""
    collective_buffers: int = 0
    """Buffers for a whole micro-batch's hidden states that tensor-parallel collectives hold for ever."""
    whole_sequence_tensors: float = 0.0
    """Tensors of a whole micro-batch's hidden states alive at once inside a layer's passes: what a collective is about
    to scatter or has just gathered, and what its side stream has not released yet."""
    backward_working_share: float = 0.0
    """Gradients alive at once while a layer runs backward, as a part of what the layer keeps."""
    step_copies: bool = False
    """Whether ZeRO-1's optimizer step gathers the 16-bit weights through flat copies of shard and whole."""
    further_communicators: int = 0
    """Communicators beside one for every parallel axis, where there is more than one device."""
    bubbles_keep: bool = False
    """Whether GPipe and its breadth-first form are one loop over all stages, whose iterations keep as much where a
    stage has no micro-batch yet or none any more: ``stages - 1`` further chunks of a micro-batch."""
    stores_rounds: bool = False
    """Whether that loop stores, on every stage, the hidden states of all micro-batches between two of its rounds."""
    overlap_warmup_chunk: bool = False
    """Whether overlap of experts' exchanges runs one chunk more before the first backward pass of an interleaved
    pipeline."""
    moments_apart: bool = False
    """Whether the loss, the backward pass of a layer, its end and the optimizer step are billed each at its own moment
    (``planner.predict.memory.moments``), for PyTorch FSDP2 with one unit a layer and one for the ends."""
    whole_head_input: bool = False
    """Whether the head keeps its gathered input under sequence parallelism, and not this rank's part of it."""
    split_loss_bytes: float | None = None
    """``passing_logit_bytes`` of a loss whose vocabulary is split over tensor-parallel ranks; None = the same."""
    eight_bit_experts: bool = False
    """Whether grouped matmuls of an 8-bit run keep their inputs in 8 bit, and copies of their weights in 8 bit between
    micro-batches, as they stand and transposed (TransformerEngine, module/grouped_linear.py)."""
    eight_bit_inputs: bool = False
    """Whether dense matmuls of an 8-bit run's layers keep their inputs in 8 bit (TransformerEngine, module/linear.py,
    layernorm_linear.py and layernorm_mlp.py: the quantised input is saved); attention keeps its own output in 16 bit
    beside the one that the projection keeps."""
    eight_bit_weights: bool = False
    """Whether such a run keeps weights of its layers in 8 bit between micro-batches, as they stand and transposed,
    beside the 16-bit ones (the workspaces of the same modules): without --fp8-param-gather.  ZeRO-3 casts what it
    gathers."""
    narrow_gate_inputs: bool = False
    """Whether experts' gated non-linearities keep what they read in 8 bit (DeepSeek-V3's report, arXiv 2412.19437,
    section 3.3.3; Megatron-Core's activation_func_fp8_input_store)."""
    kept_fragmentation: float = 1.0
    """Memory that the allocator's pool needs for each byte of kept activations."""
    memory_spread: float = 0.02
    """Standard deviation of measured over predicted memory."""
