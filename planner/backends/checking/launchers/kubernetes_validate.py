"""kubernetes-validate: checks that the API server would take the objects, and the pods inside custom resources."""

from __future__ import annotations

from pathlib import Path

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.validator import Request, Validator
from planner.backends.launch.pods import RESOURCES
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, read_size

KUBERNETES_VALIDATE_VERSION = "1.37.0"
KUBERNETES_RELEASE = "1.33"
"""Of the schemas; the oldest release that is still supported upstream when the launchers were written."""
JSON_SCHEMA_PACKAGES = (
    "jsonschema==4.26.0",
    "attrs==26.1.0",
    "referencing==0.37.0",
    "rpds-py==2026.9.1",
    "jsonschema-specifications==2025.9.1",
)
_MANIFESTS = ("job.yaml", "rayjob.yaml", "files.yaml", "ascendjob.yaml")


def manifests(folder: EmittedFolder) -> dict[str, str]:
    """The files of the folder that kubectl gets."""
    return {name: folder.files[name] for name in _MANIFESTS if name in folder.files}


def request(folder: EmittedFolder) -> Request:
    """The manifests, and the most devices that a pod can have: those of one node."""
    per_node = read_size(folder.files.get(LAUNCH_SCRIPT, ""), "DEVICES_PER_NODE")
    return {
        "manifests": manifests(folder),
        "kubernetes": KUBERNETES_RELEASE,
        "most_devices": dict.fromkeys(RESOURCES.values(), per_node),
    }


def packages(version: str) -> tuple[str, ...]:
    """The overlay."""
    own = (f"kubernetes-validate=={version}", "PyYAML==6.0.3", "typing-extensions==4.16.0")
    return (*own, "importlib-resources==7.1.0", "packaging==26.3", *JSON_SCHEMA_PACKAGES)


VALIDATOR = Validator(
    name="kubernetes-validate",
    default_version=KUBERNETES_VALIDATE_VERSION,
    worker=Path(__file__).with_name("kubernetes_validate_worker.py"),
    applies=lambda folder: bool(manifests(folder)),
    request=request,
    packages=packages,
)
