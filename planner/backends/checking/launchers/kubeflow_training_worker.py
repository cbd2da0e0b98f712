"""Asks the models of the Kubeflow training operator about PyTorchJob objects.

Each model knows its keys (``attribute_map``), their types (``openapi_types``) and what it requires (its constructor).
Pods inside are Kubernetes' own and are not looked into here.  The package's ``__init__`` would import the whole SDK, so
the models are loaded one module at a time.
"""

from __future__ import annotations

import importlib
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from planner.backends.checking.answers import Refused, serve

MODELS = {"PyTorchJob": "KubeflowOrgV1PyTorchJob"}
PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float), "object": object}


def load_packages(overlay: Path) -> None:
    """Packages without their ``__init__``."""
    for name in ("kubeflow", "kubeflow.training", "kubeflow.training.models"):
        package = types.ModuleType(name)
        package.__path__ = [str(Path(overlay, *name.split(".")))]
        sys.modules[name] = package


def model(name: str) -> Any:
    """The class of a model; None for Kubernetes' own, which are checked elsewhere."""
    if not name.startswith("KubeflowOrg"):
        return None
    # The generator's file names: KubeflowOrgV1PyTorchJob -> kubeflow_org_v1_py_torch_job.
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return getattr(importlib.import_module(f"kubeflow.training.models.{module}"), name)


def build(value: Any, kind: str, where: str) -> Any:
    """The value as the model of its type.  Raises Refused."""
    inside = re.fullmatch(r"(list|dict)(?:\[(.*)\]|\(str, (.*)\))", kind)
    if inside and inside[1] == "list":
        if not isinstance(value, list):
            raise Refused(f"{where} is no list")
        return [build(item, inside[2], f"{where}/{index}") for index, item in enumerate(value)]
    if inside:
        if not isinstance(value, dict):
            raise Refused(f"{where} is no object")
        return {key: build(item, inside[3], f"{where}/{key}") for key, item in value.items()}
    if kind in PLAIN:
        wanted = PLAIN[kind]
        if not isinstance(value, wanted) or (kind == "int" and isinstance(value, bool)):  # type: ignore[arg-type]
            raise Refused(f"{where} is {value!r}, not {kind}")
        return value
    found = model(kind)
    if found is None:
        return value
    if not isinstance(value, dict):
        raise Refused(f"{where} is no object")
    names = {text: name for name, text in found.attribute_map.items()}
    unknown = sorted(set(value) - set(names))
    if unknown:
        raise Refused(f"{where}/{unknown[0]} is not known")
    fields = {names[key]: build(item, found.openapi_types[names[key]], f"{where}/{key}") for key, item in value.items()}
    try:
        return found(**fields)
    except ValueError as error:
        raise Refused(f"{where}: {error}") from error


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """Parse, then build the models."""
    import yaml

    yield "parse"
    value = yaml.safe_load(request["manifest"])
    kind = value["kind"]
    yield "version"
    if value.get("apiVersion") != "kubeflow.org/v1" or kind not in MODELS:
        raise Refused(f"no model for {value.get('apiVersion')} {kind}")
    yield "model"
    build(value, MODELS[kind], kind)
    replicas = value["spec"]["pytorchReplicaSpecs"]
    for role, spec in replicas.items():
        # The operator looks for its container by this name (pytorchv1.PyTorchJobDefaultContainerName).
        if "pytorch" not in [each.get("name") for each in spec["template"]["spec"]["containers"]]:
            raise Refused(f"{role} has no container called pytorch")
    if set(replicas) - {"Master", "Worker"} or replicas.get("Master", {}).get("replicas", 1) != 1:
        raise Refused("pytorchReplicaSpecs must be one Master, and Workers")
    facts["pods"] = sum(each.get("replicas", 1) for each in replicas.values())


if __name__ == "__main__":
    serve(stages, load_packages)
