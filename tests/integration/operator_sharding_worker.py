"""Train every sharding plan of a folder on forked gloo ranks; rank 0 writes losses and what every resharding sent.

python operator_sharding_worker.py FOLDER

The parent imports torch and traces once, and forks: twelve interpreters would take longer than what they are to show.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FileStore

from planner.backends.native.trainer.operator_sharding.placements import words_of
from planner.backends.native.trainer.operator_sharding.reference import single_process_losses
from planner.backends.native.trainer.operator_sharding.settings import RunSettings
from planner.backends.native.trainer.operator_sharding.sharded_step import ShardedStep
from planner.backends.native.trainer.operator_sharding.traced_module import (
    Retraced,
    load_sharding_plan,
    retrace,
    whole_batch,
)
from planner.backends.native.trainer.operator_sharding.train import build_mesh
from planner.shard.sharding_plan import ShardingPlan
from tests.sharded_traffic import StepTraffic

SETTINGS = RunSettings(steps=3, device="cpu", learning_rate=1e-2)
LEARNING_RATES = {"adamw": 1e-2, "sgd": 1e-1}


@lru_cache
def _retraced(text: str) -> Retraced:
    return retrace(ShardingPlan.model_validate_json(text), SETTINGS.seed)


def retraced_of(plan: ShardingPlan) -> Retraced:
    """Plans of one module share its graph: they differ in what is left out here."""
    bare = {"parameters": (), "inputs": (), "operators": (), "outputs": (), "optimizer": "", "mesh": ()}
    return _retraced(plan.model_copy(update=bare).model_dump_json())


def trained(plan: ShardingPlan) -> dict[str, Any]:
    """Losses of the ranks; what each resharding of the first step sent."""
    settings = replace(SETTINGS, learning_rate=LEARNING_RATES[plan.optimizer])
    mesh = build_mesh(plan, "cpu")
    step = ShardedStep(plan, retraced_of(plan), mesh, settings)
    traffic = StepTraffic(plan, mesh)
    with traffic.watched():
        losses = [step.run(whole_batch(step.retraced, settings, 0))]
    losses += [step.run(whole_batch(step.retraced, settings, index)) for index in range(1, settings.steps)]
    buffers = {name: words_of(value) for name, value in step.buffers.items()}
    return {"losses": losses, "traffic": traffic.written(), "buffers": buffers}


def rank_main(rank: int, world_size: int, folder: Path, names: Sequence[str]) -> None:
    """One rank: all plans of its world size."""
    quiet()
    store = FileStore(str(folder / f"store{world_size}"), world_size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
    for name in names:
        plan = load_sharding_plan(folder / f"{name}.json")
        found = trained(plan)
        if rank == 0:
            (folder / f"{name}.result").write_text(json.dumps(found), encoding="utf-8")
        dist.barrier()
    dist.destroy_process_group()


def quiet() -> None:
    """Several gathers in a row, and no all-to-all on gloo: both are known here."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.getLogger("torch").setLevel(logging.ERROR)
    logging.getLogger("torch.distributed.tensor").setLevel(logging.ERROR)


def main(folder: Path) -> int:
    """All plans, one fork of ranks for each world size -> exit code."""
    plans: dict[str, int] = {}
    for path in sorted(folder.glob("*.json")):
        plan = load_sharding_plan(path)
        plans[path.stem] = plan.num_devices
        retraced_of(plan)
    fork = multiprocessing.get_context("fork")
    for world_size in sorted(set(plans.values())):
        names = [name for name, size in plans.items() if size == world_size]
        ranks = [fork.Process(target=rank_main, args=(rank, world_size, folder, names)) for rank in range(world_size)]
        for process in ranks:
            process.start()
        if not ended_well(ranks):
            return 1
    for name in plans:
        plan = load_sharding_plan(folder / f"{name}.json")
        found = json.loads((folder / f"{name}.result").read_text(encoding="utf-8"))
        settings = replace(SETTINGS, learning_rate=LEARNING_RATES[plan.optimizer])
        found["reference"] = single_process_losses(plan, settings, retraced_of(plan))
        (folder / f"{name}.result").write_text(json.dumps(found), encoding="utf-8")
    return 0


def ended_well(ranks: Sequence[BaseProcess]) -> bool:
    """Wait for all; one that fails ends the others, which would wait for it."""
    waiting = list(ranks)
    while waiting:
        connection.wait([process.sentinel for process in waiting])
        if any(process.exitcode for process in ranks):
            for process in waiting:
                process.terminate()
            return False
        waiting = [process for process in waiting if process.exitcode is None]
    return True


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
