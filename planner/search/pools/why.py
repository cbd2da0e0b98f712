"""The reasons for a pipeline over the pools: sentences from its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from planner.search.pools.plan import PoolStage, PoolUse
from planner.search.pools.problem import PoolsProblem

GIB = 2**30
TIGHT = 0.95
"""A stage is short of memory when it uses this part of what it may."""


def why(
    problem: PoolsProblem,
    stages: Sequence[PoolStage],
    pools: Sequence[PoolUse],
    num_microbatches: int,
    *,
    proved: bool,
) -> tuple[str, ...]:
    """What sets the pace, who carries what, what memory forced, and what is left over; claims only what is proved."""
    return (
        _pace(stages, num_microbatches, proved=proved),
        _shares(problem, pools),
        *_reliefs(stages),
        *_late(stages),
        *_unused(pools, proved=proved),
    )


def _pace(stages: Sequence[PoolStage], num_microbatches: int, *, proved: bool) -> str:
    slowest = max(stages, key=lambda stage: stage.microbatch_s)
    fastest = min(stages, key=lambda stage: stage.microbatch_s)
    sentence = (
        f"Stage {slowest.stage} sets the pace: {slowest.layers} layers on {slowest.devices} x {slowest.device} take"
        f" {slowest.microbatch_s * 1e3:.1f} ms a micro-batch, {num_microbatches:,} times."
    )
    if fastest.stage == slowest.stage:
        return sentence
    idle = 1.0 - fastest.microbatch_s / slowest.microbatch_s
    because = ": one layer more there, or other sub-meshes, would make no step faster" if proved else ""
    return f"{sentence} Stage {fastest.stage} waits most, {idle:.1%} of each round{because}."


def _shares(problem: PoolsProblem, pools: Sequence[PoolUse]) -> str:
    layers = problem.model.num_layers
    peaks = [
        cluster.num_devices * cluster.pools[0].device.peak_flops_per_s.get(problem.workload.matmul_format, 0.0)
        for cluster in problem.clusters
    ]
    total = sum(peaks)
    parts = [
        f"{use.pool} has {peak / total:.0%} of the peak rate and holds {use.layers} of {layers} layers"
        for use, peak in zip(pools, peaks, strict=True)
        if total
    ]
    return "; ".join(parts) + "."


def _reliefs(stages: Sequence[PoolStage]) -> list[str]:
    sentences = []
    for stage in stages:
        done = []
        if stage.recompute != "none":
            done.append(f"recomputes {stage.recompute_layers} of {stage.layers} layers ({stage.recompute})")
        if stage.activation_offload_layers:
            done.append(f"offloads the activations of {stage.activation_offload_layers} layers")
        if stage.optimizer_offload:
            done.append("keeps its optimizer on the host")
        if done:
            sentences.append(
                f"Stage {stage.stage} {' and '.join(done)}: it holds {stage.in_flight_microbatches} micro-batches in"
                f" flight and needs {stage.peak_memory_bytes.total / GIB:.1f} of"
                f" {stage.memory_limit_bytes / GIB:.1f} GiB even so."
            )
    if not sentences:
        fullest = max(stages, key=lambda stage: stage.peak_memory_bytes.total / stage.memory_limit_bytes)
        used = fullest.peak_memory_bytes.total / fullest.memory_limit_bytes
        short = "memory is nearly full there" if used > TIGHT else "memory forces nothing"
        return [f"No stage recomputes or offloads; stage {fullest.stage} is the fullest at {used:.0%}: {short}."]
    return sentences


def _late(stages: Sequence[PoolStage]) -> list[str]:
    shown = max(stages, key=lambda stage: stage.late_shown_s)
    if shown.late_shown_s <= 0:
        return []
    return [
        f"Once a step stage {shown.stage} shows {shown.late_shown_s * 1e3:.1f} ms of reduction and optimizer,"
        f" of {shown.late_s * 1e3:.1f} ms."
    ]


def _unused(pools: Sequence[PoolUse], *, proved: bool) -> list[str]:
    because = ": no assignment that uses them is faster" if proved else ""
    return [
        f"{use.devices - use.used} of {use.devices} devices of {use.pool} stay idle{because}."
        for use in pools
        if use.used < use.devices
    ]
