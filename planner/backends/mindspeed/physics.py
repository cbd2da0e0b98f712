"""Traits of MindSpeed."""

from __future__ import annotations

from planner.predict.physics.host import CORE_CALL_S, CORE_LAUNCH_S
from planner.predict.physics.physics import Physics

MINDSPEED = Physics(
    name="mindspeed",
    summary="MindSpeed core_v0.12.1: Megatron on Ascend",
    launch_s=CORE_LAUNCH_S,
    call_s=CORE_CALL_S,
    splits_backward=False,
)
"""Our files ask for Ascend's fused attention, RMSNorm, SwiGLU and rotary embedding (``kernel_flags`` of
``planner.backends.mindspeed.flags``).  DualPipeV keeps weight gradients inside the backward passes but for one phase of
the warm-up, where each runs right behind its input gradient; --dualpipev-dw-detach, which we do not write, would split
those of the end too (Ascend/MindSpeed@028de58ca, core/pipeline_parallel/dualpipev/dualpipev_schedules.py:1093-1149 and
1521-1558). Simulated with equal stages, F : B = 1 : 2 and p = 2..8, this release needs up to 5 % less than without any
split and 11 % more than with all of it.

Times and memory beside that: *not studied*.  A rough check without degrees: tokens a second and device of our best
plans over those that its trainer publishes for Atlas 900 A2 (ModelLink, README.md, a table of runs with MC2; device
taken as 910B2): Llama 2 7B, 13B and 70B 0.91, 1.10 and 0.92, Llama 3.1 8B and 70B 1.49 and 0.93."""
