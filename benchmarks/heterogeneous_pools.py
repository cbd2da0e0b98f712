"""The time that a plan over one, two and three unequal pools takes.

Llama-3.1-70B (80 layers), 1,024 samples of 4,096 tokens, fp16; A100 80 GB, H100 and V100 pools of 64, 128 and 256
devices each.  Each plan's bound holds in its declared space: number of stages, boundaries, pool, sub-mesh, ZeRO level,
recompute and offload of each stage, number of samples at a time.

Beside them the only published figures for this question: Sailor (SOSP 2025) searches 0.3, 6.2 and 4,900 s for one, two
and three GPU types of 256 each, on its own machine, for its own model, in a space with data-parallel replicas on
unequal devices but without ZeRO, recompute and offload.  A scale to read the times on, not the same experiment.
"""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.measurement import Measurement, Spec
from planner.model.load import load_model
from planner.question.problem import Workload
from planner.search.pools.assemble import assemble_pools_plan
from planner.search.pools.find import find_assignment
from planner.search.pools.plan import PoolsPlan
from planner.search.pools.problem import PoolsProblem
from profiles.catalogue import load_cluster

V100 = str(Path(__file__).parents[1] / "examples" / "unequal-pools" / "v100-nodes.yaml")
POOLS = ("dgx-a100-80g", "dgx-h100", V100)
SIZES = (64, 128, 256)
PUBLISHED_S = {1: 0.3, 2: 6.2, 3: 4900.0}
"""Sailor's search times for 256 devices of each type."""


def unequal_pools(types: int, devices: int) -> PoolsProblem:
    """The question for the first ``types`` pools."""
    return PoolsProblem(
        model=load_model("llama-3.1-70b"),
        clusters=tuple(load_cluster(name, devices) for name in POOLS[:types]),
        workload=Workload(global_batch_size=1024, sequence_length=4096, precision="fp16"),
    )


def pools(repeats: int) -> list[Measurement]:
    """Seconds of a plan with its bound for every number of types and size."""
    return [_measured(types, devices, repeats) for devices in SIZES for types in sorted(PUBLISHED_S)]


def _measured(types: int, devices: int, repeats: int) -> Measurement:
    problem = unequal_pools(types, devices)
    samples, cpu_s, answer = [], [], ""
    for _ in range(repeats):
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        answer = _answer(assemble_pools_plan(problem, find_assignment(problem)))
        samples.append(time.perf_counter() - start_s)
        cpu_s.append(time.process_time() - start_cpu_s)
    kinds = f"{types} device type{'s' if types > 1 else ''}"
    return Measurement(
        f"pools-{types}x{devices}",
        f"plan with bound over {kinds}, {devices} each (Llama-3.1-70B; beside Sailor)",
        "s",
        PUBLISHED_S[types],
        tuple(samples),
        tuple(cpu_s),
        details={"answer": answer},
    )


def _answer(plan: PoolsPlan) -> str:
    stages = ", ".join(f"{stage.layers} on {stage.devices} {stage.device}" for stage in plan.stages)
    found = f"{plan.status}, {plan.step_time_s:.4g} s, gap {plan.gap:.2%}"
    return f"{found}, {plan.num_microbatches} micro-batches, {stages}"


HETEROGENEOUS_POOLS = Spec("heterogeneous-pools", pools)
