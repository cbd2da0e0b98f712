"""The road to a ``Problem``: flags, HTTP bodies, Python callers, sweep cells and single pools all end here."""

from __future__ import annotations

from planner.errors import DocumentInvalid
from planner.model.spec import ModelSpec
from planner.question.agreement import HINTS, contradictions
from planner.question.factors import AppliedCalibration
from planner.question.problem import Constraints, Objective, Problem, Workload
from profiles.cluster import Cluster
from profiles.prediction.reference import ProfileReference

WHERE = {"/workload/routing": "workload#/routing/tokens"}
"""Where a part of the field is what is wrong."""
Fitted = tuple[AppliedCalibration, tuple[str, ...]]
"""A calibration that fits a question, and the back-ends that it corrects."""


def require_agreement(model: ModelSpec, workload: Workload) -> None:
    """Raises DocumentInvalid with the first contradiction where it stands."""
    for pointer, message in contradictions(model, workload):
        where = WHERE.get(pointer, pointer.replace("/workload/", "workload#/"))
        raise DocumentInvalid(message, where=where, hint=HINTS.get(pointer))


def complete_problem(  # noqa: PLR0917  # the parts of a problem, in its order
    model: ModelSpec,
    cluster: Cluster,
    workload: Workload,
    constraints: Constraints,
    objective: Objective | None = None,
    profile: ProfileReference | None = None,
    fitted: Fitted | None = None,
) -> Problem:
    """The question.  With a calibration ``any`` becomes the back-ends that it corrects.

    Raises DocumentInvalid for a workload that is none of this model.
    """
    require_agreement(model, workload)
    calibration = None
    if fitted is not None:
        calibration, names = fitted
        constraints = constraints.model_copy(update={"backends": names})
    return Problem(
        model=model,
        cluster=cluster,
        workload=workload,
        constraints=constraints,
        objective=objective or Objective(),
        profile=profile,
        calibration=calibration,
    )
