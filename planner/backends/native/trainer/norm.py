"""Which module is a norm of a given kind?"""

from __future__ import annotations

from torch import nn

from planner.model.spec import NormKind


def build_norm(kind: NormKind, width: int, epsilon: float) -> nn.Module:
    """RMS norm, or layer norm with the affine parts that the kind has."""
    if kind == "rms":
        return nn.RMSNorm(width, eps=epsilon)
    return nn.LayerNorm(width, eps=epsilon, elementwise_affine=kind != "none_affine", bias=kind == "layer")
