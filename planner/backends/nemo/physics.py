"""The behaviour of a NeMo performance recipe."""

from __future__ import annotations

from planner.predict.physics.host import CORE_CALL_S, CORE_LAUNCH_S
from planner.predict.physics.physics import Physics

NEMO = Physics(
    name="nemo",
    time_spread=0.095,
    studied_devices=2048,
    summary="a NeMo performance recipe: tuned Megatron-Core with DeepEP dispatch",
    dispatch="node",
    launch_s=CORE_LAUNCH_S,
    call_s=CORE_CALL_S,
    overlaps_latent_tp=False,
    overlaps_tp_beside_ep=False,
)
"""Experts' tokens go through DeepEP or HybridEP (flex dispatcher), once a node and device.  Overlap as in
``MEGATRON_CORE``."""
