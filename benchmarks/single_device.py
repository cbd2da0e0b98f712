"""Estimates of one device beside measured steps: ``python -m benchmarks.single_device --out FILE``.

Trains Llama-like layers with the native trainer on one CUDA device, for several widths, sequence lengths, micro-batch
sizes and recompute policies, and writes what ``meshwright estimate`` predicts for each beside what was measured:
``FILE`` as JSON and, with the suffix .md, as a table.  Nothing is fitted here: datasheet predictions, no profile, no
calibration.

Measured: seconds between two CUDA events around forward, backward and optimizer of one step, the median of many after
a warm-up; most bytes that torch's allocator handed out and reserved in those steps.  Data are on the device before.
Predicted bytes leave out what that allocator does not see (``FRAMEWORK_BYTES`` less ``WORKSPACE_BYTES``).

``--device cpu --tiny`` runs the same code to the end without a GPU; its seconds compare with nothing, and the file
says so.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, get_args

import torch
import torch.distributed as dist

from benchmarks.native_step import native_step
from planner.backends.asked import problem_hardware, the_software
from planner.backends.native.trainer.rank_command import start_process_group
from planner.backends.native.trainer.settings import DeviceKind
from planner.backends.registry import backends
from planner.model.spec import AttentionSpec, LayerRun, LayerSpec, MlpSpec, ModelSpec
from planner.plan.plan import Plan, SearchReport
from planner.predict.candidate import Split
from planner.predict.cost.hardware import FRAMEWORK_BYTES, WORKSPACE_BYTES
from planner.question.problem import Constraints, Problem, Workload
from planner.search.assemble_plan import assemble_plan
from planner.search.evaluate import evaluate_split
from planner.search.row_context import strategy_context
from planner.strategy.strategy import RecomputeModule, RecomputePolicy, Strategy
from planner.version import __version__
from profiles.catalogue import load_cluster

MICROBATCHES = 2
"""Two, so that gradients are accumulated once."""
SELECTIVE: tuple[RecomputeModule, ...] = ("norm", "activation")
CLUSTER_OF_DEVICE = {
    "A100-SXM4-40GB": "dgx-a100-40g",
    "A100-SXM4-80GB": "dgx-a100-80g",
    "H100 80GB HBM3": "dgx-h100",
    "H200": "dgx-h200",
    "B200": "dgx-b200",
}
"""Catalogue name by a part of the name that CUDA reports."""
STAND_IN = "dgx-h100"
"""Whose predictions a CPU run writes down, to run the code."""


@dataclass(frozen=True, slots=True)
class Case:
    """One model, one workload, one policy."""

    hidden_size: int
    num_layers: int
    sequence_length: int
    micro_batch_size: int
    recompute: RecomputePolicy
    vocab_size: int = 32_000


@dataclass(frozen=True, slots=True)
class Measured:
    """Medians and peaks of the measured steps; None where the device ran out of memory."""

    step_time_s: float
    fastest_s: float
    slowest_s: float
    num_steps: int
    allocated_bytes: int | None
    reserved_bytes: int | None


def cases(*, tiny: bool) -> Iterator[Case]:
    """The grid of a run: widths x sequence lengths x micro-batch sizes x policies."""
    policies: tuple[RecomputePolicy, ...] = get_args(RecomputePolicy)
    if tiny:
        yield from (Case(64, 2, 32, 1, policy, vocab_size=256) for policy in policies)
        return
    layers = {2048: 16, 4096: 8, 8192: 4}
    for width, sequence, size, policy in product(layers, (2048, 4096, 8192), (1, 2, 4), policies):
        if size * sequence <= 16_384:
            yield Case(width, layers[width], sequence, size, policy)


def model_of(case: Case) -> ModelSpec:
    """Heads of 128 (or the width's eighth, if that is less), four query heads a key/value head, gated MLP."""
    head = min(128, case.hidden_size // 8)
    heads = case.hidden_size // head
    attention = AttentionSpec(num_heads=heads, num_kv_heads=max(heads // 4, 1), head_dim=head, v_head_dim=head)
    width = 32 * round(case.hidden_size * 3.5 / 32)
    return ModelSpec(
        name=f"llama-{case.hidden_size}x{case.num_layers}",
        family="llama",
        hidden_size=case.hidden_size,
        vocab_size=case.vocab_size,
        layer_kinds=(LayerSpec(attention=attention, mlp=MlpSpec(intermediate_size=width, gated=True)),),
        layer_runs=(LayerRun(kind=0, count=case.num_layers),),
        max_sequence_length=case.sequence_length,
    )


def predicted(case: Case, cluster: str, backend: str) -> Plan:
    """The estimate for one device of a cluster, every layer under the case's policy."""
    modules = SELECTIVE if case.recompute == "selective" else ()
    strategy = Strategy(
        micro_batch_size=case.micro_batch_size,
        num_microbatches=MICROBATCHES,
        zero_stage=0,
        recompute=case.recompute,
        recompute_modules=modules,
    )
    workload = Workload(global_batch_size=strategy.global_batch_size, sequence_length=case.sequence_length)
    problem = Problem(
        model=model_of(case),
        cluster=load_cluster(cluster, 1),
        workload=workload,
        constraints=Constraints(backends=(backend,)),
    )
    hardware = problem_hardware(problem)
    relieved = 0 if case.recompute == "none" else case.num_layers
    candidate = evaluate_split(strategy_context(problem, hardware, strategy), Split((case.num_layers,), (relieved,)))
    report = SearchReport(enumerated=1, pruned={}, bounded=0, evaluated=1, proof="given")
    return assemble_plan(
        problem,
        hardware,
        candidate,
        software=the_software(problem),
        status="feasible",
        lower_bound_s=None,
        report=report,
    )


def measure(plan: Plan, device: torch.device, warm_up: int, steps: int) -> Measured | None:
    """Train ``warm_up + steps`` steps; None where memory does not suffice."""
    try:
        return _measure(plan, device, warm_up, steps)
    except torch.cuda.OutOfMemoryError:
        return None
    finally:
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()


def _measure(plan: Plan, device: torch.device, warm_up: int, steps: int) -> Measured:
    step = native_step(plan, device)
    for _ in range(warm_up):
        step()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
    seconds = [_timed(step, device) for _ in range(steps)]
    on_device = device.type == "cuda"
    return Measured(
        step_time_s=median(seconds),
        fastest_s=min(seconds),
        slowest_s=max(seconds),
        num_steps=steps,
        allocated_bytes=torch.cuda.max_memory_allocated(device) if on_device else None,
        reserved_bytes=torch.cuda.max_memory_reserved(device) if on_device else None,
    )


def _timed(step: Any, device: torch.device) -> float:
    if device.type != "cuda":
        begin_s = time.perf_counter()
        step()
        return time.perf_counter() - begin_s
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    begin.record()
    step()
    end.record()
    torch.cuda.synchronize(device)
    return float(begin.elapsed_time(end)) * 1e-3


def row(case: Case, plans: dict[str, Plan], measured: Measured | None) -> dict[str, Any]:
    """One case: what was predicted with each back-end's physics, and what was measured."""
    return {
        "case": asdict(case),
        "predicted": {
            name: {
                "step_time_s": plan.step_time_s,
                "allocated_bytes": plan.peak_memory_bytes - FRAMEWORK_BYTES + WORKSPACE_BYTES,
                "memory": plan.stages[0].peak_memory_bytes.model_dump(),
                "plan_id": plan.plan_id,
            }
            for name, plan in plans.items()
        },
        "measured": None if measured is None else asdict(measured),
    }


def provenance(device: torch.device, cluster: str) -> dict[str, Any]:
    """On what, with what and when it was measured."""
    cuda = device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(device) if cuda else platform.processor() or platform.machine(),
        "comparable": cuda,
        "predicted_for": cluster,
        "driver": _said("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader") if cuda else "",
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "",
        "python": platform.python_version(),
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "meshwright": __version__,
        "commit": _said("git", "rev-parse", "HEAD"),
        "uncommitted_changes": bool(_said("git", "status", "--porcelain", "--untracked-files=no")),
    }


def _said(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def cluster_of(device: torch.device, wanted: str | None) -> str:
    """The catalogue cluster with this device, or the one that was asked for."""
    if wanted or device.type != "cuda":
        return wanted or STAND_IN
    name = torch.cuda.get_device_name(device)
    found = [cluster for part, cluster in CLUSTER_OF_DEVICE.items() if part in name]
    if not found:
        raise SystemExit(f"no catalogue cluster is known for {name}: give --cluster (meshwright clusters list)")
    return found[0]


def markdown(document: dict[str, Any]) -> str:
    """The same for people: one line a case."""
    facts, rows = document["provenance"], document["rows"]
    names = list(rows[0]["predicted"]) if rows else []
    head = ["hidden x layers", "tokens", "recompute", "measured s", *(f"{name}: s, error" for name in names)]
    head += ["measured GiB", *(f"{name}: GiB, error" for name in names)]
    lines = [head, ["---"] * len(head), *(_cells(each, names) for each in rows)]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    note = "" if facts["comparable"] else "\n\nNot a measurement of a GPU: nothing here compares with a prediction."
    told = "\n".join(f"- {name}: {value}" for name, value in facts.items())
    return f"# Predicted and measured steps of one device\n\n{told}{note}\n\n{table}\n"


def _cells(each: dict[str, Any], names: Sequence[str]) -> list[str]:
    case, measured, found = each["case"], each["measured"], each["predicted"]
    size = f"{MICROBATCHES} x {case['micro_batch_size']} x {case['sequence_length']}"
    cells = [f"{case['hidden_size']} x {case['num_layers']}", size, case["recompute"]]
    for key, scale, missing in (("step_time_s", 1.0, "out of memory"), ("allocated_bytes", 2.0**30, "")):
        real = None if measured is None else measured[key]
        cells.append(missing if real is None else f"{real / scale:.4g}")
        for name in names:
            wanted = found[name][key]
            error = "" if real is None else f", {wanted / real - 1:+.1%}"
            cells.append(f"{wanted / scale:.4g}{error}")
    return cells


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every case; what is measured so far is on disk after each."""
    options = _arguments(arguments)
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    device = start_process_group(options.device)
    cluster = cluster_of(device, options.cluster)
    document: dict[str, Any] = {"provenance": provenance(device, cluster), "rows": []}
    try:
        for case in cases(tiny=options.tiny):
            plans = {name: predicted(case, cluster, name) for name in options.backend}
            measured = measure(next(iter(plans.values())), device, options.warm_up, options.steps)
            document["rows"].append(row(case, plans, measured))
            options.out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
            options.out.with_suffix(".md").write_text(markdown(document), encoding="utf-8")
            print(" | ".join(_cells(document["rows"][-1], options.backend)), file=sys.stderr, flush=True)
    finally:
        dist.destroy_process_group()
    return 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.single_device", description=(__doc__ or "")[:75])
    parser.add_argument("--out", type=Path, required=True, help="JSON file; a table in Markdown goes beside it")
    parser.add_argument("--device", choices=get_args(DeviceKind), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="three models that a CPU trains in seconds")
    parser.add_argument("--cluster", help="catalogue cluster with this device (default: by the device's name)")
    parser.add_argument("--backend", action="append", choices=sorted(backends()), help="whose physics (default: two)")
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args(arguments)
    options.backend = options.backend or ["unrestricted", "torchtitan"]
    return options


if __name__ == "__main__":
    sys.exit(main())
