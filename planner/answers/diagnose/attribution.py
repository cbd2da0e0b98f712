"""The parts of each traced step of a rank; they add up to the step.

::

    step = computing + sum over axes (communication that shows) + copies that show + idle

Computing is the time in which at least one operator runs; communication shows where none does; what hides behind
computing, or behind communication of an axis that comes first here, is ``hidden``.  Waiting of a call is its time less
the shortest time of the same call over the ranks of its group: the rank that came last waited least.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from planner.answers.diagnose.axes import OTHER, PlanAxes
from profiles.importers.kineto.activities import OPTIMIZER, Activity, RankActivities
from profiles.importers.kineto.steps import Step
from profiles.importers.kineto.timeline import Interval, length, union

AXES = ("tp", "cp", "ep", "pp", "dp", OTHER)
NS = 1e-9


@dataclass(slots=True)
class Call:
    """One collective of one rank in one step."""

    activity: Activity
    axis: str
    waited_s: float | None = None

    @property
    def seconds(self) -> float:
        """From its start on this rank to its end."""
        return (self.activity.end_ns - self.activity.start_ns) * NS


@dataclass(slots=True)
class StepParts:
    """One step of one rank, in seconds."""

    step: Step
    compute_s: dict[str, float]
    """By operator class; they add up to the time in which something computes."""
    exposed_s: dict[str, float]
    hidden_s: dict[str, float]
    copies_s: float
    idle_s: float
    calls: list[Call] = field(default_factory=list)

    @property
    def step_s(self) -> float:
        """The whole step."""
        return (self.step.end_ns - self.step.start_ns) * NS

    @property
    def communication_s(self) -> float:
        """All communication that shows."""
        return sum(self.exposed_s.values())

    @property
    def own_s(self) -> float:
        """The step without communication that shows."""
        return self.step_s - self.communication_s

    def waited_s(self, axis: str | None = None) -> float:
        """Waiting for other ranks, no more than shows of the communication."""
        waits = defaultdict[str, float](float)
        for call in self.calls:
            waits[call.axis] += call.waited_s or 0.0
        return sum(min(wait, self.exposed_s[name]) for name, wait in waits.items() if axis in (None, name))


@dataclass(slots=True)
class TracedRank:
    """All steps of one rank."""

    trace: RankActivities
    rank: int
    stage: int | None
    steps: list[StepParts]


def traced_ranks(traces: Sequence[RankActivities], axes: PlanAxes) -> list[TracedRank]:
    """The parts of every step of every rank, and how long each call waited."""
    ranks = [
        TracedRank(
            trace, trace.rank or 0, axes.stage(trace.rank or 0), [_parts(trace, step, axes) for step in trace.steps]
        )
        for trace in traces
    ]
    for together in matched_calls(ranks, axes).values():
        for calls in together:
            least = min(call.seconds for call in calls.values())
            for call in calls.values():
                call.waited_s = call.seconds - least
    return ranks


def _parts(trace: RankActivities, step: Step, axes: PlanAxes) -> StepParts:
    compute, copies, by_axis = list[Interval](), list[Interval](), defaultdict[str, list[Interval]](list)
    classes = defaultdict[str, int](int)
    calls: list[Call] = []
    for activity in trace.activities:
        start, end = max(activity.start_ns, step.start_ns), min(activity.end_ns, step.end_ns)
        if end <= start:
            continue
        if activity.kind == "compute":
            compute.append((start, end))
            classes[activity.name] += end - start
        elif activity.kind == "copy":
            copies.append((start, end))
        else:
            axis = axes.axis(activity)
            by_axis[axis].append((start, end))
            calls.append(Call(activity, axis))
    covered = union(compute)
    computing, total = length(covered), sum(classes.values())
    exposed, hidden = dict.fromkeys(AXES, 0.0), dict.fromkeys(AXES, 0.0)
    for axis in AXES:
        exposed_ns, covered = _added(covered, by_axis[axis])
        exposed[axis], hidden[axis] = exposed_ns * NS, (length(union(by_axis[axis])) - exposed_ns) * NS
    copies_ns, covered = _added(covered, copies)
    return StepParts(
        step=step,
        compute_s={name: value / total * computing * NS for name, value in classes.items()},
        exposed_s=exposed,
        hidden_s=hidden,
        copies_s=copies_ns * NS,
        idle_s=(step.end_ns - step.start_ns - length(covered)) * NS,
        calls=calls,
    )


def _added(covered: list[Interval], more: list[Interval]) -> tuple[int, list[Interval]]:
    """How much longer the union gets, and the union."""
    both = union([*covered, *more])
    return length(both) - length(covered), both


GroupCalls = dict[tuple[str, tuple[int, ...], str], list[dict[int, Call]]]
"""By axis, ranks of the group and operation: each call on every traced rank of the group."""


def matched_calls(ranks: Sequence[TracedRank], axes: PlanAxes) -> GroupCalls:
    """The same calls on several ranks, step by step in their order; groups whose ranks count differently are left out.

    Where a trace names no groups (gloo), all traced ranks are one group if the axis spans the whole plan.
    """
    found: GroupCalls = {}
    steps = set.intersection(*(({parts.step.number for parts in each.steps}) for each in ranks)) if ranks else set()
    for number in sorted(steps):
        lists: dict[tuple[str, tuple[int, ...], str], dict[int, list[Call]]] = defaultdict(dict)
        for each in ranks:
            parts = next(parts for parts in each.steps if parts.step.number == number)
            for call in parts.calls:
                lists[_key(call, ranks, axes)].setdefault(each.rank, []).append(call)
        for key, of_rank in lists.items():
            if len(key[1]) > 1 and len(of_rank) > 1 and len({len(calls) for calls in of_rank.values()}) == 1:
                found.setdefault(key, []).extend(_together(of_rank))
    return found


def _together(of_rank: dict[int, list[Call]]) -> Iterator[dict[int, Call]]:
    for calls in zip(*of_rank.values(), strict=True):
        yield dict(zip(of_rank, calls, strict=True))


def _key(call: Call, ranks: Sequence[TracedRank], axes: PlanAxes) -> tuple[str, tuple[int, ...], str]:
    group = call.activity.group.ranks
    if not group and axes.group_size(call.axis) == axes.world_size == len(ranks):
        group = tuple(each.rank for each in ranks)
    return call.axis, group, call.activity.name


def optimizer_s(parts: StepParts) -> float:
    """Computing of the optimizer."""
    return parts.compute_s.get(OPTIMIZER, 0.0)
