"""Parameters, gradients and optimizer states spread over data-parallel ranks: FSDP2 on every layer.

| zero_stage | here |
|---|---|
| 0 | HSDP mesh whose shard axis has one rank: replicated parameters, all-reduced gradients |
| 1 | sharded parameters, gathered before the first use and kept until the step ends; gradients reduce-scattered once |
| 2 | as 1, and gradients reduce-scattered after every micro-batch |
| 3 | as 2, and parameters dropped after each layer's forward and gathered again for its backward |

Mixed precision: fp32 master weights, computation in the plan's precision, reduction in ``gradient_dtype``.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

from planner.backends.native.trainer.mesh import Meshes
from planner.backends.native.trainer.mixture import Experts, Mixture
from planner.backends.native.trainer.model import DecoderChunk
from planner.backends.native.trainer.settings import TrainSettings
from planner.question.problem import Workload


def precision_policy(workload: Workload, settings: TrainSettings) -> MixedPrecisionPolicy:
    """Dtypes of computation and reduction; everything fp32 when the run asks for it."""
    if settings.precision == "fp32":
        return MixedPrecisionPolicy()
    reduce_dtype = torch.float32 if workload.gradient_dtype == "fp32" else torch.bfloat16
    return MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduce_dtype)


def shard_chunk(chunk: DecoderChunk, meshes: Meshes, policy: MixedPrecisionPolicy) -> FSDPModule:
    """Wrap experts, layers and the chunk, innermost first; returns the chunk as the FSDP module that it now is."""
    drop = meshes.strategy.zero_stage == 3
    data, expert_data = meshes.data_mesh(), meshes.expert_data_mesh()
    for block in chunk.blocks().values():
        if isinstance(block.feed_forward, Mixture):
            _shard_experts(block.feed_forward.experts, expert_data, meshes, policy)
        fully_shard(block, mesh=data, reshard_after_forward=drop, mp_policy=policy)
    return fully_shard(chunk, mesh=data, reshard_after_forward=drop, mp_policy=policy)


def _shard_experts(experts: Experts, mesh: DeviceMesh, meshes: Meshes, policy: MixedPrecisionPolicy) -> None:
    strategy = meshes.strategy
    drop = strategy.zero_stage == 3
    wrapped = fully_shard(experts, mesh=mesh, reshard_after_forward=drop, mp_policy=policy)
    # A mean over the dp * cp losses.  FSDP would divide by the experts' own, other, number of ranks: each of them
    # also works for tokens of the ep group, and tp ranks hold parts of the same samples.
    wrapped.set_gradient_divide_factor(float(strategy.dp * strategy.cp))
    # Gloo has no pre-multiplied sum.  Not with one shard: torch 2.13 would then divide twice
    # (_fsdp_collectives.py, foreach_reduce).
    if mesh.size(-1) > 1:
        wrapped.set_force_sum_reduction_for_comms(True)


def prepare_backward(chunks: Iterable[FSDPModule], zero_stage: int, *, last: bool) -> None:
    """Say, before the backward of one micro-batch, what becomes of its gradients and of the gathered parameters.

    Gradients are reduced now or only accumulated; below ZeRO-3 the next micro-batch uses the same gathered parameters.
    """
    for chunk in chunks:
        chunk.set_reshard_after_backward(last or zero_stage == 3)
        chunk.set_is_last_backward(last)
        chunk.set_requires_gradient_sync(last or zero_stage >= 2)
        chunk.set_requires_all_reduce(last)
