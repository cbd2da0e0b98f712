"""All observations of one or more Kineto traces: ranks read one by one, then merged.

Files with the same world size and different ranks are one run: their collectives are matched and their operators
summed into common observations.  Files that repeat a rank are separate runs (or windows), never matched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

from profiles.errors import DocumentInvalid
from profiles.importers.kineto.archive import trace_texts
from profiles.importers.kineto.copies import Copies
from profiles.importers.kineto.events import documents
from profiles.importers.kineto.machine import Machine, environment, machine_of, node_size
from profiles.importers.kineto.operators import OperatorSamples
from profiles.importers.kineto.placement import placement
from profiles.importers.kineto.rank_merge import CollectiveTimes, collective_times
from profiles.importers.kineto.rank_trace import RankTrace, read_rank
from profiles.importers.kineto.sample_observations import collective_observations, operator_observations
from profiles.importers.kineto.steps import Step
from profiles.importing.environments import given_whole
from profiles.importing.format import ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.redaction import Redactor
from profiles.importing.source_file import SourceFile
from profiles.observations.environment import Environment
from profiles.observations.records import CollectiveObservation, IterationObservation
from profiles.observations.timing import Timing

_HOST_BOUND = 0.10
_OVERHEAD = 0.01
_HINT = "record with activities=[CPU, CUDA] (and record_shapes=True), over at least three steps"

_HOW = {
    "waiting-included": "times of collectives of one rank include waiting for the last rank: upper bounds; "
    "give the traces of all ranks together",
    "ranks-merged": "collectives: last end minus last start over the ranks",
    "clocks-differ": "the ranks' clocks do not agree: collectives are the shortest duration over the ranks",
    "ranks-missing": "traces of some ranks of a group are missing: collectives of that group are upper bounds",
}


@dataclass(slots=True)
class _Part:
    """What belongs to one environment."""

    environment: Environment
    samples: OperatorSamples = field(default_factory=OperatorSamples)
    copies: Copies = field(default_factory=Copies)


@dataclass(slots=True)
class _Run:
    """Ranks that ran together."""

    part: _Part
    machine: Machine
    traces: dict[int, RankTrace] = field(default_factory=dict)


class _Reading:
    """State over all files."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self.imported = Imported(tool="pytorch-profiler")
        self.redactor = Redactor()
        self.parts: dict[str, _Part] = {}
        self.runs: list[_Run] = []
        self.traces: list[RankTrace] = []
        self.is_on_host = options.given.get("device", "").casefold().startswith("cpu")

    def read(self, file: SourceFile) -> None:
        for name, where, content in trace_texts(file):
            self._read_text(name, where, content)

    def _read_text(self, name: str, where: str, content: bytes) -> None:
        for document in documents(where, content, self.imported):
            machine = machine_of(document, name)
            samples, copies = OperatorSamples(), Copies()
            trace = read_rank(document, samples, copies, self.imported, machine.rank, self.is_on_host)
            device = trace.kernels_of_device.most_common(1)[0][0] if trace.kernels_of_device else None
            part = self._part(environment(machine, device, self.options, trace.first_ns))
            part.samples.merge(samples)
            part.copies.merge(copies)
            self._run(part, machine).traces[machine.rank or 0] = trace
            self.traces.append(trace)
            self.imported.tool_version = self.imported.tool_version or machine.framework_version

    def _part(self, found: Environment) -> _Part:
        key = found.model_copy(update={"captured_at": ""}).model_dump_json()
        return self.parts.setdefault(key, _Part(found))

    def _run(self, part: _Part, machine: Machine) -> _Run:
        for run in self.runs:
            if run.part is part and run.machine.world_size == machine.world_size:
                known = machine.rank is not None and machine.world_size != 1
                if known and machine.rank not in run.traces and run.machine.rank is not None:
                    return run
        self.runs.append(_Run(part, machine))
        return self.runs[-1]

    def batch(self, part: _Part) -> Batch:
        result = Batch(part.environment)
        result.operators = [*operator_observations(part.samples, self.redactor), *part.copies.operators()]
        result.links = part.copies.links()
        for run in self.runs:
            if run.part is part:
                result.collectives.extend(self._collectives(run))
                for rank, trace in sorted(run.traces.items()):
                    result.iterations.extend(self._iterations(run, rank, trace))
        return result

    def _collectives(self, run: _Run) -> list[CollectiveObservation]:
        times = collective_times({rank: trace.collectives for rank, trace in run.traces.items()})
        host = CollectiveTimes()
        for trace in run.traces.values():
            for call in trace.host_collectives:
                host.add(call, call.end_ns - call.start_ns, "waiting-included")
        if host.durations:
            self._flag("group-unknown", "gloo annotations do not say over which ranks a collective ran")
        if times.unmatched:
            self._flag("unmatched-collectives", f"{times.unmatched} calls could not be matched between the ranks")
        return [*self._observed(run, times), *self._observed(run, host)]

    def _observed(self, run: _Run, times: CollectiveTimes) -> list[CollectiveObservation]:
        for key in times.durations:
            self._flag(key.how, _HOW[key.how])
        per_node = node_size(run.machine, self.options)
        placed = {key.ranks: placement(key.ranks, per_node) for key in times.durations}
        return collective_observations(times, placed)

    def _iterations(self, run: _Run, rank: int, trace: RankTrace) -> list[IterationObservation]:
        steps = trace.steps
        if len(steps) == 1:
            self._flag("single-step", "the trace holds one step only; it may carry the start of the profiler")
        elif steps:
            self.imported.skip("first step of a trace")
            steps = steps[1:]
        return [self._iteration(run, rank, step) for step in steps]

    def _iteration(self, run: _Run, rank: int, step: Step) -> IterationObservation:
        given = self.options.given
        return IterationObservation(
            timing=Timing((step.end_ns - step.start_ns) * 1e-9, statistic="single", num_samples=1),
            iteration=step.number,
            rank=rank if run.machine.rank is not None else None,
            model=given.get("model", ""),
            num_devices=run.machine.world_size,
            global_batch_size=given_whole(self.options, "global_batch_size") if "global_batch_size" in given else None,
            micro_batch_size=given_whole(self.options, "micro_batch_size") if "micro_batch_size" in given else None,
            sequence_length=given_whole(self.options, "sequence_length") if "sequence_length" in given else None,
            peak_allocated_bytes=step.peak_allocated_bytes,
            peak_reserved_bytes=step.peak_reserved_bytes,
            row=step.row,
        )

    def _flag(self, code: str, what: str) -> None:
        if all(flag.code != code for flag in self.imported.flags):
            self.imported.flag(code, what)


