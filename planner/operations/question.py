"""The road to a ``Problem``: its parts, however they were said, become one checked document.

Flags, HTTP bodies and Python callers say parts in their own ways (a name, a file, a document); each finds its parts and
ends here, so that measurements and calibration mean the same everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.evidence.calibration.document import Calibration
    from planner.model.spec import ModelSpec
    from planner.question.factors import AppliedCalibration
    from planner.question.problem import Constraints, Objective, Problem, Workload
    from profiles.cluster import Cluster
    from profiles.prediction.reference import ProfileReference


def complete_problem(  # noqa: PLR0917  # the parts of a problem, in its order
    model: ModelSpec,
    cluster: Cluster,
    workload: Workload,
    constraints: Constraints,
    objective: Objective,
    profile: ProfileReference | None = None,
    calibration: Calibration | AppliedCalibration | None = None,
) -> Problem:
    """The question.  With a calibration ``any`` becomes the back-ends that it corrects.

    Raises Conflict, FindingsInvalid for a calibration of another device, other measurements or other back-ends;
    DocumentInvalid for a histogram of other experts than the model's.
    """
    from planner.errors import DocumentInvalid
    from planner.question.problem import Problem
    from planner.question.routing import of_other_experts

    wrong = of_other_experts(workload.routing, model)
    if wrong:
        hint = "give one count for each expert of a layer, or kind zipf, even"
        raise DocumentInvalid(wrong, where="workload#/routing/tokens", hint=hint)
    applied = None
    if calibration is not None:
        from planner.evidence.calibration.fitting_problem import fitting_calibration

        device = cluster.pools[0].device
        applied, names = fitting_calibration(calibration, device, profile, constraints.backends)
        constraints = constraints.model_copy(update={"backends": names})
    return Problem(
        model=model,
        cluster=cluster,
        workload=workload,
        constraints=constraints,
        objective=objective,
        profile=profile,
        calibration=applied,
    )


def model_of(said: str | Path | Mapping[str, Any] | ModelSpec) -> ModelSpec:
    """A built-in name, a file, a configuration as data, or the document itself.  Raises NotFound, DocumentInvalid."""
    from planner.model.load import load_model, model_from_data
    from planner.model.spec import ModelSpec

    if isinstance(said, ModelSpec):
        return said
    if isinstance(said, Mapping):
        return model_from_data(dict(said), str(said.get("name") or "model")[:64], "model")
    return load_model(str(said))


def cluster_of(said: str | Path | Mapping[str, Any] | Cluster, devices: int | None = None) -> Cluster:
    """The same for a cluster, scaled to ``devices`` where they are given.  Raises NotFound, DocumentInvalid."""
    from profiles.catalogue import load_cluster, read_cluster
    from profiles.cluster import Cluster
    from profiles.scaling import scale_cluster

    if isinstance(said, (str, Path)):
        return load_cluster(str(said), devices)
    cluster = said if isinstance(said, Cluster) else read_cluster(dict(said), "cluster")
    return cluster if devices is None else scale_cluster(cluster, devices)
