"""How does Accelerate 1.15.0 behave around the models that our script builds?"""

from __future__ import annotations

from dataclasses import replace

from planner.backends.hugging_face.physics import TRANSFORMERS

ACCELERATE = replace(
    TRANSFORMERS,
    name="accelerate",
    summary="Accelerate 1.15.0: FSDP2 around Hugging Face models",
    fp32_shards=True,
    regathers_zero2=True,
)
"""FSDP2 of fp32 parameters (accelerate 1.15.0, utils/fsdp_utils.py:768-885); without resharding after the forward pass
parameters are still dropped after each backward pass (torch 2.13.0, _fsdp_param_group.py:607-638).
``Accelerator.accumulate`` would keep whole gradients until the last micro-batch (accelerator.py:1166-1171); our script
asks for a reduction of each (sync_each_batch, accelerator.py:1285-1293), so they are ZeRO-2 and 3.  Its plans through
DeepSpeed are ``DEEPSPEED``'s.  Times: *not studied*; NeMo Automodel (``AUTOMODEL``) is the nearest that was."""
