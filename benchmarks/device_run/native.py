"""Steps of the native back-end's trainer on plans that were written before (``emit_plans``), on one device.

Each ``*.json`` of the folder is a plan as the native back-end emits it: the trainer's own reader, model, FSDP2 wrapping
and optimizer run it.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives

from benchmarks.device_run.hugging_face import release
from benchmarks.device_run.records import Recorder
from benchmarks.device_run.steps import measure_step

if not hasattr(_functional_collectives, "all_gather_single_autograd"):
    # Older names of the collectives of context parallelism, which one device never calls.
    _functional_collectives.all_gather_single_autograd = _functional_collectives.all_gather_tensor_autograd

from benchmarks.native_step import native_step
from planner.backends.native.trainer.plan_file import load_plan
from planner.backends.native.trainer.rank_command import start_process_group
from planner.plan.plan import Plan


def run(recorder: Recorder, device: torch.device, plans: Path) -> None:
    """Every plan of the folder, in the order of its name."""
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    start_process_group("cuda" if device.type == "cuda" else "cpu")
    try:
        for path in sorted(plans.glob("*.json")):
            recorder.case({"id": f"native-{path.stem}"}, lambda path=path: _steps(load_plan(path), device))  # type: ignore[misc]
            release(device)
    finally:
        dist.destroy_process_group()


def _steps(plan: Plan, device: torch.device) -> dict[str, Any]:
    return {**facts(plan), **measure_step(native_step(plan, device), device)}


def facts(plan: Plan) -> dict[str, Any]:
    """The columns of a truth file, from the plan."""
    model, strategy, workload = plan.problem.model, plan.chosen(), plan.problem.workload
    layer = model.layer_kinds[0]
    attention = layer.attention
    return {
        "model": model.name,
        "params_b": round(model.num_parameters / 1e9, 4) if hasattr(model, "num_parameters") else None,
        "layers": model.num_layers,
        "hidden": model.hidden_size,
        "heads": getattr(attention, "num_heads", None),
        "kv_heads": getattr(attention, "num_kv_heads", None),
        "vocab": model.vocab_size,
        "seq_len": workload.sequence_length,
        "gbs": workload.global_batch_size,
        "mbs": strategy.micro_batch_size,
        "recompute": strategy.recompute,
        "precision": "bf16",
        "software": {"name": "native PyTorch (FSDP2 of one rank, eager)", "weights": "fp32, bf16 compute"},
        "predicted": {"step_time_s": plan.step_time_s, "peak_memory_bytes": plan.peak_memory_bytes},
    }
