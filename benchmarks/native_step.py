"""One training step of the native back-end's trainer, made ready for whoever times it."""

from __future__ import annotations

from collections.abc import Callable

import torch

from planner.backends.native.trainer.assemble import assemble
from planner.backends.native.trainer.mesh import build_meshes
from planner.backends.native.trainer.optimizer import build_optimizer
from planner.backends.native.trainer.settings import TrainSettings
from planner.plan.plan import Plan


def native_step(plan: Plan, device: torch.device) -> Callable[[], None]:
    """Forward, backward and optimizer of one step on the process group that exists, on random tokens of the device."""
    settings = TrainSettings(device="cuda" if device.type == "cuda" else "cpu", precision="plan")
    local = assemble(plan, build_meshes(plan.chosen(), device.type), settings, device)
    optimizer = build_optimizer(local.chunks, settings)
    workload, vocabulary = plan.problem.workload, plan.problem.model.vocab_size
    tokens = torch.randint(0, vocabulary, (workload.global_batch_size, workload.sequence_length + 1), device=device)

    def step() -> None:
        local.runner.step(tokens[:, :-1], tokens[:, 1:])
        optimizer.step()
        optimizer.zero_grad()

    return step
