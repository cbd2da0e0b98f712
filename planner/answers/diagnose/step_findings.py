"""What steps and their sequence show: missing overlap, gaps, kernels that are not fused, drift, memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, median

from planner.answers.diagnose.attribution import TracedRank
from planner.answers.diagnose.document import MemoryRow, OperatorRow, RunFinding
from planner.answers.diagnose.rank_findings import WORTH_TELLING
from planner.answers.diagnose.reading import LogRun
from planner.answers.views.words import gib, percent
from planner.plan.plan import Plan

OVERLAPS = {
    "dp": ("overlap_grad_reduce", "overlap_param_gather"),
    "tp": ("overlap_tp",),
    "ep": ("overlap_ep",),
}
"""Switches of a plan that hide an axis' communication behind computing."""
HIDES_NOTHING = 0.15
"""Hidden part of an axis' communication below which the switch does nothing."""
GAPS = 0.05
"""Part of a step that idles more than the plan says from which it is told."""
MORE_KERNELS = 2.0
POINT_WISE = ("elementwise", "activation", "norm", "rotary", "dropout", "copy")
"""Classes that fusing makes shorter."""
LEAST_READINGS = 9
DRIFT = 0.05
SPIKE = 1.5
MORE_MEMORY = 0.1


def missing_overlap(plan: Plan, ranks: Sequence[TracedRank]) -> Iterator[RunFinding]:
    """Axes whose communication the plan hides and the run shows."""
    strategy = plan.chosen()
    steps = [parts for each in ranks for parts in each.steps if each.trace.activities]
    for axis, switches in OVERLAPS.items():
        on = [name for name in switches if getattr(strategy, name)]
        if not (steps and on):
            continue
        hidden, shown = (fmean(getattr(parts, name)[axis] for parts in steps) for name in ("hidden_s", "exposed_s"))
        waited = fmean(parts.waited_s(axis) for parts in steps)
        transfer = shown - waited
        cost_s = transfer - plan.breakdown_s.get(axis, 0.0)
        # Nothing hides behind computing that the trace does not show.
        computing_s = fmean(sum(parts.compute_s.values()) for parts in steps)
        if cost_s < WORTH_TELLING * fmean(parts.step_s for parts in steps) or computing_s < cost_s:
            continue
        if hidden < HIDES_NOTHING * (hidden + transfer):
            yield RunFinding(
                kind="missing-overlap",
                what=f"The plan hides {axis} communication ({', '.join(on)}); in the run"
                f" {percent(hidden / (hidden + transfer))} of it hides behind computing",
                seconds=cost_s,
                evidence=tuple(each.trace.file_name for each in ranks if each.trace.activities),
                advice="Check that the switch reached the run and that nothing waits on the host after each collective:"
                " CUDA_DEVICE_MAX_CONNECTIONS, buckets that are too large, synchronous calls",
            )


def host_gaps(plan: Plan, ranks: Sequence[TracedRank]) -> Iterator[RunFinding]:
    """Times in which a device waits for its host.  Not on a CPU, where the host is the device."""
    told = sum(plan.breakdown_s.get(name, 0.0) for name in ("host", "pp_bubble"))
    for each in ranks:
        if each.trace.on_host or not each.trace.activities:
            continue
        idle_s = fmean(parts.idle_s for parts in each.steps)
        step_s = fmean(parts.step_s for parts in each.steps)
        if idle_s - told > GAPS * step_s:
            yield RunFinding(
                kind="host-gaps",
                what=f"Rank {each.rank}'s device has nothing to run for {percent(idle_s / step_s)} of a step; the plan"
                f" has {percent(told / plan.step_time_s)} of gaps",
                seconds=idle_s - told,
                evidence=(f"{each.trace.file_name}: rank {each.rank}",),
                advice="Look for synchronising calls (.item(), print of a tensor), slow data loading and many small"
                " kernels; CUDA graphs, a larger micro-batch and manual garbage collection help. The profiler itself"
                " makes gaps: compare with the log's step time",
            )
            return


