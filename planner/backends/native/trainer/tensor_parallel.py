"""Splits the matrices of a chunk over tp: a DTensor plan by module name.

Column-split into a branch, row-split out of it.  With sequence parallelism the residual stream and the norms hold
1/tp of the tokens, gathered on the way into a branch and reduce-scattered on the way out (arXiv 2205.05198).
Routed experts are not split here: their tokens stay sequence-split and travel over ep.
"""

from __future__ import annotations

from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Placement, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from planner.backends.native.trainer.attention import Attention
from planner.backends.native.trainer.branch_input import TensorEntry
from planner.backends.native.trainer.feed_forward import FeedForward
from planner.backends.native.trainer.mixture import Mixture
from planner.backends.native.trainer.model import Block, DecoderChunk

TensorPlan = dict[str, ParallelStyle]


def split_chunk(chunk: DecoderChunk, mesh: DeviceMesh, *, sequence_parallel: bool) -> None:
    """Turn the parameters of a chunk into DTensors over ``mesh`` (one axis, tp) in place."""
    stream: Placement = Shard(1) if sequence_parallel else Replicate()
    parallelize_module(chunk, mesh, _ends(chunk, stream))
    for block in chunk.blocks().values():
        parallelize_module(block, mesh, _block(block, stream))
        for module in block.modules():
            if isinstance(module, Attention | FeedForward):
                module.entry = TensorEntry(mesh, stream)
    chunk.tie()


def _ends(chunk: DecoderChunk, stream: Placement) -> TensorPlan:
    plan: TensorPlan = {}
    for name in ("embedding", "position_embedding"):
        if getattr(chunk, name) is not None:
            plan[name] = RowwiseParallel(input_layouts=Replicate(), output_layouts=stream)
    if chunk.head is not None:
        plan["head"] = ColwiseParallel(input_layouts=stream, output_layouts=Shard(-1))
    if stream.is_shard():
        for name in ("embedding_norm", "final_norm"):
            if getattr(chunk, name) is not None:
                plan[name] = _tokens()
    return plan


def _block(block: Block, stream: Placement) -> TensorPlan:
    plan: TensorPlan = {
        "attention.query": ColwiseParallel(),
        "attention.key": ColwiseParallel(),
        "attention.value": ColwiseParallel(),
        "attention.output": RowwiseParallel(output_layouts=stream),
    }
    if block.attention.query_norm is not None:
        # One weight vector for all heads: each rank sees some of the heads, [batch, tokens, heads, features].
        plan["attention.query_norm"] = SequenceParallel(sequence_dim=2, use_local_output=True)
        plan["attention.key_norm"] = SequenceParallel(sequence_dim=2, use_local_output=True)
    if isinstance(block.feed_forward, Mixture):
        plan["feed_forward.router"] = _tokens()
        if block.feed_forward.shared is not None:
            plan |= _feed_forward("feed_forward.shared", block.feed_forward.shared, stream)
        if block.feed_forward.shared_gate is not None:
            plan["feed_forward.shared_gate"] = _tokens()
    else:
        plan |= _feed_forward("feed_forward", block.feed_forward, stream)
    if stream.is_shard():
        for name in ("attention_norm", "feed_forward_norm", "attention_post_norm", "feed_forward_post_norm"):
            if getattr(block, name) is not None:
                plan[name] = _tokens()
    return plan


def _feed_forward(prefix: str, module: FeedForward, stream: Placement) -> TensorPlan:
    plan: TensorPlan = {
        f"{prefix}.up": ColwiseParallel(),
        f"{prefix}.down": RowwiseParallel(output_layouts=stream),
    }
    if module.gate is not None:
        plan[f"{prefix}.gate"] = ColwiseParallel()
    return plan


def _tokens() -> SequenceParallel:
    """A module that works on each token alone, over this rank's tokens; its weights are replicated."""
    return SequenceParallel(sequence_dim=1, use_local_output=True)
