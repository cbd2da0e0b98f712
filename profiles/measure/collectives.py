"""Collective times over each group shape, alone and with all sibling groups at once.

Per size: warm-ups (connections and buffers are set up lazily), then samples; one sample = a barrier and K
back-to-back calls between two events, divided by K.  Each sample is the maximum over the ranks; the median of these is
stored.  ``alone``: only the group of rank 0 runs; ``concurrent_groups`` = all: every sibling runs the same at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from profiles.importing.imported import Batch, Imported
from profiles.measure.case import key_of
from profiles.measure.clocks import read_clocks
from profiles.measure.collective_calls import CollectiveCall, prepare_collective
from profiles.measure.collective_case import CollectiveCase, collective_cases, collective_observation
from profiles.measure.collective_plan import CollectivePlan
from profiles.measure.group_shapes import GroupShape, group_shapes
from profiles.measure.measured_file import observation_data, observation_of
from profiles.measure.overlap import measure_overlap
from profiles.measure.protocol import error_words, timing_of
from profiles.measure.provenance import environment_key, environment_of, sidecar
from profiles.measure.ranks import RankGroup, Ranks, all_ranks
from profiles.measure.resume import Journal
from profiles.measure.timer import seconds_of
from profiles.observations.environment import Environment
from profiles.observations.records import CollectiveObservation

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class _Run:
    plan: CollectivePlan
    ranks: Ranks
    journal: Journal
    environment_key: str
    batch: Batch
    on_progress: Progress | None
    total: int
    done: int = 0
    resumed: int = 0
    left_out: dict[str, int] = field(default_factory=dict)


def measure_collectives(
    plan: CollectivePlan, on_progress: Progress | None = None, journal: Journal | None = None
) -> Imported | None:
    """Measure over all ranks of this torchrun launch; the result on rank 0, None on the others.

    Only rank 0's journal counts.  Raises DocumentInvalid outside torchrun.
    """
    began_s = time.monotonic()
    with all_ranks(plan.backend, plan.devices_per_node) as ranks:
        environment = communication_environment(ranks)
        shapes = group_shapes(ranks.world_size, ranks.devices_per_node)
        total = sum(1 for shape in shapes for _ in collective_cases(plan, shape)) if plan.collectives else 0
        identity = environment_key(environment)
        run = _Run(plan, ranks, journal or Journal(), identity, Batch(environment), on_progress, total)
        with ranks.device.stream():
            if plan.collectives:
                part = 1.0 - plan.overlap_part if plan.overlap else 1.0
                _measure_shapes(run, shapes, began_s + part * plan.time_budget_s)
            if plan.overlap:
                _measure_overlap(run, shapes, began_s + plan.time_budget_s)
        return _finished(run, shapes, began_s) if ranks.rank == 0 else None


def communication_environment(ranks: Ranks) -> Environment:
    """The device's environment with the ranks and the library that moves their bytes."""
    return environment_of(ranks.device, read_clocks(ranks.device)).model_copy(
        update={
            "num_devices": ranks.world_size,
            "num_nodes": ranks.world_size // ranks.devices_per_node,
            "devices_per_node": ranks.devices_per_node,
            "communication_library": _library(ranks),
            "communication_library_version": _library_version(ranks),
        }
    )


def _measure_shapes(run: _Run, shapes: Sequence[GroupShape], ends_at_s: float) -> None:
    """Every shape gets an equal part of the time that is left."""
    for place, shape in enumerate(shapes):
        now_s = time.monotonic()
        _measure_shape(run, shape, now_s + max(ends_at_s - now_s, 0.0) / (len(shapes) - place))


def _measure_overlap(run: _Run, shapes: Sequence[GroupShape], ends_at_s: float) -> None:
    found, left_out = measure_overlap(run.ranks, run.plan, shapes, lambda: time.monotonic() > ends_at_s)
    run.batch.operators += found
    if left_out:
        _leave_out(run, "overlap", left_out)


def _leave_out(run: _Run, what: str, count: int = 1) -> None:
    reason = f"{what}: the time budget of {run.plan.time_budget_s:g} s was spent"
    run.left_out[reason] = run.left_out.get(reason, 0) + count


def _measure_shape(run: _Run, shape: GroupShape, ends_at_s: float) -> None:
    """All cases of one shape, over process groups that live as long."""
    with run.ranks.grouped(shape) as mine:
        for case in collective_cases(run.plan, shape):
            if _skipped(run, case, ends_at_s):
                continue
            samples, error = _time_case(run, case, mine)
            if run.ranks.rank == 0:
                _keep(run, case, samples, error)
    run.journal.settle()


