"""How did MegaScale behave?"""

from __future__ import annotations

from planner.physics.physics import Physics

MEGASCALE = Physics(
    name="megascale",
    summary="MegaScale: Megatron-LM with ZeRO-2 under an interleaved pipeline",
    pipeline_keeps_whole=True,
)
"""arXiv 2402.15627, section 3.2 (from memory): the parameters of a model chunk are gathered before its first forward
pass, the first of them prefetched at the start of the step, and its gradients are scattered after its last backward
pass; so both once a step.  Times: *not studied*, its rows are in no set that was fitted."""
