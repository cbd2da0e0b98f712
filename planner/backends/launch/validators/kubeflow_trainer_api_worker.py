"""Asks the models of Kubeflow Trainer about TrainJob and JobSet objects.

The models check types and required fields, and silently drop keys that they do not know; so what they write back must
equal what they read.
"""

from __future__ import annotations

import json
import sys
from typing import Any

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


def check(value: dict[str, Any]) -> dict[str, Any]:
    """The verdict on one object."""
    from kubeflow_trainer_api import models
    from pydantic import ValidationError

    kind = value["kind"]
    if value.get("apiVersion") != VERSIONS[kind]:
        message = f"apiVersion {value.get('apiVersion')!r} is not {VERSIONS[kind]}"
        return {"accepted": False, "stage": "version", "message": message}
    try:
        made = getattr(models, MODELS[kind]).from_dict(value)
    except (ValidationError, ValueError, TypeError, AttributeError) as error:
        return {"accepted": False, "stage": "model", "message": " ".join(str(error).split())[:400]}
    written = json.loads(json.dumps(made.to_dict(), default=str))
    lost = difference(value, written)
    if lost:
        return {"accepted": False, "stage": "round trip", "message": f"{kind}{lost}"}
    if kind == "TrainJob" and bad_variable(value):
        message = f"only the controller may set {bad_variable(value)}"
        return {"accepted": False, "stage": "webhook", "message": message}
    return {"accepted": True, "stage": "ok", "message": "", "facts": facts(value)}


def facts(value: dict[str, Any]) -> dict[str, Any]:
    """How many pods the object starts."""
    if value["kind"] == "TrainJob":
        trainer = value["spec"]["trainer"]
        return {"kind": "TrainJob", "pods": trainer["numNodes"], "ranks_per_pod": trainer.get("numProcPerNode")}
    jobs = value["spec"]["replicatedJobs"]
    pods = sum(job.get("replicas", 1) * job["template"]["spec"].get("completions", 1) for job in jobs)
    return {"kind": "JobSet", "pods": pods}


def main() -> None:
    """Serve requests until stdin ends."""
    sys.path.insert(0, sys.argv[1])
    import yaml

    for line in sys.stdin:
        try:
            answer = check(yaml.safe_load(json.loads(line)["manifest"]))
        except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
            words = " ".join(f"{type(error).__name__}: {error}".split())[:400]
            answer = {"accepted": False, "stage": "parse", "message": words}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
