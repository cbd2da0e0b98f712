"""Why a run differs from its plan: predicted and measured side by side, findings by their seconds, a calibration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.answers.diagnose.attribution import TracedRank, traced_ranks
from planner.answers.diagnose.axes import PlanAxes
from planner.answers.diagnose.calibrated import calibrated_step_s, calibration_of
from planner.answers.diagnose.document import Diagnosis, MemoryRow, RunFinding, StepTimes
from planner.answers.diagnose.rank_findings import rank_findings
from planner.answers.diagnose.reading import Evidence, read_run, step_times, with_ranks
from planner.answers.diagnose.stated import StatedRun, stated_run
from planner.answers.diagnose.step_findings import (
    drift,
    host_gaps,
    memory_findings,
    missing_overlap,
    unfused_kernels,
)
from planner.answers.diagnose.terms import memory_rows, operator_rows, rank_rows, term_rows
from planner.plan.plan import Plan
from profiles.importing.source_file import SourceFile

FIRST = ("another-run", "another-device")


def diagnose(plan: Plan, files: Sequence[SourceFile]) -> Diagnosis:
    """Read what a run left and compare it with the plan.

    Raises DocumentInvalid where no file tells the time or the memory of a step.
    """
    evidence = read_run(files)
    axes = PlanAxes(plan)
    stated = stated_run(plan, evidence)
    ranks = traced_ranks(with_ranks(evidence.traces), axes)
    step, operators = step_times(evidence), operator_rows(plan, ranks)
    memory = memory_rows(plan, axes, evidence.logs, ranks)
    findings = [
        *stated.findings,
        *rank_findings(plan, ranks, axes),
        *missing_overlap(plan, ranks),
        *host_gaps(plan, ranks),
        *unfused_kernels(ranks, operators),
        *drift(evidence.logs),
        *memory_findings(plan, evidence.logs, memory if stated.same_run else ()),
    ]
    calibration = calibration_of(plan, evidence.logs) if stated.same_run else None
    return Diagnosis(
        plan_id=plan.plan_id,
        same_run=stated.same_run,
        predicted_step_s=plan.step_time_s,
        predicted_interval_s=plan.step_time_interval_s,
        as_run_step_s=stated.as_run_step_s,
        step=step,
        slower_by=None if step is None else step.median_s / plan.step_time_s - 1.0,
        terms=term_rows(plan, ranks),
        operators=operators,
        ranks=rank_rows(ranks),
        memory=memory,
        findings=tuple(sorted(findings, key=_order)),
        unexplained_s=_unexplained(plan, step, findings),
        calibration=calibration,
        calibrated_step_s=None if calibration is None else calibrated_step_s(plan, calibration),
        not_measured=tuple(_not_measured(plan, evidence, ranks, stated, memory)),
        files=tuple(evidence.files),
    )


def _order(finding: RunFinding) -> tuple[bool, float]:
    return finding.kind not in FIRST, -(finding.seconds or 0.0)


def _unexplained(plan: Plan, step: StepTimes | None, findings: Sequence[RunFinding]) -> float | None:
    if step is None:
        return None
    return step.median_s - plan.step_time_s - sum(finding.seconds or 0.0 for finding in findings)


def _not_measured(
    plan: Plan, evidence: Evidence, ranks: Sequence[TracedRank], stated: StatedRun, memory: Sequence[MemoryRow]
) -> Iterator[str]:
    """What no file tells, and which file would."""
    strategy, traced = plan.chosen(), [each for each in ranks if each.trace.activities]
    if not any(log.timed for log in evidence.logs):
        yield "step time without a profiler: give the training log"
    if not any(log.stated.strategy or log.stated.detail for log in evidence.logs):
        yield "the run's flags: give a log that prints its arguments (Megatron), or its device mesh (torchtitan)"
    if not traced:
        yield "terms of the step: give a Kineto trace of a rank (torch.profiler with CPU and CUDA, profiler.step())"
    elif len(traced) < min(strategy.world_size, 2):
        yield "waiting, slow ranks and links, uneven experts: give the traces of several ranks of the same steps"
    if traced and all(each.trace.on_host for each in traced) and strategy.world_size != 1:
        yield "gaps of a device: the trace is of a CPU"
    missing = [row.stage for row in memory if row.measured_bytes is None]
    if missing:
        stages = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
        yield f"memory of stage {stages}: give the log of a rank there, or a trace with profile_memory=True"
