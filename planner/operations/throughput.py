"""How fast a job is on each of several device counts."""

from __future__ import annotations

from typing import Any

from pydantic import Field

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
    time_limit_s: float | None = Field(default=None, description="the most for one search of one row")
    seed: int = 0


def _work(session: Session, asked: ThroughputRequest) -> Throughput:
    return throughput_curve(
        session.problem(asked.question),
        asked.device_counts,
        budget_s=asked.budget_s,
        most_s=asked.time_limit_s,
        seed=asked.seed,
        price_per_device_hour=asked.price_per_device_hour,
        known=session.known,
        keep=lambda plan: session.keep(plan, None),
    )


THROUGHPUT = Operation(
    name="create_throughput",
    summary="How fast on each of these device counts or pools?",
    description="Fits or not, step time, tokens a second and cost of each, in one call.\n\nA stored proof answers"
    " first; else a narrow search does, and what is left of the budget\ncloses the widest gaps to the bound of the"
    " whole space, which says how much better another plan could be.\nWhat the budget does not decide has"
    " `fits: null`.",
    request=ThroughputRequest,
    answer=Throughput,
    work=_work,
    path="/v1/throughput",
    method="POST",
    tag="elastic",
    scope="plan",
    served="own",
    question_parts=("model", "cluster", "workload", "constraints", "objective", "profile", "calibration"),
    changes=True,
    command="throughput",
)
