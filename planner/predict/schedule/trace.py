"""A simulated step as a trace for Perfetto or chrome://tracing.

Chrome trace-event JSON (the "Trace Event Format" document of the Chromium project; Perfetto opens it): one process a
pipeline rank, thread "compute" with one slice an action, threads "communication" with one slice a transfer, flow arrows
from the action that produces to the one that waits, and a counter track of in-flight activations.  Times in
microseconds.  Perfetto colours slices by their name without the numbers, hence by kind; ``cname`` does the same for
chrome://tracing.  Process and thread ids start at 1: id 0 is the operating system's idle task in Perfetto.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from planner.predict.schedule.action import Kind
from planner.predict.schedule.dependencies import KIND_NAMES
from planner.predict.schedule.timeline import Event, Timeline

TraceEvent = dict[str, Any]

_COLOURS: dict[Kind, str] = {
    Kind.FORWARD: "thread_state_running",
    Kind.BACKWARD: "rail_response",
    Kind.INPUT_GRADIENT: "thread_state_iowait",
    Kind.WEIGHT_GRADIENT: "rail_animation",
}
_COMPUTE_THREAD = 1
AFTER_PIPELINE = "optimizer and the rest"
"""What follows the pipeline: the optimizer, and whatever of data parallelism nothing hides."""


def chrome_trace(timeline: Timeline, step_time_s: float | None = None) -> dict[str, Any]:
    """The trace as plain JSON data; as long as the whole step where its time is said."""
    events = [timeline.event(index) for index in range(len(timeline.start_s))]
    trace: list[TraceEvent] = []
    for rank in range(timeline.num_ranks):
        trace.append(_metadata("process_name", rank, _COMPUTE_THREAD, name=f"pipeline rank {rank}"))
        trace.append(_metadata("process_sort_index", rank, _COMPUTE_THREAD, sort_index=rank))
        trace.append(_metadata("thread_name", rank, _COMPUTE_THREAD, name="compute"))
        trace.extend(_in_flight(timeline, rank))
    trace.extend(_compute_slice(event) for event in events)
    trace.extend(_transfers(timeline, events))
    summary = {"makespan_s": timeline.makespan_s, "bubble_fraction": timeline.bubble_fraction}
    if step_time_s is not None and step_time_s > timeline.makespan_s:
        summary["step_time_s"] = step_time_s
        ends = (timeline.makespan_s, step_time_s)
        rest = (_slice(AFTER_PIPELINE, rank, _COMPUTE_THREAD, *ends) for rank in range(timeline.num_ranks))
        trace.extend(each | {"cat": "after"} for each in rest)
    return {"traceEvents": trace, "displayTimeUnit": "ms", "otherData": summary}


def trace_json(timeline: Timeline, step_time_s: float | None = None) -> str:
    """The trace as one JSON text, ready to write to ``*.json``."""
    return json.dumps(chrome_trace(timeline, step_time_s), separators=(",", ":"), allow_nan=False)


def _metadata(what: str, rank: int, thread: int, **values: str | int) -> TraceEvent:
    return {"ph": "M", "name": what, "pid": rank + 1, "tid": thread, "args": values}


def _us(time_s: float) -> float:
    """Microseconds, to the nanosecond that the format resolves."""
    return round(time_s * 1e6, 3)


def _slice(name: str, rank: int, thread: int, start_s: float, end_s: float) -> TraceEvent:
    start_us = _us(start_s)
    return {
        "ph": "X",
        "name": name,
        "pid": rank + 1,
        "tid": thread,
        "ts": start_us,
        "dur": round(_us(end_s) - start_us, 3),
    }


def _compute_slice(event: Event) -> TraceEvent:
    action = event.action
    name = f"{KIND_NAMES[action.kind]} {action.microbatch}"
    entry = _slice(name, event.rank, _COMPUTE_THREAD, event.start_s, event.end_s)
    entry |= {"cat": "compute", "cname": _COLOURS[action.kind]}
    entry["args"] = {"kind": action.kind.value, "chunk": action.chunk, "microbatch": action.microbatch}
    return entry


def _transfers(timeline: Timeline, events: list[Event]) -> Iterator[TraceEvent]:
    """A slice on the sender and an arrow to the receiver for every result that changes ranks."""
    graph = timeline.graph
    pairs = [(int(graph.depends_on[index]), index) for index in np.flatnonzero(graph.depends_on >= 0)]
    pairs = [(cause, index) for cause, index in pairs if events[cause].rank != events[index].rank]
    pairs.sort(key=lambda pair: events[pair[0]].end_s)
    lanes: dict[int, list[float]] = {}
    for number, (cause, index) in enumerate(pairs):
        source, target = events[cause], events[index]
        yield from _arrow(number, source, target)
        hop_s = float(timeline.hop_s[index])
        if hop_s > 0:
            busy_until_s = lanes.setdefault(source.rank, [])
            lane = _free_lane(busy_until_s, source.end_s, hop_s)
            what = "activation" if source.action.kind is Kind.FORWARD else "gradient"
            name = f"send {what} {source.action.microbatch}"
            entry = _slice(name, source.rank, _COMPUTE_THREAD + 1 + lane, source.end_s, source.end_s + hop_s)
            yield entry | {"cat": "communication", "args": {"to_rank": target.rank, "chunk": source.action.chunk}}
    for rank, used in sorted(lanes.items()):
        for lane in range(len(used)):
            name = "communication" if lane == 0 else f"communication {lane + 1}"
            yield _metadata("thread_name", rank, _COMPUTE_THREAD + 1 + lane, name=name)


def _free_lane(busy_until_s: list[float], start_s: float, duration_s: float) -> int:
    """First lane that is free at ``start_s``: transfers may overlap, slices of one thread may not."""
    for lane, until_s in enumerate(busy_until_s):
        if until_s <= start_s:
            busy_until_s[lane] = start_s + duration_s
            return lane
    busy_until_s.append(start_s + duration_s)
    return len(busy_until_s) - 1


def _arrow(number: int, source: Event, target: Event) -> Iterator[TraceEvent]:
    """An arrow binds to the slice around its ends: the middle of the producing one, the start of the waiting one."""
    head = {"cat": "dependency", "name": "dependency", "id": number, "tid": _COMPUTE_THREAD}
    middle_s = (source.start_s + source.end_s) / 2
    yield {"ph": "s", **head, "pid": source.rank + 1, "ts": _us(middle_s)}
    yield {"ph": "f", "bp": "e", **head, "pid": target.rank + 1, "ts": _us(target.start_s)}


def _in_flight(timeline: Timeline, rank: int) -> Iterator[TraceEvent]:
    time_s, held = timeline.in_flight(rank)
    for at_s, count in zip(time_s.tolist(), held.tolist(), strict=True):
        values = {"chunks": count}
        yield {"ph": "C", "name": "in-flight activations", "pid": rank + 1, "ts": _us(at_s), "args": values}
