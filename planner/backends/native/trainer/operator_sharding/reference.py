"""The losses of one process: the module itself, with autograd and whole parameters, no graph and no plan."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import Tensor

from planner.backends.native.trainer.operator_sharding.optimizer import build_optimizer
from planner.backends.native.trainer.operator_sharding.settings import RunSettings
from planner.backends.native.trainer.operator_sharding.traced_module import Retraced, whole_batch
from planner.shard.sharding_plan import ShardingPlan
from planner.shard.torch_graph.joint_step import scalar_loss


def single_process_losses(plan: ShardingPlan, settings: RunSettings, retraced: Retraced) -> list[float]:
    """Losses of the same steps on the same batches.

    Modules of fewer bits step on fp32 masters, as the shards do.
    """
    module = deepcopy(retraced.module).to(settings.device)
    trained = [each for each in module.parameters() if each.requires_grad]
    masters = [torch.nn.Parameter(each.detach().to(torch.float32, copy=True)) for each in trained]
    optimizer = build_optimizer(plan.optimizer, masters, settings)
    losses = []
    for step in range(settings.steps):
        inputs = [each.to(settings.device) for each in whole_batch(retraced, settings, step)]
        loss = scalar_loss(module(*inputs))
        gradients: Sequence[Tensor | None] = torch.autograd.grad(loss, trained, allow_unused=True)
        for master, gradient in zip(masters, gradients, strict=True):
            master.grad = None if gradient is None else gradient.to(torch.float32)
        optimizer.step()
        with torch.no_grad():
            for parameter, master in zip(trained, masters, strict=True):
                parameter.copy_(master)
        losses.append(float(loss.detach()))
    return losses


def worst_difference(losses: Sequence[float], expected: Sequence[float]) -> float:
    """Largest relative difference of a loss over all steps."""
    return max(abs(loss - wanted) / abs(wanted or 1.0) for loss, wanted in zip(losses, expected, strict=True))
