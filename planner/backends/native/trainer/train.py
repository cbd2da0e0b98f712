"""The command that trains with a plan.

    torchrun ... -m planner.backends.native.trainer.train plan.json [--steps N] [--device cuda|cpu]

Rank 0 prints one JSON line a step.  Exit codes are those of the ``meshwright`` command (2 = the plan does not fit this
launch, 8 = the trainer cannot run the plan).
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

import torch
import torch.distributed as dist

from planner.backends.native.trainer.assemble import LocalModel, assemble
from planner.backends.native.trainer.data import check_tokens, sample_indices, token_source
from planner.backends.native.trainer.gradients import clip_gradients, gradient_norm
from planner.backends.native.trainer.mesh import Meshes, build_meshes
from planner.backends.native.trainer.optimizer import build_optimizer
from planner.backends.native.trainer.parity import NORM_TOLERANCE, PARITY_TOLERANCE, Difference, require_parity
from planner.backends.native.trainer.plan_file import check_world_size, load_plan, refuse_unrunnable
from planner.backends.native.trainer.rank_command import (
    require_at_least,
    run_on_rank,
    start_process_group,
    started_world_size,
)
from planner.backends.native.trainer.reference import reference_records, worst_differences
from planner.backends.native.trainer.report import StepRecord, Stopwatch, peak_memory_by_stage, write_record
from planner.backends.native.trainer.settings import ComputePrecision, DeviceKind, TrainSettings
from planner.backends.native.trainer.stage_clock import StageClock
from planner.plan.plan import Plan


def train(
    plan: Plan,
    settings: TrainSettings,
    device: torch.device,
    on_step: Callable[[StepRecord], None] = lambda _: None,
) -> list[StepRecord]:
    """Run the plan on the process group that exists; ``on_step`` is called on every rank.

    Raises DocumentInvalid (another world size, unusable data) or BackEndRefused (a plan that cannot run here).
    """
    check_world_size(plan, dist.get_world_size())
    refuse_unrunnable(plan)
    meshes = build_meshes(plan.chosen(), device.type)
    local = assemble(plan, meshes, settings, device)
    optimizer = build_optimizer(local.chunks, settings)
    watch, records = Stopwatch(device), []
    clock = StageClock(local.runner.stages, device)
    for step in range(settings.steps):
        with watch.measure():
            loss, norm = _step(plan, local, meshes, settings, optimizer, step)
        tokens = plan.problem.workload.sequence_length * meshes.strategy.global_batch_size
        records.append(
            StepRecord(
                step=step,
                loss=loss,
                gradient_norm=norm,
                step_time_s=watch.elapsed_s,
                tokens_per_s=tokens / watch.elapsed_s,
                peak_memory_bytes=peak_memory_by_stage(meshes, device),
                memory_kind="device_allocated" if device.type == "cuda" else "process_resident",
                stage_microbatch_s=clock.microbatch_s(meshes),
            )
        )
        on_step(records[-1])
    return records


def _step(
    plan: Plan,
    local: LocalModel,
    meshes: Meshes,
    settings: TrainSettings,
    optimizer: torch.optim.Optimizer,
    step: int,
) -> tuple[float, float]:
    """One optimizer step -> loss and gradient norm of the whole batch."""
    model, workload, strategy = plan.problem.model, plan.problem.workload, meshes.strategy
    device = local.positions.device
    source = token_source(settings.data, workload.sequence_length, model.vocab_size, settings.seed)
    indices = sample_indices(strategy, meshes.here, step)
    samples = source.samples(indices)
    samples = check_tokens(samples, len(indices), workload.sequence_length, model.vocab_size).to(device)
    loss = local.runner.step(samples[:, local.positions], samples[:, local.positions + 1])
    norm = gradient_norm(local.chunks, meshes, device)
    clip_gradients(local.chunks, norm, settings.clip_gradient_norm)
    optimizer.step()
    optimizer.zero_grad()
    # Only the ranks with the head have a loss; the tp ranks of one sample all have the same one.
    dist.all_reduce(loss)
    return loss.item() / (strategy.dp * strategy.cp * strategy.tp), norm.item()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    # The logits are a view of a DTensor; nothing writes into them in place.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    return run_on_rank(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    settings = _settings(options)
    plan = load_plan(Path(options.plan))
    check_world_size(plan, started_world_size())
    refuse_unrunnable(plan)
    device = start_process_group(settings.device)
    first = dist.get_rank() == 0

    def show(record: StepRecord) -> None:
        if first:
            print(record.json_line(), flush=True)

    records = train(plan, settings, device, show)
    if first and (options.single_process_check or options.record):
        expected = reference_records(plan, settings, device)
        if options.record:
            write_record(Path(options.record), records, expected)
        if options.single_process_check:
            loss, norm = worst_differences(records, expected)
            differences = (
                Difference("losses", loss, PARITY_TOLERANCE),
                Difference("gradient norms", norm, NORM_TOLERANCE),
            )
            require_parity(differences, options.plan)
    return 0


def _settings(options: argparse.Namespace) -> TrainSettings:
    require_at_least(options, {"steps": 1, "learning_rate": 0, "weight_decay": 0, "clip_gradient_norm": 0})
    return TrainSettings(
        steps=options.steps,
        device=options.device,
        precision="fp32" if options.single_process_check else options.precision,
        learning_rate=options.learning_rate,
        weight_decay=options.weight_decay,
        clip_gradient_norm=options.clip_gradient_norm,
        seed=options.seed,
        data=options.data,
    )


def _parser() -> argparse.ArgumentParser:
    default = TrainSettings()
    parser = argparse.ArgumentParser(
        prog="planner.backends.native.trainer.train", description="Train with one Meshwright plan."
    )
    parser.add_argument("plan", help="plan.json of a native emission")
    parser.add_argument("--steps", type=int, default=default.steps)
    parser.add_argument("--device", choices=get_args(DeviceKind), default=default.device)
    parser.add_argument(
        "--precision",
        choices=get_args(ComputePrecision),
        default=default.precision,
        help="plan: as the plan says, fp32 master weights; fp32: everything",
    )
    parser.add_argument("--learning-rate", type=float, default=default.learning_rate)
    parser.add_argument("--weight-decay", type=float, default=default.weight_decay)
    parser.add_argument("--clip-gradient-norm", type=float, default=default.clip_gradient_norm, help="0 = never")
    parser.add_argument("--seed", type=int, default=default.seed)
    parser.add_argument("--data", help="package.module:factory of your loader; default: synthetic tokens")
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="train the whole model on rank 0 alone as well, and write the steps of both as JSON",
    )
    parser.add_argument(
        "--single-process-check",
        action="store_true",
        help="compute in fp32 and compare with the whole model on rank 0 alone",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