def read_traces(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Read all traces.  Raises DocumentInvalid when a file is broken or nothing in them can be used."""
    reading = _Reading(options)
    for file in files:
        reading.read(file)
    imported = reading.imported
    _tell(reading)
    imported.batches = [batch for part in reading.parts.values() if (batch := reading.batch(part)).num_observations]
    if not imported.batches:
        raise _nothing(reading, files)
    imported.facts["redacted"] = sum(reading.redactor.counts.values())
    return imported


def _tell(reading: _Reading) -> None:
    """Facts and flags over all ranks."""
    facts, traces = reading.imported.facts, reading.traces
    facts["num_traces"] = len(traces)
    facts["num_events"] = sum(trace.num_events for trace in traces)
    facts["num_kernels"] = sum(trace.num_kernels for trace in traces)
    uses = [trace.use for trace in traces if trace.use is not None]
    if uses:
        facts["gpu_busy_fraction"] = fmean(use.busy_fraction for use in uses)
        facts["gap_fraction"] = 1 - fmean(use.busy_fraction for use in uses)
        facts["communication_fraction"] = fmean(use.communication_fraction for use in uses)
        facts["span_s"] = max(use.span_s for use in uses)
        overlaps = [use.overlap_fraction for use in uses if use.overlap_fraction is not None]
        if overlaps:
            facts["overlap_fraction"] = fmean(overlaps)
        gaps = 1 - min(use.busy_fraction for use in uses)
        if gaps > _HOST_BOUND:
            reading._flag("host-bound", f"the device was idle for {gaps:.0%} of the span: the host was the limit")
    overhead = max((trace.overhead_fraction for trace in traces), default=0.0)
    if overhead > _OVERHEAD:
        reading._flag("profiler-overhead", f"the profiler itself took {overhead:.1%} of the trace")
    if any(trace.has_operators and not trace.has_shapes for trace in traces):
        reading._flag(
            "no-shapes",
            "operators without sizes: the trace was recorded without record_shapes=True; operators of "
            "different sizes cannot be told apart",
        )
    if any(trace.kernels_missing for trace in traces):
        reading._flag("no-device-events", "no device kernels in the trace: times of host calls are not operator times")
    if any(trace.on_host and trace.has_operators for trace in traces):
        reading._flag("host-times", "operators ran on the CPU: their times are those of the calls")


def _nothing(reading: _Reading, files: Sequence[SourceFile]) -> DocumentInvalid:
    where = files[0].where if len(files) == 1 else "the traces"
    if reading.imported.bad_rows:
        first = reading.imported.bad_rows[0]
        return DocumentInvalid(f"no usable event; {first.what}", where=f"{where}#{first.where}", hint=_HINT)
    if any(trace.kernels_missing for trace in reading.traces):
        what = "the trace holds no device kernels and no steps, so no time of an operator"
    elif not any(trace.num_events for trace in reading.traces):
        what = "the trace holds no events"
    else:
        reasons: Counter[str] = Counter(reading.imported.skipped)
        most = f" ({reasons.most_common(1)[0][0]})" if reasons else ""
        what = f"the trace holds no operator, collective, copy or step that can be used{most}"
    return DocumentInvalid(what, where=where, hint=_HINT)
