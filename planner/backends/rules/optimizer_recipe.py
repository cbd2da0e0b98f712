"""The optimizer's numbers in the files of every back-end: one set, so that one plan trains alike everywhere.

A plan says which optimizer runs and in which number format; these numbers are the user's, and every file marks them as
such.  They are the ones to start from: betas, decay and clipping as in Megatron-MoE-ModelZoo
(yanring/Megatron-MoE-ModelZoo model_configs/benchmarking/DeepSeek-V3.yaml at 31942f09), which are torchtitan's and
MaxText's defaults too (0.3.0 components/optimizer/optimizer.py:378, 0.2.5 configs/base.yml:1094-1121); Megatron-LM's
own examples have the learning rate (examples/mixtral/train_mixtral_8x7b_distributed.sh at 0a409798).  Megatron-LM's and
PyTorch's own defaults differ from them (beta2 0.999, decay 0.01), so they are said.
"""

from __future__ import annotations

LEARNING_RATE = 1e-4
BETAS = (0.9, 0.95)
EPSILON = 1e-8
WEIGHT_DECAY = 0.1
CLIP_GRADIENT_NORM = 1.0
SGD_MOMENTUM = 0.9
MUON_MOMENTUM = 0.95


def short(value: float) -> str:
    """As people write it: ``1e-4``, ``0.95``."""
    if value >= 1e-3:
        return f"{value:g}"
    mantissa, _, exponent = f"{value:e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def filled(text: str) -> str:
    """A file's template with the numbers in the places that are named after them (``@LEARNING_RATE@``)."""
    values = {
        "LEARNING_RATE": short(LEARNING_RATE),
        "BETAS": repr(BETAS),
        "BETA1": repr(BETAS[0]),
        "BETA2": repr(BETAS[1]),
        "EPSILON": short(EPSILON),
        "WEIGHT_DECAY": repr(WEIGHT_DECAY),
        "CLIP_GRADIENT_NORM": repr(CLIP_GRADIENT_NORM),
        "SGD_MOMENTUM": repr(SGD_MOMENTUM),
    }
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text
