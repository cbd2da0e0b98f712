"""Releases of Megatron-Bridge that NVIDIA's published tables ran, as its performance recipes run them.

What a recipe switches on for one model (degrees, overlap of experts' exchanges, replayed modules, dispatcher) are
fields of a strategy.  What its software does by itself is here.  Read at the tags v0.1.0rc4, v0.2.0, v0.3.0, v0.4.0 and
v0.5.1 of NVIDIA-NeMo/Megatron-Bridge; containers: 25.09 is v0.1.0, 25.11 v0.2.0, 26.06.01 v0.5.1.
"""

from __future__ import annotations

from dataclasses import replace

from planner.backends.nemo.physics import NEMO

RECIPES = replace(
    NEMO,
    name="bridge-recipes",
    summary="a performance recipe of Megatron-Bridge 0.1 to 0.5: tuned Megatron-Core",
    dispatch="expert",
)
"""NeMo's recipes moved here: TransformerEngine's loss, 16-bit gradients, graphs on Grace hosts.  A plan names its
dispatcher; without one tokens go in an all-to-all (scripts/performance/utils/overrides.py:225-228 @v0.4.0)."""
