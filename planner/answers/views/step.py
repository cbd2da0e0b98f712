"""A plan's step for drawing: every action, transfer and idle second, as columns.

Columns and not objects: a step of 50,000 actions is a few lists of numbers.  Times are whole nanoseconds from the
start of the step, so that neighbours touch exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from planner.plan.plan import Plan
from planner.plan.timeline import plan_timeline
from planner.predict.schedule.action import FORWARD, KINDS
from planner.predict.schedule.dependencies import KIND_NAMES
from planner.predict.schedule.timeline import Timeline
from profiles.document import Document

NS = 1e9
HOLDERS = ("nothing", "own rank", "result")


class ActionColumns(Document):
    """Compute of every rank; rank r owns the places from ``offsets[r]`` up to ``offsets[r + 1]``, in order of time."""

    offsets: tuple[int, ...]
    kind: tuple[int, ...] = Field(description="place in `kinds`")
    chunk: tuple[int, ...]
    microbatch: tuple[int, ...]
    start_ns: tuple[int, ...]
    end_ns: tuple[int, ...]
    uses: tuple[int, ...] = Field(description="place of the action whose result it uses, on any rank; -1 = none")
    held_by: tuple[int, ...] = Field(
        description="place in `holders`: which came last, the action before it on its rank or the result that it uses"
    )


class TransferColumns(Document):
    """Results that change ranks; a hop of no time is none."""

    from_rank: tuple[int, ...]
    to_rank: tuple[int, ...]
    microbatch: tuple[int, ...]
    gradient: tuple[bool, ...] = Field(description="false = an activation goes forward")
    start_ns: tuple[int, ...]
    end_ns: tuple[int, ...]


class RankMemory(Document):
    """Memory of one rank over the step: what is always there, and activations from each moment on.

    The moments and counts are the schedule's; the bytes of one held chunk are the bill's peak activations shared
    equally by the chunks held at the peak.
    """

    resident_bytes: int = Field(description="weights, gradients, optimizer and buffers")
    at_ns: tuple[int, ...]
    chunks_held: tuple[int, ...]
    activation_bytes: tuple[int, ...]


class StepView(Document):
    """The simulated pipeline of one step, before the optimizer and whatever of data parallelism is not hidden.

    Its length is the plan's ``step_time_s``.
    """

    schema_version: int = 1
    plan_id: str
    num_ranks: int
    kinds: tuple[str, ...] = tuple(KIND_NAMES[kind] for kind in KINDS)
    holders: tuple[str, ...] = HOLDERS
    makespan_ns: int = Field(description="end of the last action; the step ends with `after_ns` more")
    after_ns: int = Field(description="optimizer, exposed data parallelism and the rest that follows the pipeline")
    bubble_fraction: float
    busy_ns: tuple[int, ...] = Field(description="compute of each rank")
    bubble_ns: tuple[int, ...] = Field(description="idle time of each rank within the makespan")
    actions: ActionColumns
    transfers: TransferColumns
    critical: tuple[int, ...] = Field(description="places of the actions that make the step as long as it is, in order")
    memory_limit_bytes: int
    memory: tuple[RankMemory, ...]


def step_view(plan: Plan) -> StepView:
    """Simulate the plan's step and lay it out.  Raises DocumentInvalid for a plan whose schedule cannot be run."""
    timeline = plan_timeline(plan)
    graph = timeline.graph
    makespan_ns = _ns(timeline.makespan_s)
    return StepView(
        plan_id=plan.plan_id,
        num_ranks=timeline.num_ranks,
        makespan_ns=makespan_ns,
        after_ns=max(_ns(plan.step_time_s) - makespan_ns, 0),
        bubble_fraction=timeline.bubble_fraction,
        busy_ns=_all_ns(timeline.busy_s),
        bubble_ns=_all_ns(timeline.bubble_s),
        actions=ActionColumns(
            offsets=graph.offsets,
            kind=_ints(graph.kind),
            chunk=_ints(graph.chunk),
            microbatch=_ints(graph.microbatch),
            start_ns=_all_ns(timeline.start_s),
            end_ns=_all_ns(timeline.end_s),
            uses=_ints(graph.uses),
            held_by=_held_by(timeline),
        ),
        transfers=_transfers(timeline),
        critical=timeline.critical_places(),
        memory_limit_bytes=plan.memory_limit_bytes,
        memory=tuple(_memory(plan, timeline, rank) for rank in range(timeline.num_ranks)),
    )


def _held_by(timeline: Timeline) -> tuple[int, ...]:
    """What each action began after.  A result holds one only where its rank is seen idle for it.

    Of two that come at once the rank's own action does, and a rank that was blocked in a send was held by itself.
    """
    graph = timeline.graph
    first = np.isin(np.arange(len(graph.kind)), graph.offsets[:-1])
    free_s = np.where(first, 0.0, np.roll(timeline.end_s, 1))
    came = (graph.depends_on >= 0) & (timeline.start_s == timeline.end_s[graph.depends_on] + timeline.hop_s)
    idle = np.rint(timeline.start_s * NS) > np.rint(free_s * NS)
    own = np.where(first, HOLDERS.index("nothing"), HOLDERS.index("own rank"))
    return _ints(np.where(came & idle, HOLDERS.index("result"), own))


def _transfers(timeline: Timeline) -> TransferColumns:
    graph = timeline.graph
    waiting = np.flatnonzero((graph.depends_on >= 0) & (timeline.hop_s > 0))
    cause = graph.depends_on[waiting]
    start_s = timeline.end_s[cause]
    return TransferColumns(
        from_rank=_ints(graph.chunk_rank[graph.chunk[cause]]),
        to_rank=_ints(graph.chunk_rank[graph.chunk[waiting]]),
        microbatch=_ints(graph.microbatch[cause]),
        gradient=tuple((graph.kind[cause] != FORWARD).tolist()),
        start_ns=_all_ns(start_s),
        end_ns=_all_ns(start_s + timeline.hop_s[waiting]),
    )


def _memory(plan: Plan, timeline: Timeline, rank: int) -> RankMemory:
    bill = plan.stages[rank].peak_memory_bytes
    at_s, held = timeline.in_flight(rank)
    of_one = bill.activations / max(int(timeline.peak_in_flight[rank]), 1)
    return RankMemory(
        resident_bytes=bill.total - bill.activations,
        at_ns=_all_ns(at_s),
        chunks_held=_ints(held),
        activation_bytes=_ints(np.rint(held * of_one)),
    )


def _ns(time_s: float) -> int:
    return round(time_s * NS)


def _all_ns(times_s: Any) -> tuple[int, ...]:
    return _ints(np.rint(np.asarray(times_s) * NS))


def _ints(values: Any) -> tuple[int, ...]:
    return tuple(np.asarray(values).astype(np.int64).tolist())
