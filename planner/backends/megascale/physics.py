"""The behaviour of MegaScale."""

from __future__ import annotations

from planner.predict.physics.host import CORE_CALL_S, CORE_LAUNCH_S
from planner.predict.physics.physics import Physics

MEGASCALE = Physics(
    name="megascale",
    summary="MegaScale: Megatron-LM with ZeRO-2 under an interleaved pipeline",
    launch_s=CORE_LAUNCH_S,
    call_s=CORE_CALL_S,
    pipeline_keeps_whole=True,
)
"""arXiv 2402.15627.  Section 2: ZeRO-2, which adds no communication.  Section 3.2: parameters of a model chunk are
gathered before its forward pass and gradients scattered behind its backward pass, both under other chunks; the first
gather is prefetched under the loading of data, the last scatter is exposed (1 / (2 vpp) of that traffic each).  The
paper does not write how often a step a chunk is gathered; that it is once follows from section 2 and from table 3:
all overlap of data parallelism is worth 1.5 points of MFU on 256 devices, where a gather for each micro-batch would
cost several times that.  Collectives of tensor parallelism are fused with the matmuls of the feed-forward alone, whose
blocks run beside attention (parallel transformer blocks), worth 2.2 points; ``overlap_tp`` here hides all of them, so
that this is an upper bound of what it gains.  FlashAttention-2, fused norms and GeLU: section 3.3.
Its 175B runs also use sliding windows and parallel blocks (section 3.1, table 3: 5.6 points), which a row has to say.
Exposed first and last chunk: not modelled.  Times: *not studied*, its rows are in no set that was fitted."""