def unfused_kernels(ranks: Sequence[TracedRank], operators: Sequence[OperatorRow]) -> Iterator[RunFinding]:
    """Attention in parts, and point-wise kernels that take much longer than the plan says.  Devices only."""
    traced = [each for each in ranks if each.trace.activities]
    if not traced or any(each.trace.on_host for each in traced):
        return
    step_s = fmean(parts.step_s for each in traced for parts in each.steps)
    row = {each.operator: each for each in operators}
    name = traced[0].trace.file_name

    def measured(operator: str) -> float:
        return (row[operator].measured_s or 0.0) if operator in row else 0.0

    planned_attention = row["attention"].predicted_s if "attention" in row else None
    if planned_attention and not measured("attention") and measured("softmax") > WORTH_TELLING * step_s:
        yield RunFinding(
            kind="unfused-kernel",
            what="No fused attention kernel ran: softmax is a kernel of its own, and the scores go through memory",
            seconds=measured("softmax"),
            evidence=(f"{name}: kernels of class softmax, none of class attention",),
            advice="Switch flash attention on (--use-flash-attn, --attention-backend flash, attn_implementation)",
        )
    told = [each for each in operators if each.operator in POINT_WISE]
    ran_s, planned_s = (sum(getattr(each, part) or 0.0 for each in told) for part in ("measured_s", "predicted_s"))
    if planned_s and ran_s > MORE_KERNELS * planned_s and ran_s - planned_s > WORTH_TELLING * step_s:
        most = max(told, key=lambda each: (each.measured_s or 0.0) - (each.predicted_s or 0.0))
        yield RunFinding(
            kind="unfused-kernel",
            what=f"Point-wise kernels take {ran_s / planned_s:.1f} times what fused ones would, most of it"
            f" {most.operator}",
            seconds=ran_s - planned_s,
            evidence=(f"{name}: kernels of class {most.operator}",),
            advice="Use the fused norm, rotary embedding, activation and cross entropy of the back-end, or"
            " torch.compile",
        )


def drift(logs: Sequence[LogRun]) -> Iterator[RunFinding]:
    """Steps that get longer over the run, and single long ones."""
    for log in logs:
        times = [(each.timing.time_s, each.iteration, each.row) for each in log.timed if each.timing is not None]
        if len(times) < LEAST_READINGS:
            continue
        third = len(times) // 3
        first, last = [time for time, *_ in times[:third]], [time for time, *_ in times[-third:]]
        first_s, last_s, all_s = median(first), median(last), median(time for time, *_ in times)
        if last_s > (1 + DRIFT) * first_s and min(last) > first_s:
            yield RunFinding(
                kind="drift",
                what=f"Steps get longer: {last_s / first_s - 1:.1%} from the first third of the readings to the last",
                seconds=last_s - first_s,
                evidence=(f"{log.name}: lines {times[0][2]} to {times[-1][2]}",),
                advice="Look at clocks, power and temperature over the run (nvidia-smi -q -d CLOCK,PERFORMANCE), at"
                " memory that fragments, and at a load of experts that grows uneven",
            )
            continue
        spikes = [each for each in times if each[0] > SPIKE * all_s]
        cost_s = sum(time - all_s for time, *_ in spikes) / len(times)
        if spikes and cost_s > WORTH_TELLING * all_s:
            shown = ", ".join(str(iteration) for _, iteration, _ in spikes[:6])
            yield RunFinding(
                kind="slow-steps",
                what=f"{len(spikes)} of {len(times)} readings take more than {SPIKE} times the median: iterations"
                f" {shown}",
                seconds=cost_s,
                evidence=tuple(f"{log.name}: line {row}" for *_, row in spikes[:3]),
                advice="See what happens at these steps: checkpoints, evaluation, garbage collection, the loader's"
                " epochs",
            )


def memory_findings(plan: Plan, logs: Sequence[LogRun], rows: Sequence[MemoryRow]) -> Iterator[RunFinding]:
    """Runs that ended for memory, and ranks that need more than the plan says."""
    for log in logs:
        for each in log.failed:
            if each.out_of_memory:
                yield RunFinding(
                    kind="out-of-memory",
                    what=f"Rank {each.rank if each.rank is not None else '?'} ran out of memory; the plan's fullest"
                    f" rank needs {gib(plan.peak_memory_bytes)} of {gib(plan.memory_limit_bytes)} allowed",
                    seconds=None,
                    evidence=(f"{log.name}: line {each.row}",),
                    advice="Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or plan with a larger margin:"
                    " `meshwright plan --memory-margin`",
                )
    over = [row for row in rows if row.measured_bytes and row.measured_bytes > (1 + MORE_MEMORY) * row.predicted_bytes]
    if over:
        worst = max(over, key=lambda row: (row.measured_bytes or 0) / row.predicted_bytes)
        yield RunFinding(
            kind="more-memory",
            what=f"Rank {worst.rank} (stage {worst.stage}) holds {gib(worst.measured_bytes or 0)} {worst.meaning}, the"
            f" plan says {gib(worst.predicted_bytes)}",
            seconds=None,
            evidence=(f"memory of {len(over)} of {len([row for row in rows if row.measured_bytes])} ranks",),
            advice="Plan with a margin (`meshwright plan --memory-margin`), or calibrate with several runs:"
            " `meshwright profile calibrate`",
        )
