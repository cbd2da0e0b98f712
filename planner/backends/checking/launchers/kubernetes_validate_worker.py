"""Asks the schemas of Kubernetes about manifests: core objects, pods inside custom resources, and their envelopes.

Schemas of core objects are those of kubernetes-validate, strict (unknown keys are refused).  Resources that no package
describes (RayJob, Volcano Job, MPIJob, AscendJob) have schemas of ours in ``custom_resources.json`` beside this file:
what the projects' Go types and admission checks allow, not only what our launchers write.  The ``$comment`` of each
says which file at which commit it was checked against; no generated CRD was loaded, and no operator was asked.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from planner.backends.checking.answers import Refused, serve

ENVELOPES = Path(__file__).parent / "custom_resources.json"
_TEMPLATES = ("template", "submitterPodTemplate")


def pod_templates(value: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every pod template with containers inside an object, and its place."""
    if isinstance(value, dict):
        for key, item in value.items():
            inner = item.get("spec") if isinstance(item, dict) else None
            if key in _TEMPLATES and isinstance(inner, dict) and "containers" in inner:
                yield f"{where}/{key}", item
            else:
                yield from pod_templates(item, f"{where}/{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from pod_templates(item, f"{where}/{index}")


def core(value: dict[str, Any], version: str, where: str) -> None:
    """One object of the core schemas, strict.  Raises Refused."""
    import kubernetes_validate

    try:
        kubernetes_validate.validate(value, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        path = "/".join(map(str, error.path))
        raise Refused(f"{where}{'/' if path else ''}{path}: {error.message[:300]}") from error


def envelope(value: dict[str, Any], schemas: dict[str, Any], where: str) -> None:
    """One custom resource against our schema of it, where there is one.  Raises Refused."""
    import jsonschema

    schema = schemas.get(f"{value['apiVersion']}/{value['kind']}")
    if schema is None:
        return
    checker = jsonschema.Draft202012Validator({**schema, "$defs": schemas["$defs"]})
    for error in sorted(checker.iter_errors(value), key=lambda each: list(map(str, each.path))):
        raise Refused(f"{where}/{'/'.join(map(str, error.path))}: {error.message[:300]}")


def volumes_exist(pod: dict[str, Any], where: str) -> None:
    """The API server refuses a mount of a volume that the pod does not have."""
    known = {volume["name"] for volume in pod.get("volumes") or ()}
    for container in pod["containers"]:
        for mount in container.get("volumeMounts") or ():
            if mount["name"] not in known:
                raise Refused(f"{where}: {container['name']} mounts {mount['name']!r}, which is no volume of the pod")


def devices_fit(pod: dict[str, Any], most: dict[str, int], where: str) -> int:
    """A pod lands on one node, so it cannot ask for more devices than a node has."""
    asked = 0
    for container in pod["containers"]:
        for name, count in ((container.get("resources") or {}).get("limits") or {}).items():
            if name not in most:
                continue
            asked += int(count)
            if int(count) > most[name]:
                raise Refused(f"{where}: {container['name']} asks for {count} {name}, and a node has {most[name]}")
    return asked


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """Every object of every manifest, then the pods inside."""
    import yaml

    schemas = json.loads(ENVELOPES.read_text(encoding="utf-8"))
    kinds: list[str] = []
    devices = 0
    for name, text in sorted(request["manifests"].items()):
        yield "parse"
        for value in yaml.safe_load_all(text):
            if not isinstance(value, dict) or not {"apiVersion", "kind", "metadata"} <= set(value):
                raise Refused(f"{name}: no apiVersion, kind and metadata")
            where = f"{name}#{value['kind']}"
            kinds.append(value["kind"])
            yield "schema"
            if value["apiVersion"] in ("v1", "batch/v1"):
                core(value, request["kubernetes"], where)
            meta = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": value["metadata"]}
            core(meta, request["kubernetes"], f"{where}/metadata")
            yield "envelope"
            envelope(value, schemas, where)
            for place, template in pod_templates(value, where):
                yield "pod"
                wrapped = {"apiVersion": "v1", "kind": "PodTemplate", "template": template}
                core(wrapped, request["kubernetes"], place)
                volumes_exist(template["spec"], place)
                yield "devices"
                devices += devices_fit(template["spec"], request["most_devices"], place)
    facts |= {"kinds": kinds, "devices_of_templates": devices}


def prepare(overlay: Path) -> None:
    """It reads megabytes of schemas for every object; they do not change."""
    import kubernetes_validate.utils as reader

    reader.schema_contents = functools.cache(reader.schema_contents)


if __name__ == "__main__":
    serve(stages, prepare)