def _skipped(run: _Run, case: CollectiveCase, ends_at_s: float) -> bool:
    """Rank 0 decides for all: 1 = in the journal, 2 = no time left."""
    decision = 0
    if run.ranks.rank == 0:
        key = key_of(case.identity(), run.environment_key)
        decision = 1 if _resumed(run, key) else 2 if time.monotonic() > ends_at_s else 0
        run.done += 1
        if run.on_progress is not None:
            run.on_progress(run.done, run.total)
    decision = round(run.ranks.decided(decision))
    if decision == 2:
        _leave_out(run, case.operation)
    return decision > 0


def _resumed(run: _Run, key: str) -> bool:
    entry = run.journal.finished.get(key)
    try:
        found = None if entry is None else observation_of("collectives", entry["data"])
    except (KeyError, TypeError, ValueError):
        found = None
    if not isinstance(found, CollectiveObservation):
        return False
    run.batch.collectives.append(found)
    run.resumed += 1
    return True


def _time_case(run: _Run, case: CollectiveCase, mine: RankGroup) -> tuple[list[float], str]:
    """Samples in seconds (the maximum over the ranks), or why there are none."""
    ranks, plan, error, call = run.ranks, run.plan, "", None
    once_s = 0.0
    try:
        if case.siblings or mine.first:
            call = prepare_collective(ranks, mine, case.operation, case.variant, case.elements, case.dtype)
            once_s = _warm_up(ranks, call, plan.warm_ups)
    except (RuntimeError, NotImplementedError, ValueError, TypeError) as caught:
        error = error_words(caught)
    # A rank that failed must not leave the others waiting in the next call.
    failed, longest_s = ranks.maxima([1.0 if error else 0.0, once_s])
    if failed:
        return [], error or "another rank failed"
    calls = 1 if case.launch == "blocking" else min(max(round(plan.sample_s / max(longest_s, 1e-7)), 1), 1000)
    wanted = plan.min_time_s / max(longest_s * calls, 1e-7)
    repeats = min(max(round(wanted), plan.fewest_repeats), plan.repeats)
    samples = [_sample(ranks, call, calls) for _ in range(repeats)]
    return ranks.maxima(samples), ""


def _warm_up(ranks: Ranks, call: CollectiveCall, times: int) -> float:
    """The last warm-up's seconds."""
    last_s = 0.0
    for _ in range(max(times, 1)):
        call.restore()
        last_s = seconds_of(ranks.device, call.run)
    ranks.device.synchronize()
    return last_s


def _sample(ranks: Ranks, call: CollectiveCall | None, calls: int) -> float:
    """Seconds of one call on this rank; 0 where it takes no part."""
    if call is not None:
        call.restore()
    ranks.barrier()
    if call is None:
        return 0.0
    run = call.run

    def back_to_back() -> None:
        for _ in range(calls):
            run()

    return seconds_of(ranks.device, back_to_back) / calls


def _keep(run: _Run, case: CollectiveCase, samples: list[float], error: str) -> None:
    observation = collective_observation(case, timing_of(samples) if samples else None, error)
    run.batch.collectives.append(observation)
    key = key_of(case.identity(), run.environment_key)
    run.journal.record(key, {"kind": "collectives", "data": observation_data(observation)})


def _finished(run: _Run, shapes: list[GroupShape], began_s: float) -> Imported:
    imported = Imported(tool="meshwright", tool_version=run.plan.tool_version, batches=[run.batch])
    imported.facts |= sidecar(run.ranks.device)
    imported.facts |= {
        "communication_backend": run.ranks.backend,
        "wall_s": round(time.monotonic() - began_s, 1),
        "time_budget_s": run.plan.time_budget_s,
        "num_group_shapes": len(shapes),
        "num_cases": run.total,
        "num_failed": sum(not row.ok for row in run.batch.collectives) + sum(not row.ok for row in run.batch.operators),
        "num_resumed": run.resumed,
    }
    for reason, count in sorted(run.left_out.items()):
        imported.skip(reason, count)
    if run.left_out:
        left = "; ".join(f"{count} of {reason}" for reason, count in sorted(run.left_out.items()))
        imported.flag("left-out", f"not measured: {left}")
    return imported


def _library(ranks: Ranks) -> str:
    return "rccl" if ranks.device.kind == "rocm" else ranks.backend


def _library_version(ranks: Ranks) -> str:
    nccl = getattr(ranks.device.module, "nccl", None)
    return ".".join(str(part) for part in nccl.version()) if nccl is not None and ranks.backend == "nccl" else ""
