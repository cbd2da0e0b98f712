"""Record what one step of every plan of a folder sends, on the processes of one torchrun launch.

torchrun --nproc-per-node=2 communication_worker.py FOLDER
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter, defaultdict
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

from planner.backends.native.trainer.assemble import assemble
from planner.backends.native.trainer.mesh import Meshes, build_meshes
from planner.backends.native.trainer.optimizer import build_optimizer
from planner.backends.native.trainer.plan_file import load_plan
from planner.backends.native.trainer.rank_command import start_process_group
from planner.backends.native.trainer.settings import TrainSettings
from planner.plan.plan import Plan
from tests.recorded_collectives import Call, RecordedCollectives

SETTINGS = TrainSettings(device="cpu", precision="plan")


Ranks = tuple[int, ...]


def axes(meshes: Meshes) -> dict[Ranks, list[str]]:
    """Axes that each group of ranks serves: torch keeps one mesh, and its groups, for all that are equal."""
    named: dict[Ranks, list[str]] = defaultdict(list)
    _add_axes(named, meshes.dense, {"replicate": "dp_replicate", "shard": "dp_shard", "tp": "tp", "pp": "pp"})
    if meshes.expert is not None:
        _add_axes(named, meshes.expert, {"replicate": "edp_replicate", "shard": "edp_shard", "ep": "ep"})
    return named


def _add_axes(named: dict[Ranks, list[str]], mesh: DeviceMesh, names: dict[str, str]) -> None:
    for dim, axis in names.items():
        if mesh[dim].size() > 1:
            named[tuple(dist.get_process_group_ranks(mesh[dim].get_group()))].append(axis)


def axis_of(call: Call, meshes: Meshes, named: dict[Ranks, list[str]]) -> str:
    """The axis of a collective: cp has a group of its own; tokens are exchanged over ep, all else over the rest."""
    if meshes.context is not None and call.group == meshes.context.group_name:
        return "cp"
    fitting = [axis for axis in named[call.ranks] if (axis == "ep") == (call.operation == "all_to_all")]
    return fitting[0] if fitting else "world"


def record(plan: Plan, device: torch.device) -> dict[str, Any]:
    """Lines of one step's forward, backward and optimizer; the first step, which also sets things up, is let pass."""
    strategy, workload = plan.chosen(), plan.problem.workload
    meshes = build_meshes(strategy, device.type)
    local = assemble(plan, meshes, SETTINGS, device)
    optimizer = build_optimizer(local.chunks, SETTINGS)
    samples = torch.randint(
        0,
        plan.problem.model.vocab_size,
        (strategy.micro_batch_size * strategy.num_microbatches, workload.sequence_length + 1),
        generator=torch.Generator().manual_seed(meshes.here.dp(strategy)),
    )
    recorded = RecordedCollectives()
    for mode in (nullcontext(), recorded):
        with mode:
            local.runner.step(samples[:, local.positions], samples[:, local.positions + 1])
            optimizer.step()
            optimizer.zero_grad()
    named = axes(meshes)
    counts = Counter(
        (axis_of(call, meshes, named), call.operation, len(call.ranks), call.payload_bytes, call.dtype)
        for call in recorded.calls
    )
    return {"stage": meshes.here.pp, "lines": [[*key, count] for key, count in sorted(counts.items())]}


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    device = start_process_group("cpu")
    for path in sorted(folder.glob("*.json")):
        found = record(load_plan(path), device)
        gathered: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(gathered, found)
        if dist.get_rank() == 0:
            path.with_suffix(".result").write_text(json.dumps(gathered), encoding="utf-8")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
