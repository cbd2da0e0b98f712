"""Asks the models of Kubeflow Trainer about TrainJob and JobSet objects.

The models check types and required fields, and silently drop keys that they do not know; so what they write back must
equal what they read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from planner.backends.checking.answers import Refused, serve

MODELS = {
    "TrainJob": "TrainerV1alpha1TrainJob",
    "JobSet": "JobsetV1alpha2JobSet",
}
VERSIONS = {"TrainJob": "trainer.kubeflow.org/v1alpha1", "JobSet": "jobset.x-k8s.io/v1alpha2"}
RESERVED = ("PET_", "TORCHELASTIC_")
"""Variables that the webhook refuses in a TrainJob (kubeflow/trainer, plugins/torch/torch.go:66-76)."""


def difference(was: Any, now: Any, where: str = "") -> str:
    """The first place where two trees differ; empty where they are equal."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in (*was, *(key for key in now if key not in was)):
            if key not in now:
                return f"{where}/{key} is not known"
            if key not in was:
                return f"{where}/{key} was added"
            inner = difference(was[key], now[key], f"{where}/{key}")
            if inner:
                return inner
        return ""
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        places = (difference(a, b, f"{where}/{index}") for index, (a, b) in enumerate(zip(was, now, strict=True)))
        return next((place for place in places if place), "")
    return "" if was == now and type(was) is type(now) else f"{where} is read as {now!r}"


def bad_variable(value: dict[str, Any]) -> str:
    """A variable of a TrainJob that only the controller may set."""
    names = [each.get("name", "") for each in (value["spec"].get("trainer") or {}).get("env") or ()]
    return next((name for name in names if name.startswith(RESERVED)), "")


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """One object: its version, its model, what the model writes back, and what the webhook refuses."""
    import yaml
    from kubeflow_trainer_api import models

    yield "parse"
    value = yaml.safe_load(request["manifest"])
    kind = value["kind"]
    version = VERSIONS[kind]
    yield "version"
    if value.get("apiVersion") != version:
        raise Refused(f"apiVersion {value.get('apiVersion')!r} is not {version}")
    yield "model"
    made = getattr(models, MODELS[kind]).from_dict(value)
    yield "round trip"
    lost = difference(value, json.loads(json.dumps(made.to_dict(), default=str)))
    if lost:
        raise Refused(f"{kind}{lost}")
    yield "webhook"
    if kind == "TrainJob" and bad_variable(value):
        raise Refused(f"only the controller may set {bad_variable(value)}")
    facts |= started(value)


def started(value: dict[str, Any]) -> dict[str, Any]:
    """How many pods the object starts."""
    if value["kind"] == "TrainJob":
        trainer = value["spec"]["trainer"]
        return {"kind": "TrainJob", "pods": trainer["numNodes"], "ranks_per_pod": trainer.get("numProcPerNode")}
    jobs = value["spec"]["replicatedJobs"]
    pods = sum(job.get("replicas", 1) * job["template"]["spec"].get("completions", 1) for job in jobs)
    return {"kind": "JobSet", "pods": pods}


if __name__ == "__main__":
    serve(stages)
