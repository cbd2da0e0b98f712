"""Communication traits: buckets, dispatch of routed tokens, hops, ranks that arrive at different times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class CommunicationTraits:
    """Collectives beside their bytes; the defaults cost nothing more."""

    dispatch: Literal["expert", "node"] = "expert"
    """Whether a routed token is sent once for each of its experts, or once to a node and device that hold several."""
    pads_experts: bool = False
    """Whether every expert takes one number of tokens, to which what it gets is cut or padded (Megatron-Core's
    moe_pad_expert_input_to_capacity), so that nothing is counted."""
    narrow_dispatch: bool = False
    """Whether an 8-bit run dispatches tokens (and, backward, gradients of the combined ones) in 8 bit with their
    scales; combined hidden states stay in 16 bit (arXiv 2412.19437, section 3.3.2)."""
    scattered_hops: bool = False
    """Whether a hidden state that all tensor-parallel ranks hold whole goes to the next stage in parts, a part a rank,
    and is gathered there (arXiv 2104.04473, section 4.1); under sequence parallelism nothing is held whole."""
    blocking_hops: bool = False
    """Whether stages send and receive on the stream that computes, so that each transfer holds up its stage."""
    collective_skew_s: float = 0.0
    """Spread of the moments at which the ranks of a tensor-parallel group reach one collective, each behind its own
    host; the slowest of n ranks is late by sqrt(2 ln n) spreads."""
    reduction_bucket_bytes: float = 0.0
    """16-bit gradients that close a bucket, which one collective reduces; 0 = buckets so large that their number does
    not matter."""
    reduction_launches: float = 0.0
    """Launches that one such collective costs the host: splitting, copies, the call itself."""
    gather_by_tensor: bool = False
    """Whether ZeRO-1 gathers each weight by a collective of its own."""
    pipeline_keeps_whole: bool = False
    """Whether the stages of a pipeline gather their parameters once a step and keep them, and accumulate whole
    gradients that are reduced once: ZeRO-2 and 3 are then run as ZeRO-1 (``cost.as_run``)."""
    pipeline_reduces_last: bool = False
    """Whether that reduction starts after the stage's last backward pass, so that nothing of the stage hides it."""
    drops_chunks: bool = False
    """Whether the runtime of a pipeline keeps only a few chunks of a rank gathered, where parameters are sharded
    (``planner.predict.cost.regathers``)."""
    regathers_zero2: bool = False
    """Whether ZeRO-2 drops the gathered parameters after each backward pass, so that every micro-batch gathers them
    once, before its forward pass, and not the step (FSDP2 that does not reshard after the forward pass)."""
    zero_all_reduces: bool = False
    """Whether ZeRO-1 and 2 all_reduce gradients, of which a rank then keeps its part, instead of reduce_scatter."""
    reduces_each_column: bool = False
    """Whether every column-parallel matmul (query, key, value, gate, up: each its own) all_reduces its input gradient,
    instead of one all_reduce for all that share an input."""
    overlaps_tp_forward: bool = True
    """Whether overlap of tensor-parallel collectives reaches the forward pass.  If not, only that of the backward pass
    hides, whole, under the matmul of the weight gradient beside it."""
    overlaps_latent_tp: bool = True
    """Whether tensor-parallel collectives overlap with matmuls in models with latent attention, too."""
    overlaps_tp_beside_ep: bool = True
    """Whether they do so beside the overlap of experts' exchanges on NVIDIA devices before Blackwell, too."""
