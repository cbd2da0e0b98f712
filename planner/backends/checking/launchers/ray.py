"""ray: checks that Ray would take the driver's placement group, its actors, or its TorchTrainer."""

from __future__ import annotations

from pathlib import Path

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.launchers.kubernetes_validate import JSON_SCHEMA_PACKAGES
from planner.backends.checking.validator import Request, Validator
from planner.backends.launch import ray, ray_train
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, read_world_size

RAY_VERSION = "2.60.0"


def _driver(folder: EmittedFolder) -> str:
    return next((name for name in (ray.DRIVER, ray_train.DRIVER) if name in folder.files), "")


def request(folder: EmittedFolder) -> Request:
    """The driver, what it reads, and how many devices it must ask for."""
    name = _driver(folder)
    return {
        "name": name,
        "script": folder.files[name],
        "job": folder.files[ray.JOB_FILE],
        "folder": str(folder.path),
        "manifest": folder.files.get(ray.MANIFEST, ""),
        "world_size": read_world_size(folder.files[LAUNCH_SCRIPT]),
    }


def packages(version: str) -> tuple[str, ...]:
    """The overlay; Ray Train brings torch's part of it from the interpreter."""
    network = ("requests==2.34.2", "urllib3==2.8.0", "certifi==2026.10.18", "idna==3.20", "charset-normalizer==3.5.2")
    own = ("click==8.5.1", "filelock==4.2.11", "msgpack==1.2.4", "protobuf==6.33.6", "PyYAML==6.0.3", "packaging==26.3")
    return (f"ray=={version}", *own, "fsspec==2026.9.0", "tensorboardX==2.6.5", *network, *JSON_SCHEMA_PACKAGES)


VALIDATOR = Validator(
    name="ray",
    default_version=RAY_VERSION,
    worker=Path(__file__).with_name("ray_worker.py"),
    applies=lambda folder: bool(_driver(folder)),
    request=request,
    packages=packages,
    base_modules=("torch", "pyarrow", "pydantic"),
    executes_files=True,
)
