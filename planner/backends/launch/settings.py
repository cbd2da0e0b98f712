"""What only the user knows of the place where a job runs: hosts and their order, switches, image, environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.backends.launch.hosts import read_hosts
from planner.errors import DocumentInvalid

IMAGE_PLACEHOLDER = "SET_THE_IMAGE"
"""Upper case is no legal image name, so a pod with it fails at once (InvalidImageName) and pulls nothing."""
_IMAGE = re.compile(r"[a-z0-9][a-z0-9._/:@-]*(:[A-Za-z0-9_][A-Za-z0-9._-]*)?(@sha256:[0-9a-f]{64})?")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OWN_VARIABLES = frozenset(
    {
        "RANK",
        "LOCAL_RANK",
        "NODE_RANK",
        "GROUP_RANK",
        "WORLD_SIZE",
        "LOCAL_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
        "NUM_NODES",
        "DEVICES_PER_NODE",
        "PLAN_DIR",
        "NODE_NAME",
        "PATH",
        "HOSTFILE",
    }
)
"""What launchers say themselves: another value would start other ranks, or none."""
_LABEL_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class LaunchSettings:
    """All are optional; without them the files hold marked places, and ``PLAN.md`` says what is assumed."""

    hosts: tuple[str, ...] = ()
    """Host names (Kubernetes: node names) in the fabric's order; the first ones are used."""
    switches: int | None = None
    """Slurm: leaf switches that the job may span."""
    network_tier: int | None = None
    """Volcano: the highest tier of HyperNodes that the job may span."""
    topology_label: str | None = None
    """Kubernetes: the node label whose value is one fast domain (rack, block); the job stays inside one."""
    image: str | None = None
    namespace: str | None = None
    files_claim: str | None = None
    """Kubernetes: a PersistentVolumeClaim that holds this folder, instead of a ConfigMap."""
    env: tuple[str, ...] = ()
    """``NAME=VALUE``, each an environment variable of every rank beside the plan's own."""

    def __post_init__(self) -> None:
        for name, value in (("--switches", self.switches), ("--network-tier", self.network_tier)):
            if value is not None and value < 1:
                raise DocumentInvalid(f"{value} is not a positive number", where=name)
        _demand(_IMAGE, self.image, "--image", "an image is written like registry.example.com/team/train:1.2")
        _demand(_LABEL, self.namespace, "--namespace", "lower case letters, digits and '-', at most 63")
        _demand(_LABEL, self.files_claim, "--files-claim", "the name of a PersistentVolumeClaim")
        _demand_variables(self.env)
        _demand(_LABEL_KEY, self.topology_label, "--topology-label", "a label key like topology.kubernetes.io/rack")

    def variables(self) -> dict[str, str]:
        """``env`` as names and values."""
        return {name: value for name, _, value in (each.partition("=") for each in self.env)}

    def to_dict(self) -> dict[str, Any]:
        """What is set, as plain data (``manifest.json``)."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items() if value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LaunchSettings:
        """The settings that ``to_dict`` gave.  Raises DocumentInvalid for anything else."""
        unknown = sorted(set(data) - set(cls.__slots__))
        if unknown:
            raise DocumentInvalid(f"no launch settings are called {unknown}", where="manifest.json#/launch")
        hosts = read_hosts("\n".join(map(str, data.get("hosts", ()))), "manifest.json#/launch")
        values = {**data, "hosts": hosts, "env": tuple(map(str, data.get("env", ())))}
        return cls(**values)


def _demand(pattern: re.Pattern[str], value: str | None, where: str, hint: str) -> None:
    if value is not None and not pattern.fullmatch(value):
        raise DocumentInvalid(f"{value!r} is not allowed here", where=where, hint=hint)


def _demand_variables(words: tuple[str, ...]) -> None:
    """Raises DocumentInvalid with every word that is no variable, is a launcher's own, or is said twice."""
    problems, seen = [], set()
    for word in words:
        name, separator, value = word.partition("=")
        if not separator or not _VARIABLE.fullmatch(name):
            problems.append(f"{word!r} is not NAME=VALUE")
        elif name in OWN_VARIABLES:
            problems.append(f"{name} is set by the launcher")
        elif name in seen:
            problems.append(f"{name} is given twice")
        elif not value.isprintable():
            problems.append(f"the value of {name} has letters that cannot be printed")
        seen.add(name)
    if problems:
        raise DocumentInvalid("; ".join(problems), where="--env", hint="for example --env NCCL_IB_HCA=mlx5")
