"""One rank of folders that ``meshwright shard --out`` wrote: trains with their plans, notes what the first step sends.

torchrun --nproc-per-node N sharding_run_worker.py STEPS FOLDER...      writes FOLDER.result for each
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist

from planner.backends.native.trainer.operator_sharding.reference import single_process_losses
from planner.backends.native.trainer.operator_sharding.settings import RunSettings
from planner.backends.native.trainer.operator_sharding.sharded_step import ShardedStep
from planner.backends.native.trainer.operator_sharding.traced_module import load_sharding_plan, retrace, whole_batch
from planner.backends.native.trainer.operator_sharding.train import build_mesh
from planner.backends.native.trainer.rank_command import start_process_group
from tests.sharded_traffic import StepTraffic

SETTINGS = RunSettings(device="cpu", learning_rate=1e-2)


def run(folder: Path, settings: RunSettings) -> None:
    """Train, and write losses, those of one process, and the traffic of the first step."""
    plan = load_sharding_plan(folder / "sharding.json")
    retraced, mesh = retrace(plan, settings.seed), build_mesh(plan, settings.device)
    step, traffic = ShardedStep(plan, retraced, mesh, settings), StepTraffic(plan, mesh)
    with traffic.watched():
        losses = [step.run(whole_batch(retraced, settings, 0))]
    losses += [step.run(whole_batch(retraced, settings, index)) for index in range(1, settings.steps)]
    if dist.get_rank() == 0:
        expected = single_process_losses(plan, settings, retraced)
        said = {"losses": losses, "single_process": expected, "traffic": traffic.written()}
        folder.with_suffix(".result").write_text(json.dumps(said), encoding="utf-8")


def main(words: Sequence[str]) -> None:
    """All folders in one process group: starting ranks costs more than training."""
    torch.set_num_threads(1)
    logging.getLogger("torch.distributed.tensor").setLevel(logging.ERROR)
    start_process_group(SETTINGS.device)
    for folder in words[1:]:
        run(Path(folder), replace(SETTINGS, steps=int(words[0])))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1:])
