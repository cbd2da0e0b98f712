"""What the files of a run say: step times and arguments of logs, activities of traces; nothing is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

import numpy as np

from planner.answers.diagnose.document import FileUse, StepTimes
from planner.errors import DocumentInvalid, MeshwrightError
from profiles.importers.kineto.activities import RankActivities, read_activities
from profiles.importing.detect import detect
from profiles.importing.read_sources import ReadResult, guarded, read_sources
from profiles.importing.source_file import SourceFile
from profiles.observations.records import IterationObservation

TRACE = "kineto"
LOG = "megatron-log"


@dataclass(frozen=True, slots=True)
class LogRun:
    """One training log: its iterations without the first, and the first of them, which carries what the log states."""

    result: ReadResult
    timed: tuple[IterationObservation, ...]
    memory: tuple[IterationObservation, ...]
    failed: tuple[IterationObservation, ...]
    device: str

    @property
    def name(self) -> str:
        """Of the file."""
        return self.result.files[0].name

    @property
    def stated(self) -> IterationObservation:
        """A reading with the facts that hold for all."""
        return (*self.timed, *self.memory, *self.failed)[0]


@dataclass(slots=True)
class Evidence:
    """Everything that was read."""

    logs: list[LogRun] = field(default_factory=list)
    traces: list[RankActivities] = field(default_factory=list)
    files: list[FileUse] = field(default_factory=list)


def read_run(files: Sequence[SourceFile]) -> Evidence:
    """Read the files that a run left.  Raises DocumentInvalid where none of them says anything about its steps."""
    found = Evidence()
    for file in _flat(files):
        try:
            chosen, _ = guarded([file], lambda file=file: detect(file))  # type: ignore[misc]
            use = FileUse(name=file.name, read_as=chosen.name)
            use = _read_trace(file, use, found) if chosen.name == TRACE else _read_log(file, use, found)
        except MeshwrightError as error:
            use = FileUse(name=file.name, not_used=error.what)
        found.files.append(use)
    if not found.logs and not any(trace.steps for trace in found.traces):
        said = "; ".join(f"{use.name}: {use.not_used}" for use in found.files[:5] if use.not_used)
        raise DocumentInvalid(
            f"no file tells the time or the memory of a step{': ' + said if said else ''}",
            where="files",
            hint="give a training log with iteration lines, or Kineto traces whose steps are marked: profiler.step()",
        )
    return found


def _flat(files: Sequence[SourceFile]) -> list[SourceFile]:
    """Files, and the files of folders."""
    return [each for file in files for each in (file.children() if file.is_folder else (file,))]


def _read_trace(file: SourceFile, use: FileUse, found: Evidence) -> FileUse:
    traces: list[RankActivities] = guarded([file], lambda: list(read_activities(file)))
    steps = [trace for trace in traces if trace.steps]
    found.traces += steps
    if not steps:
        return use.model_copy(update={"not_used": "it marks no steps: call profiler.step() after each"})
    kinds = ("step time", "terms") if any(trace.activities for trace in steps) else ("step time",)
    return use.model_copy(update={"used_for": kinds})


def _read_log(file: SourceFile, use: FileUse, found: Evidence) -> FileUse:
    result = read_sources([file], keep_going=True)[0]
    if result.imported is None:
        return use.model_copy(update={"not_used": result.error.what if result.error else "nothing could be read"})
    used: set[str] = set()
    for batch in result.imported.batches:
        runs = batch.iterations
        if not runs:
            continue
        log = LogRun(
            result=result,
            timed=tuple(each for each in runs if each.ok and each.timing is not None),
            memory=tuple(each for each in runs if each.ok and _peak(each) is not None),
            failed=tuple(each for each in runs if not each.ok),
            device=batch.environment.device or batch.environment.device_reported,
        )
        found.logs.append(log)
        used |= {
            *(("step time",) if log.timed else ()),
            *(("memory",) if log.memory or log.failed else ()),
            *(("arguments",) if log.stated.strategy or log.stated.detail else ()),
        }
    if not used:
        return use.model_copy(update={"not_used": "it holds no step times, memory or arguments of a training run"})
    return use.model_copy(update={"used_for": tuple(sorted(used))})


def _peak(each: IterationObservation) -> int | None:
    return each.peak_reserved_bytes or each.peak_allocated_bytes or each.reserved_bytes


def step_times(evidence: Evidence) -> StepTimes | None:
    """The step time of the log with the most readings, else of the traces, where the profiler slows the run."""
    timed = max(evidence.logs, key=lambda log: len(log.timed), default=None)
    if timed is not None and timed.timed:
        return _times(timed.name, [each.timing.time_s for each in timed.timed if each.timing is not None])
    steps: dict[int, list[float]] = {}
    for trace in evidence.traces:
        for step in trace.steps:
            steps.setdefault(step.number, []).append((step.end_ns - step.start_ns) * 1e-9)
    if not steps:
        return None
    return _times(evidence.traces[0].file_name, [fmean(each) for each in steps.values()])


def _times(source: str, times_s: list[float]) -> StepTimes:
    low, middle, high = (float(each) for each in np.quantile(times_s, (0.1, 0.5, 0.9)))
    return StepTimes(
        source=source, num_steps=len(times_s), median_s=middle, mean_s=fmean(times_s), p10_s=low, p90_s=high
    )


def with_ranks(traces: Sequence[RankActivities]) -> list[RankActivities]:
    """One trace a rank, in order; traces that do not say their rank are numbered as they are given."""
    numbered = [trace if trace.rank is not None else replace(trace, rank=number) for number, trace in enumerate(traces)]
    return sorted({trace.rank: trace for trace in numbered}.values(), key=lambda trace: trace.rank or 0)
