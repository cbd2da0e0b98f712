"""The prediction of one strategy, without any search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.operations.operation import Operation, Session
from planner.plan.plan import Plan
from planner.question.problem import Problem
from planner.search.estimate import estimate
from planner.strategy.relief_layers import relief_layers
from planner.strategy.text import complete_strategy
from profiles.document import Document


class EstimateRequest(Document):
    """A question and a strategy; what the strategy leaves out is filled in."""

    question: Problem | dict[str, Any]
    strategy: dict[str, Any]
    chunk_layers: tuple[int, ...] | None = None
    launched: bool = False
    """Whether it is a run that somebody starts: a model that its back-end's files cannot say is told, not refused."""
    include_problem: bool = True


@dataclass(frozen=True, slots=True)
class Estimated:
    """The strategy's plan, fitting or not, and the fields that were filled in."""

    plan: Plan
    filled_in: tuple[str, ...]


def estimated(
    problem: Problem,
    given: Mapping[str, Any],
    chunk_layers: tuple[int, ...] | None = None,
    *,
    launched: bool = False,
) -> Estimated:
    """The strategy whose fields are ``given``, the others filled in.  Raises FindingsInvalid."""
    chosen, notes = complete_strategy(given, problem.cluster.num_devices, problem.workload.global_batch_size)
    plan = estimate(problem, chosen, chunk_layers, given, relief_layers(given), launched=launched)
    return Estimated(plan, tuple(notes))


def _work(session: Session, asked: EstimateRequest) -> Estimated:
    return estimated(session.problem(asked.question), asked.strategy, asked.chunk_layers, launched=asked.launched)


ESTIMATE = Operation(
    name="create_estimate",
    summary="Predict one strategy, without any search",
    description="Time, memory, whether it fits.  Fields that are left out are filled in as a back-end would, and"
    " named.",
    request=EstimateRequest,
    answer=Estimated,
    work=_work,
    path="/v1/estimates",
    method="POST",
    tag="questions",
    scope="plan",
    served="own",
    command="estimate",
)
