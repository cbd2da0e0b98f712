"""How two plans differ."""

from __future__ import annotations

from planner.answers.diff import PlanDiff, diff_plans
from planner.operations.operation import Operation
from planner.operations.plan_reference import PlanName, is_plan_file
from profiles.document import Document


class DiffRequest(Document):
    """Two plans."""

    a: PlanName
    b: PlanName


DIFF = Operation(
    name="get_diff",
    summary="How two plans differ: question, strategy, stages, time and memory",
    description="Changes are b - a: positive means that plan b takes more.",
    request=DiffRequest,
    answer=PlanDiff,
    work=lambda session, asked: diff_plans(session.plan(asked.a), session.plan(asked.b)),
    path="/v1/plans/{a}/diff/{b}",
    reads_files=lambda asked: is_plan_file(asked.a) or is_plan_file(asked.b),
    command="diff",
)
