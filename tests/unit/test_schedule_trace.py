"""The exported trace opens in Perfetto and chrome://tracing, and says what the timeline says.

Rules checked: the Trace Event Format's required fields by phase, slices of one thread never overlap, every arrow has
one start and one end and each lies in a slice of its thread, counters are numbers.
"""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest

from planner.predict.schedule.orders import build_order
from planner.predict.schedule.simulate import simulate
from planner.predict.schedule.timeline import Timeline
from planner.predict.schedule.trace import AFTER_PIPELINE, chrome_trace, trace_json
from planner.strategy.schedules import ScheduleName

REQUIRED = {
    "X": {"name", "pid", "tid", "ts", "dur"},
    "M": {"name", "pid", "args"},
    "C": {"name", "pid", "ts", "args"},
    "s": {"id", "pid", "tid", "ts", "cat", "name"},
    "f": {"id", "pid", "tid", "ts", "cat", "name", "bp"},
}
CASES: list[tuple[ScheduleName, int, float]] = [
    ("1f1b", 1, 0.0005),
    ("interleaved", 2, 0.004),
    ("zbv", 2, 0.02),  # hops longer than the actions: transfers overlap
    ("dualpipev", 2, 0.0),
]


def run(schedule: ScheduleName, vpp: int, hop_s: float) -> Timeline:
    """Four ranks, eight micro-batches, uneven chunks."""
    forward = [0.001 * (5 + chunk % 3) for chunk in range(4 * vpp)]
    backward = [2 * value for value in forward]
    return simulate(build_order(schedule, 4, vpp, 8), forward, backward, forward, send_s=hop_s)


def slices(trace: dict[str, Any]) -> dict[tuple[int, int], list[dict[str, Any]]]:
    """Slices by (process, thread), in time."""
    found: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            found[event["pid"], event["tid"]].append(event)
    for mine in found.values():
        mine.sort(key=lambda event: float(event["ts"]))
    return found


@pytest.mark.parametrize(("schedule", "vpp", "hop_s"), CASES)
def test_trace_is_valid(schedule: ScheduleName, vpp: int, hop_s: float) -> None:
    trace = json.loads(trace_json(run(schedule, vpp, hop_s)))
    for event in trace["traceEvents"]:
        assert REQUIRED[event["ph"]] <= set(event), event
        assert event["pid"] >= 1
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0
    for mine in slices(trace).values():
        for before, after in pairwise(mine):
            assert after["ts"] >= before["ts"] + before["dur"] - 1e-6
    named = {(e["pid"], e["tid"]) for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert named == set(slices(trace))


@pytest.mark.parametrize(("schedule", "vpp", "hop_s"), CASES)
def test_arrows_join_slices_of_different_ranks(schedule: ScheduleName, vpp: int, hop_s: float) -> None:
    trace = chrome_trace(run(schedule, vpp, hop_s))
    by_thread = slices(trace)
    ends: dict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for event in trace["traceEvents"]:
        if event["ph"] in "sf":
            assert event["ph"] not in ends[event["id"]]
            ends[event["id"]][event["ph"]] = event
    crossings = 8 * 2 * (3 if vpp == 1 else 6 if schedule in ("zbv", "dualpipev") else 7)
    assert len(ends) == crossings
    for pair in ends.values():
        assert set(pair) == {"s", "f"}
        assert pair["s"]["pid"] != pair["f"]["pid"]
        assert pair["s"]["ts"] <= pair["f"]["ts"]
        for end in pair.values():
            mine, at = by_thread[end["pid"], end["tid"]], end["ts"]
            assert any(s["ts"] - 1e-6 <= at <= s["ts"] + s["dur"] + 1e-6 for s in mine)


def test_trace_repeats_the_timeline() -> None:
    ran = run("interleaved", 2, 0.001)
    trace = chrome_trace(ran)
    compute = [s for (_, thread), mine in slices(trace).items() if thread == 1 for s in mine]
    assert len(compute) == len(ran.start_s)
    assert sum(s["dur"] for s in compute) / 1e6 == pytest.approx(float(ran.busy_s.sum()), rel=1e-6)
    assert max(s["ts"] + s["dur"] for s in compute) / 1e6 == pytest.approx(ran.makespan_s, rel=1e-6)
    assert trace["otherData"]["makespan_s"] == ran.makespan_s
    colours = {(s["args"]["kind"], s["cname"]) for s in compute}
    assert len(colours) == len({kind for kind, _ in colours}) == len({colour for _, colour in colours}) == 2
    for rank in range(4):
        counts = [e["args"]["chunks"] for e in trace["traceEvents"] if e["ph"] == "C" and e["pid"] == rank + 1]
        assert max(counts) == ran.peak_in_flight[rank]
        assert counts[-1] == 0


def test_with_its_time_the_trace_is_as_long_as_the_step() -> None:
    ran = run("interleaved", 2, 0.001)
    trace = chrome_trace(ran, ran.makespan_s + 0.25)
    assert trace["otherData"]["step_time_s"] == ran.makespan_s + 0.25
    for (_, thread), mine in slices(trace).items():
        if thread == 1:
            assert (mine[-1]["name"], mine[-1]["dur"] / 1e6) == (AFTER_PIPELINE, pytest.approx(0.25, abs=2e-9))
            assert (mine[-1]["ts"] + mine[-1]["dur"]) / 1e6 == pytest.approx(ran.makespan_s + 0.25, abs=2e-9)
    assert chrome_trace(ran, 0.5 * ran.makespan_s) == chrome_trace(ran), "a time of an older plan says nothing"


def test_without_hops_there_is_no_communication_thread() -> None:
    assert {thread for _, thread in slices(chrome_trace(run("dualpipev", 2, 0.0)))} == {1}
