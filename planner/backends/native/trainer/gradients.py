"""The norm of all gradients, and their clipping.  Every rank gets the same number."""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from planner.backends.native.trainer.mesh import Meshes
from planner.backends.native.trainer.mixture import Experts


def gradient_norm(chunks: Iterable[nn.Module], meshes: Meshes, device: torch.device) -> Tensor:
    """L2 norm over the whole model.

    Squares of the local parts, each divided by the number of ranks that hold the same part, summed over all ranks.
    """
    total = torch.zeros((), device=device)
    for chunk in chunks:
        routed = {id(p) for module in chunk.modules() if isinstance(module, Experts) for p in module.parameters()}
        for parameter in chunk.parameters():
            if parameter.grad is not None:
                copies = _copies(parameter, 1 if id(parameter) in routed else meshes.strategy.tp)
                total += _local(parameter.grad).float().square().sum() / copies
    dist.all_reduce(total)
    return total.sqrt()


def clip_gradients(chunks: Iterable[nn.Module], norm: Tensor, limit: float) -> None:
    """Scale all gradients so that their norm is at most ``limit``; 0 = leave them."""
    if limit <= 0:
        return
    scale = (limit / (norm + 1e-6)).clamp(max=1.0)
    for chunk in chunks:
        for parameter in chunk.parameters():
            if parameter.grad is not None:
                _local(parameter.grad).mul_(scale)


def _copies(parameter: Tensor, tp: int) -> int:
    """Ranks with the same values: replicated mesh axes, and the whole tp group for a parameter that it does not cut."""
    if not isinstance(parameter, DTensor):
        return tp
    mesh = parameter.device_mesh
    names = mesh.mesh_dim_names or ()
    copies = 1 if "tp" in names else tp
    for axis, placement in enumerate(parameter.placements):
        copies *= mesh.size(axis) if placement.is_replicate() else 1
    return copies


def _local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
