"""The command that trains with a sharding plan.

    torchrun ... -m planner.backends.native.trainer.operator_sharding.train sharding.json

Rank 0 prints one JSON line a step.  Exit codes are those of the ``meshwright`` command (2 = the plan does not fit this
launch, 8 = the runtime cannot run the plan).
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

from planner.backends.native.trainer.operator_sharding.reference import single_process_losses, worst_difference
from planner.backends.native.trainer.operator_sharding.settings import RunSettings
from planner.backends.native.trainer.operator_sharding.sharded_step import ShardedStep
from planner.backends.native.trainer.operator_sharding.traced_module import load_sharding_plan, retrace, whole_batch
from planner.backends.native.trainer.parity import PARITY_TOLERANCE, Difference, require_parity
from planner.backends.native.trainer.rank_command import (
    require_at_least,
    require_world_size,
    run_on_rank,
    start_process_group,
    started_world_size,
)
from planner.backends.native.trainer.settings import DeviceKind
from planner.shard.sharding_plan import ShardingPlan


def train(
    plan: ShardingPlan,
    settings: RunSettings,
    on_step: Callable[[int, float], None] = lambda step, loss: None,
) -> list[float]:
    """Losses of the steps on the process group that exists; ``on_step`` is called on every rank.

    Raises DocumentInvalid (another world size, unusable data) or BackEndRefused (a plan that cannot run here).
    """
    check_world_size(plan, dist.get_world_size())
    step = ShardedStep(plan, retrace(plan, settings.seed), build_mesh(plan, settings.device), settings)
    losses = []
    for index in range(settings.steps):
        losses.append(step.run(whole_batch(step.retraced, settings, index)))
        on_step(index, losses[-1])
    return losses


def build_mesh(plan: ShardingPlan, device: DeviceKind) -> DeviceMesh:
    """The mesh that the plan speaks of, ranks numbered row-major.  All ranks must call it."""
    ranks = torch.arange(dist.get_world_size()).view([axis.size for axis in plan.mesh])
    return DeviceMesh(device, ranks, mesh_dim_names=tuple(axis.name for axis in plan.mesh))


def check_world_size(plan: ShardingPlan, world_size: int) -> None:
    """Raise DocumentInvalid unless exactly as many processes run as the mesh has devices."""
    require_world_size(plan.num_devices, world_size, f"a mesh of {world_size} devices")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    # That gathers over two axes are two collectives is what the plan has priced.
    logging.getLogger("torch.distributed.tensor").setLevel(logging.ERROR)
    return run_on_rank(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    settings = _settings(options)
    plan = load_sharding_plan(Path(options.plan))
    check_world_size(plan, started_world_size())
    start_process_group(settings.device)
    first = dist.get_rank() == 0

    def show(step: int, loss: float) -> None:
        if first:
            print(json.dumps({"step": step, "loss": loss}), flush=True)

    losses = train(plan, settings, show)
    if first and (options.record or options.single_process_check):
        expected = single_process_losses(plan, settings, retrace(plan, settings.seed))
        if options.record:
            said = {"ranks": losses, "single_process": expected}
            Path(options.record).write_text(json.dumps(said), encoding="utf-8")
        if options.single_process_check:
            found = [Difference("losses", worst_difference(losses, expected), PARITY_TOLERANCE)]
            require_parity(found, options.plan, "bfloat16 rounds differently in parts; check a plan of --dtype float32")
    return 0


def _settings(options: argparse.Namespace) -> RunSettings:
    require_at_least(options, {"steps": 1, "learning_rate": 0, "weight_decay": 0})
    return RunSettings(
        steps=options.steps,
        device=options.device,
        learning_rate=options.learning_rate,
        weight_decay=options.weight_decay,
        seed=options.seed,
        data=options.data,
    )


def _parser() -> argparse.ArgumentParser:
    default = RunSettings()
    parser = argparse.ArgumentParser(
        prog="planner.backends.native.trainer.operator_sharding.train",
        description="Train a module with one operator-level plan.",
    )
    parser.add_argument("plan", help="sharding.json of an emission")
    parser.add_argument("--steps", type=int, default=default.steps)
    parser.add_argument("--device", choices=get_args(DeviceKind), default=default.device)
    parser.add_argument("--learning-rate", type=float, default=default.learning_rate)
    parser.add_argument("--weight-decay", type=float, default=default.weight_decay)
    parser.add_argument("--seed", type=int, default=default.seed)
    parser.add_argument("--data", help="package.module:function of the step that returns the whole batch's inputs")
    parser.add_argument("--record", metavar="FILE", help="train on rank 0 alone as well, and write the losses of both")
    parser.add_argument(
        "--single-process-check", action="store_true", help="compare the losses with the whole module on rank 0 alone"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
