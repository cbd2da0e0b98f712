"""The evaluator that the product searches by: predictors of engines on measured kernels."""

from __future__ import annotations

from planner.model.spec import ModelSpec
from planner.serving.engines.behaviours import behaviour
from planner.serving.layout import Deployment, InstanceGroup
from planner.serving.predict.curve import InstanceCurve
from planner.serving.predict.predict import Predictor
from planner.serving.predict.prediction import ServingPrediction
from planner.serving.search.amounts import FloatArray
from planner.serving.search.curves import Family
from planner.serving.traffic import ServingTraffic
from planner.serving.words import EngineName, Role
from profiles.cluster import Cluster
from profiles.serving_kernels import kernel_times


class KernelEvaluator:
    """Predicts for one model, cluster and traffic; a predictor is made once for each engine and release."""

    def __init__(self, model: ModelSpec, cluster: Cluster, traffic: ServingTraffic) -> None:
        self._model, self._cluster, self._traffic = model, cluster, traffic
        self._predictors: dict[tuple[EngineName, str], Predictor] = {}

    def predictor(self, engine: EngineName, release: str) -> Predictor:
        """The predictor of an engine."""
        key = engine, release
        if key not in self._predictors:
            kernels = kernel_times(self._cluster.pools[0].device.name, engine)
            self._predictors[key] = Predictor(self._model, self._cluster, kernels, behaviour(engine, release))
        return self._predictors[key]

    def curve(self, family: Family, group: InstanceGroup, loads: FloatArray) -> InstanceCurve:
        """One instance of a group."""
        predictor = self.predictor(family.engine, family.release)
        other: Role = "decode" if group.role == "prefill" else "prefill"
        groups: tuple[InstanceGroup, ...] = (group,)
        if group.role != "aggregated":
            both = {group.role: group, other: group.model_copy(update={"role": other})}
            groups = both["prefill"], both["decode"]
        return predictor.instance_curve(self._traffic, family.deployment(*groups), group.role, loads)

    def predicted(self, deployment: Deployment, traffic: ServingTraffic) -> ServingPrediction:
        """A whole deployment."""
        return self.predictor(deployment.engine, deployment.release).predicted(traffic, deployment)
