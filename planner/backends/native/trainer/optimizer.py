"""The optimizer of the parameters: AdamW with fp32 states, no decay on norms and biases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import nn
from torch.distributed.tensor import DTensor
from torch.optim import AdamW

from planner.backends.native.trainer.settings import TrainSettings
from planner.backends.rules.optimizer_recipe import BETAS, EPSILON


def build_optimizer(chunks: Iterable[nn.Module], settings: TrainSettings) -> AdamW:
    """AdamW over all chunks of this rank.

    Parameters are grouped by device mesh: the fused loops over tensors (``foreach``) refuse to mix meshes, and
    experts, tp-cut and whole parameters live on different ones.
    """
    groups: dict[tuple[object, bool], list[nn.Parameter]] = {}
    for chunk in chunks:
        for parameter in chunk.parameters():
            mesh = parameter.device_mesh if isinstance(parameter, DTensor) else None
            groups.setdefault((mesh, parameter.ndim > 1), []).append(parameter)
    described: list[dict[str, Any]] = [
        {"params": parameters, "weight_decay": settings.weight_decay if decay else 0.0}
        for (_, decay), parameters in groups.items()
    ]
    return AdamW(described, lr=settings.learning_rate, betas=BETAS, eps=EPSILON, foreach=True)
