"""What manifests of Kubernetes share: YAML of several documents, and the container that runs an engine."""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from planner.errors import DocumentInvalid
from planner.serving.engines.engine import OWN, SIDE
from profiles.safe_yaml import load_yaml_text

SIDE_PORT = 5600
Json = dict[str, Any]


def yaml_text(*documents: Json) -> str:
    """The documents as YAML, in their order of keys."""
    text = StringIO()
    yaml = YAML()
    yaml.width = 4096
    yaml.representer.ignore_aliases = lambda _: True  # what stands twice is written twice
    yaml.dump_all(documents, text)
    return text.getvalue()


def documents(text: str, where: str) -> list[Json]:
    """The documents of a YAML text.  Raises DocumentInvalid."""
    parts = [part for part in f"\n{text}".split("\n---") if part.strip()]
    found = [load_yaml_text(part, where) for part in parts]
    if not all(isinstance(each, dict) for each in found):
        raise DocumentInvalid(f"{where} has a document that is no mapping", where=where)
    return found


def container(image: str, devices: int, environment: Mapping[str, str], **more: Any) -> Json:
    """The container ``main`` of a pod with so many devices."""
    variables = [_variable(name, value) for name, value in environment.items()]
    return {
        "name": "main",
        "image": image,
        **more,
        **({"env": variables} if variables else {}),
        "resources": {"limits": {"nvidia.com/gpu": str(devices)}},
    }


def _variable(name: str, value: str) -> Json:
    if value == OWN:
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    return {"name": name, "value": str(SIDE_PORT) if value == SIDE else value}
