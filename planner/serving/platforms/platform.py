"""A platform: what it can deploy, its files, and the way back.

A room's ``PLATFORM`` writes files from launch words of the engine's room, and reads from its files, for each group, how
many instances there are and what each of them is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.serving.engines.engine import Arguments, Engine, InstanceCommand, Served
from planner.serving.engines.registry import ENGINES
from planner.serving.layout import Deployment, InstanceGroup
from planner.serving.words import EngineName, Role

Files = dict[str, str]


@dataclass(frozen=True, slots=True)
class Given:
    """What a platform writes: a deployment of a model from a checkpoint on nodes of one kind."""

    deployment: Deployment
    served: Served
    name: str
    """Of the service, in words that Kubernetes takes."""
    devices_per_node: int

    @property
    def engine(self) -> Engine:
        """The engine's room."""
        return ENGINES[self.deployment.engine]

    def command(self, group: InstanceGroup) -> InstanceCommand:
        """How one instance of the group is started."""
        return self.engine.command(self.deployment, group, self.served, self.devices_per_node)

    def arguments(self, group: InstanceGroup) -> Arguments:
        """What one instance of the group is told."""
        return self.engine.arguments(self.deployment, group, self.served)

    def devices_of_node(self, group: InstanceGroup) -> int:
        """Devices that one node gives to an instance of the group."""
        return min(group.layout.num_devices, self.devices_per_node)


@dataclass(frozen=True, slots=True)
class Written:
    """Files of a deployment, those of them that are programs, how it is started, and what the user must know."""

    files: Files
    launch: str
    executables: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadGroup:
    """One group as a platform's files say it; ``role`` where the engine's arguments do not say it, else none."""

    num_instances: int
    arguments: Mapping[str, Any]
    role: Role | None = None


@dataclass(frozen=True, slots=True)
class Platform:
    """One platform."""

    name: str
    title: str
    release: str
    """Of the schema that its files follow; empty where they follow none."""
    engines: tuple[EngineName, ...]
    write: Callable[[Given], Written]
    """Raises BackEndRefused with what the platform cannot deploy."""
    read: Callable[[Files, Engine], tuple[ReadGroup, ...]]
    """The groups in the files.  Raises DocumentInvalid."""
    check: Callable[[Files], list[str]] = field(default=lambda files: [])
    """What the platform's own schema refuses, each with its place; empty where nothing is."""
