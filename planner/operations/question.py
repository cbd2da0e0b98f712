"""The parts of a question, however they were said (a name, a file, a document), and the question that they make."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

if TYPE_CHECKING:
    from planner.evidence.calibration.document import Calibration
    from planner.model.spec import ModelSpec
    from planner.question.factors import AppliedCalibration
    from planner.question.problem import Constraints, Objective, Problem, Workload
    from profiles.cluster import Cluster
    from profiles.prediction.reference import ProfileReference


MOST_DEVICES = 10_000_000
Devices = Annotated[int, Field(gt=0, le=MOST_DEVICES)]
"""A number of devices in requests to a service."""


def asked_problem(  # noqa: PLR0917  # the parts of a problem, in its order
    model: ModelSpec,
    cluster: Cluster,
    workload: Workload,
    constraints: Constraints,
    objective: Objective,
    profile: ProfileReference | None = None,
    calibration: Calibration | AppliedCalibration | None = None,
) -> Problem:
    """The question, with a calibration where one is asked for.

    Raises Conflict, FindingsInvalid for a calibration of another device, other measurements or other back-ends;
    DocumentInvalid for a histogram of other experts than the model's.
    """
    from planner.question.complete import complete_problem

    fitted = None
    if calibration is not None:
        from planner.evidence.calibration.fitting_problem import fitting_calibration

        fitted = fitting_calibration(calibration, cluster.pools[0].device, profile, constraints.backends)
    return complete_problem(model, cluster, workload, constraints, objective, profile, fitted)


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
