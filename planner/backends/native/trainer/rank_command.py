"""A training command on every rank: flags in range, one process group, one error with its exit code.

The commands of the plan's trainer (``planner.backends.native.trainer.train``) and of sharded modules
(``planner.backends.native.trainer.operator_sharding.train``) start, refuse and end alike: what they share stands here.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore

from planner.backends.native.trainer.settings import DeviceKind
from planner.errors import DocumentInvalid, MeshwrightError


def run_on_rank(run: Callable[[], int]) -> int:
    """The exit code of ``run``: its own, or that of the error that it raised.  Ends the process group in any case."""
    rank = int(os.environ.get("RANK", "0"))
    try:
        return run()
    except MeshwrightError as error:
        # Every rank fails alike, so one of them speaks.
        if rank == 0:
            print(f"error: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def require_at_least(options: argparse.Namespace, lowest: Mapping[str, int]) -> None:
    """Raise DocumentInvalid for the first option that is below its lowest value, or is no number."""
    for name, least in lowest.items():
        value = getattr(options, name)
        if not value >= least:
            flag = "--" + name.replace("_", "-")
            raise DocumentInvalid(f"{flag} is {value}, must be at least {least}", where=flag)


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


def started_world_size() -> int:
    """Processes that the launcher says it started; 1 without a launcher."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def require_world_size(wanted: int, world_size: int, instead: str) -> None:
    """Raise DocumentInvalid unless exactly ``wanted`` processes run; ``instead`` is what to plan for otherwise."""
    if world_size != wanted:
        raise DocumentInvalid(
            f"the plan is for {wanted} ranks, and {world_size} {'was' if world_size == 1 else 'were'} started",
            where="WORLD_SIZE",
            hint=f"start {wanted} ranks with torchrun, or plan for {instead}",
        )
