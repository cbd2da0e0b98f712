"""The road to a ``Problem``: flags, HTTP bodies, Python callers, sweep cells and single pools all end here."""

from __future__ import annotations

from planner.errors import DocumentInvalid
from planner.model.spec import ModelSpec
from planner.question.factors import AppliedCalibration
from planner.question.problem import Constraints, Objective, Problem, Workload
from planner.question.routing import of_other_experts
from profiles.cluster import Cluster
from profiles.prediction.reference import ProfileReference

Fitted = tuple[AppliedCalibration, tuple[str, ...]]
"""A calibration that fits a question, and the back-ends that it corrects."""


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

    Raises DocumentInvalid for a histogram of other experts than the model's.
    """
    wrong = of_other_experts(workload.routing, model)
    if wrong:
        hint = "give one count for each expert of a layer, or kind zipf, even"
        raise DocumentInvalid(wrong, where="workload#/routing/tokens", hint=hint)
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
