"""How do I train with a plan?  ``torchrun ... -m planner.native.train plan.json [--steps N] [--device cuda|cpu]``.

Rank 0 prints one JSON line a step.  Exit codes are those of the ``meshwright`` command (2 = the plan does not fit this
launch, 8 = the trainer cannot run the plan).
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore

from planner.errors import DocumentInvalid, MeshwrightError, TargetRefused
from planner.native.assemble import LocalModel, assemble
from planner.native.data import check_tokens, sample_indices, token_source
from planner.native.gradients import clip_gradients, gradient_norm
from planner.native.mesh import Meshes, build_meshes
from planner.native.optimizer import build_optimizer
from planner.native.plan_file import check_world_size, load_plan, refuse_unrunnable
from planner.native.reference import reference_records, worst_differences
from planner.native.report import StepRecord, Stopwatch, peak_memory_by_stage, write_record
from planner.native.settings import ComputePrecision, DeviceKind, TrainSettings
from planner.plan import Plan

PARITY_TOLERANCE = 1e-5
"""Largest relative difference of a loss to the single process that ``--single-process-check`` accepts, in fp32."""
NORM_TOLERANCE = 1e-4
"""The same for gradient norms: summed in another order on every mesh, and from the second step on of weights that Adam
moved by its learning rate whatever the size of their gradients."""


def train(
    plan: Plan,
    settings: TrainSettings,
    device: torch.device,
    on_step: Callable[[StepRecord], None] = lambda _: None,
) -> list[StepRecord]:
    """Run the plan on the process group that exists; ``on_step`` is called on every rank.

    Raises DocumentInvalid (another world size, unusable data) or TargetRefused (a plan that cannot run here).
    """
    check_world_size(plan, dist.get_world_size())
    refuse_unrunnable(plan)
    meshes = build_meshes(plan.chosen(), device.type)
    local = assemble(plan, meshes, settings, device)
    optimizer = build_optimizer(local.chunks, settings)
    watch, records = Stopwatch(device), []
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


def start_process_group(kind: DeviceKind) -> torch.device:
    """Join the group that torchrun describes (a group of one without torchrun) and pick this rank's device."""
    if kind == "cuda" and not torch.cuda.is_available():
        raise DocumentInvalid(
            "this machine has no CUDA device", where="--device", hint="use --device cpu to try the plan on processes"
        )
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device(kind, local_rank) if kind == "cuda" else torch.device("cpu")
    if kind == "cuda":
        torch.cuda.set_device(device)
    backend = "nccl" if kind == "cuda" else "gloo"
    if "WORLD_SIZE" in os.environ:
        dist.init_process_group(backend)
    else:
        dist.init_process_group(backend, store=HashStore(), rank=0, world_size=1)
    return device


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    # The logits are a view of a DTensor; nothing writes into them in place.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    rank = int(os.environ.get("RANK", "0"))
    try:
        return _run(options)
    except MeshwrightError as error:
        # Every rank fails alike, so one of them speaks.
        if rank == 0:
            print(f"error: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def _run(options: argparse.Namespace) -> int:
    settings = _settings(options)
    plan = load_plan(Path(options.plan))
    check_world_size(plan, int(os.environ.get("WORLD_SIZE", "1")))
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
            _check_parity(records, expected, options.plan)
    return 0


def _check_parity(records: list[StepRecord], expected: list[StepRecord], where: str) -> None:
    """Say how far the run is from a single process.  Raises TargetRefused when that is too far."""
    found = worst_differences(records, expected)
    print(f"largest relative difference to a single process: {found[0]:.2e}", file=sys.stderr, flush=True)
    for name, difference, limit in zip(
        ("losses", "gradient norms"), found, (PARITY_TOLERANCE, NORM_TOLERANCE), strict=True
    ):
        if not difference <= limit:
            raise TargetRefused(
                f"{name} differ by {difference:.2e} from a single process, more than {limit:.0e}", where=where
            )


def _settings(options: argparse.Namespace) -> TrainSettings:
    for name, lowest in (("steps", 1), ("learning_rate", 0), ("weight_decay", 0), ("clip_gradient_norm", 0)):
        value = getattr(options, name)
        if not value >= lowest:
            flag = "--" + name.replace("_", "-")
            raise DocumentInvalid(f"{flag} is {value}, must be at least {lowest}", where=flag)
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
    parser = argparse.ArgumentParser(prog="planner.native.train", description="Train with one Meshwright plan.")
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
