"""One rank of a tiny run that is recorded with torch's profiler (``record`` starts them).

``experts``: the native trainer with experts over two ranks.  ``replicas``: the trainer's decoder under PyTorch's own
DistributedDataParallel, which sums gradients while the backward pass goes on.  Faults: ``slow_rank`` (rank 1 takes
longer for each chunk: ``tests.slow_ranks``), ``uneven_experts`` (the router prefers the experts of rank 0),
``no_overlap`` (gradients are summed after the backward pass).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

from planner.backends.native.trainer.initialize import initialize
from planner.backends.native.trainer.model import on_meta
from planner.backends.native.trainer.settings import TrainSettings
from planner.backends.native.trainer.train import train
from tests.recorded_runs.plans import EXPERTS_OF_TRAINER, REPLICAS, SEQUENCE_LENGTH, run_plan

WAIT, WARM_UP, STEPS = 2, 1, 5
PREFERENCE = 6.0
"""Added to the router's logits of the first half of the experts."""
SLOW_LOADER = "tests.slow_ranks:tokens"
BUCKET_MIB = 1.0


def main() -> None:
    """``worker KIND FAULT FOLDER``."""
    kind, fault, folder = sys.argv[1:4]
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    plan = schedule(wait=WAIT, warmup=WARM_UP, active=STEPS, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, schedule=plan) as profiler:
        (_experts if kind == "experts" else _replicas)(fault, profiler)
    profiler.export_chrome_trace(str(Path(folder) / f"rank{dist.get_rank()}.json"))
    dist.destroy_process_group()


def _experts(fault: str, profiler: Any) -> None:
    if fault == "uneven_experts":
        nn.modules.module.register_module_forward_hook(_prefer)
    settings = TrainSettings(
        steps=WAIT + WARM_UP + STEPS, device="cpu", precision="fp32", data=SLOW_LOADER if fault == "slow_rank" else None
    )
    train(run_plan(experts=True, strategy=EXPERTS_OF_TRAINER), settings, torch.device("cpu"), lambda _: profiler.step())


def _prefer(module: nn.Module, _: Any, output: Any) -> Any:
    """A router whose logits favour the first half."""
    if isinstance(module, nn.Linear) and module.out_features == 8:
        return output + PREFERENCE * (torch.arange(8) < 4)
    return None


def _replicas(fault: str, profiler: Any) -> None:
    plan = run_plan(experts=False)
    chunk = on_meta(plan.problem.model, plan.stages[0].chunks[0], ep=1, ep_rank=0, rows_multiple=1)
    chunk.to_empty(device="cpu")
    initialize(chunk, torch.device("cpu"), 0)
    positions = torch.arange(SEQUENCE_LENGTH)
    chunk.place(positions, _core(plan))
    overlapped = fault != "no_overlap"
    model: nn.Module = nn.parallel.DistributedDataParallel(chunk, bucket_cap_mb=BUCKET_MIB) if overlapped else chunk
    optimizer = torch.optim.AdamW(chunk.parameters(), lr=1e-3)
    for _ in range(WAIT + WARM_UP + STEPS):
        tokens = torch.randint(0, 512, (REPLICAS.micro_batch_size, SEQUENCE_LENGTH + 1))
        logits = model(tokens[:, :-1])
        nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()  # type: ignore[no-untyped-call]
        if not overlapped:
            _sum_gradients(chunk)
        optimizer.step()
        optimizer.zero_grad()
        profiler.step()


def _core(plan: Any) -> Any:
    from planner.backends.native.trainer.context_parallel import context_core

    return context_core("none", None, plan.problem.workload.sequence_length)


def _sum_gradients(model: nn.Module) -> None:
    for parameter in model.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
            parameter.grad.div_(dist.get_world_size())


if __name__ == "__main__":
    main()
