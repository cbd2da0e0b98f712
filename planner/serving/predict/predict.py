"""What a deployment gives under a traffic: the entry point of prediction.

    predictor = Predictor(model, cluster, kernel_times("h100-sxm5-80gb", "vllm"), behaviour)
    predictor.predicted(traffic, deployment)                     # a document
    predictor.predicted_at(traffic, deployment, [1, 8, 64])      # arrays over requests in flight
    predictor.instance_curve(traffic, deployment, "decode", [1, 8, 64])

Made once for a model, a cluster and an engine on it.
"""

from __future__ import annotations

from planner.serving.layout import Deployment
from planner.serving.predict.answer import predicted_deployment
from planner.serving.predict.pools import LoadCurve, Pools
from planner.serving.predict.prediction import ServingPrediction
from planner.serving.traffic import ServingTraffic

__all__ = ["LoadCurve", "Predictor"]


class Predictor(Pools):
    """Predicts deployments of one engine and model on one cluster."""

    def predicted(self, traffic: ServingTraffic, deployment: Deployment) -> ServingPrediction:
        """What the requests of this traffic see; without a load, at one request in flight."""
        return predicted_deployment(self, traffic, deployment)
