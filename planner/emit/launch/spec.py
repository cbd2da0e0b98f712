"""What must a launcher know?  Nodes, devices a node, the script that each rank runs, and its environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.emit.emission import LauncherName
from planner.errors import NotFound, TargetRefused
from planner.plan import Plan

_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """One job, the same for every launcher.

    ``script`` is a path beside the launcher files and runs once for each rank, in its own directory, with RANK,
    LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set.  A ``.py`` script is run by Python, anything else must be
    executable.  ``arguments`` are literal words.
    """

    job_name: str
    num_nodes: int
    devices_per_node: int
    script: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def world_size(self) -> int:
        """Ranks in all."""
        return self.num_nodes * self.devices_per_node


@dataclass(frozen=True, slots=True)
class LaunchFiles:
    """What a launcher adds to an emission."""

    files: Mapping[str, str]
    command: str
    executables: frozenset[str]


def launch_spec(plan: Plan, script: str, environment: Mapping[str, str], arguments: tuple[str, ...] = ()) -> LaunchSpec:
    """Fit the plan's ranks on the cluster's nodes.

    Nodes are filled completely: every launcher starts equally many ranks a node.

    Raises TargetRefused when the world size is not a whole number of nodes, or when the pools' nodes differ in size.
    """
    world_size = plan.chosen().world_size
    sizes = sorted({pool.devices_per_node for pool in plan.problem.cluster.pools})
    if len(sizes) > 1:
        raise TargetRefused(
            f"the cluster mixes nodes of {sizes} devices, and torchrun starts equally many ranks on every node",
            hint="plan on one pool, or split the nodes into equal ones",
        )
    devices_per_node = min(sizes[0], world_size)
    if world_size % devices_per_node:
        raise TargetRefused(
            f"{world_size} ranks are not a whole number of nodes of {devices_per_node} devices",
            hint=f"plan for a multiple of {devices_per_node} devices",
        )
    name = _NAME.sub("-", plan.problem.model.name).strip("-.") or "model"
    return LaunchSpec(
        job_name=f"{name}-{plan.plan_id[:8]}",
        num_nodes=world_size // devices_per_node,
        devices_per_node=devices_per_node,
        script=script,
        arguments=arguments,
        environment=dict(environment),
    )


def launch_files(spec: LaunchSpec, launcher: LauncherName) -> LaunchFiles:
    """Write the launcher's files.  Raises NotFound for an unknown launcher."""
    from planner.emit.launch import slurm, torchrun

    writers = {"torchrun": torchrun.launch_files, "slurm": slurm.launch_files}
    if launcher not in writers:
        raise NotFound(f"no launcher is called {launcher!r}", where="--launcher", hint=f"one of {', '.join(writers)}")
    return writers[launcher](spec)
