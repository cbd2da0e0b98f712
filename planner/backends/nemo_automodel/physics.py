"""The behaviour of NeMo Automodel."""

from __future__ import annotations

from dataclasses import replace

from planner.backends.pytorch_fsdp.physics import EAGER, PYTORCH_FSDP

AUTOMODEL = replace(
    PYTORCH_FSDP,
    name="nemo-automodel",
    time_spread=0.35,
    studied_devices=1024,
    summary="NeMo Automodel: Hugging Face models under FSDP2",
    attention="flash2",
    unfused=EAGER,
    eager_pointwise=True,
    pipeline_keeps_whole=True,
    pipeline_reduces_last=True,
    drops_chunks=True,
)
"""Hugging Face models under FSDP2: eager point-wise operators, scaled_dot_product_attention.  Pipelines are torch's:
layers stay gathered (NVIDIA-NeMo/Automodel@36044ad3d, nemo_automodel/components/distributed/parallelizer.py:682-688),
gradients are reduced once (components/distributed/config.py:318, defer_fsdp_grad_sync)."""
