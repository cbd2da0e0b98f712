"""Train every plan of a folder on the processes of one torchrun launch; rank 0 writes what happened beside the plans.

torchrun --nproc-per-node=2 native_parity_worker.py FOLDER
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import asdict
from pathlib import Path

import torch
import torch.distributed as dist

from planner.backends.native.trainer.plan_file import load_plan
from planner.backends.native.trainer.rank_command import start_process_group
from planner.backends.native.trainer.reference import reference_records
from planner.backends.native.trainer.report import StepRecord
from planner.backends.native.trainer.settings import TrainSettings
from planner.backends.native.trainer.train import train

SETTINGS = TrainSettings(steps=3, device="cpu", precision="fp32", learning_rate=1e-2)
BF16 = TrainSettings(steps=3, device="cpu", precision="plan", learning_rate=1e-2)


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    device = start_process_group("cpu")
    references: dict[str, list[StepRecord]] = {}
    for path in sorted(folder.glob("*.json")):
        plan = load_plan(path)
        records = train(plan, BF16 if path.stem.startswith("bf16") else SETTINGS, device)
        if dist.get_rank() == 0:
            model = plan.problem.model.content_hash()
            if model not in references:
                references[model] = reference_records(plan, SETTINGS, device)
            result = {
                "records": [asdict(record) for record in records],
                "reference": [asdict(record) for record in references[model]],
            }
            path.with_suffix(".result").write_text(json.dumps(result), encoding="utf-8")
            print(path.stem, f"{sum(record.step_time_s for record in records):.2f} s", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
