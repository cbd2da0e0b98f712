"""verl's own configuration, composed by Hydra in a process of its own."""

from __future__ import annotations

from pathlib import Path

from planner.backends.checking.validator import Request, Validator
from planner.rl.frameworks.verl.launch import RELEASE, VerlLaunch
from planner.rl.frameworks.verl.overrides import words_of

VALIDATOR = Validator(
    name="verl",
    default_version=RELEASE,
    worker=Path(__file__).with_name("validator_worker.py"),
    applies=lambda folder: folder.manifest.get("framework") == "verl",
    request=lambda folder: {},
    packages=lambda version: (
        f"verl=={version}",
        "hydra-core==1.3.8",
        "omegaconf==2.4.0",
        "antlr4-python3-runtime==4.9.3",
        "pyyaml==6.0.4",
        "packaging==26.4",
    ),
)


def request_of(launch: VerlLaunch) -> Request:
    """What the worker is asked about a launch."""
    trainer = launch.trainer_nodes * launch.trainer_devices_per_node
    engines = launch.rollout_nodes * launch.rollout_devices_per_node
    return {"words": words_of(launch), "devices": trainer + engines}
