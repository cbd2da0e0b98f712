"""How fast a job is on each of several device counts."""

from __future__ import annotations

from typing import Any

from planner.answers.throughput.curve import Throughput, throughput_curve
from planner.operations.operation import Operation, Session
from planner.question.problem import Problem
from profiles.document import Document


class ThroughputRequest(Document):
    """A question, and the counts to which its cluster is cut."""

    question: Problem | dict[str, Any]
    device_counts: tuple[int, ...]
    price_per_device_hour: float | None = None
    budget_s: float = 10.0


def _work(session: Session, asked: ThroughputRequest) -> Throughput:
    return throughput_curve(
        session.problem(asked.question),
        asked.device_counts,
        budget_s=asked.budget_s,
        price_per_device_hour=asked.price_per_device_hour,
        known=session.known,
        keep=lambda plan: session.keep(plan, None),
    )


THROUGHPUT = Operation(
    name="create_throughput",
    summary="How fast on each of these device counts or pools?",
    description="Fits or not, step time, tokens a second and cost of each, in one call.\n\nA stored proof answers"
    " first; else a narrow search does, and the gap to the bound of the whole space says how much\nbetter another"
    " plan could be.  What the budget does not decide has `fits: null`.",
    request=ThroughputRequest,
    answer=Throughput,
    work=_work,
    path="/v1/throughput",
    method="POST",
    tag="elastic",
    scope="plan",
    served="own",
    question_parts=("model", "cluster", "workload", "constraints", "profile"),
    changes=True,
    command="throughput",
)
