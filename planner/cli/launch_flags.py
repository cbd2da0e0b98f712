"""The flags of ``LaunchSettings``: where a job runs, as said on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from planner.backends.launch.settings import LaunchSettings

Hosts = Annotated[
    Path | None,
    typer.Option("--hosts", metavar="FILE", help="Hosts in the fabric's order, one a line, or a Slurm topology."),
]
Switches = Annotated[
    int | None, typer.Option("--switches", metavar="N", help="Slurm: leaf switches that the job may span.")
]
NetworkTier = Annotated[
    int | None, typer.Option("--network-tier", metavar="N", help="Volcano: highest tier of HyperNodes of the job.")
]
TopologyLabel = Annotated[
    str | None,
    typer.Option("--topology-label", metavar="KEY", help="Kubernetes: node label of the domain to stay inside."),
]
Image = Annotated[str | None, typer.Option("--image", metavar="IMAGE", help="Kubernetes: the container image.")]
Namespace = Annotated[str | None, typer.Option("--namespace", metavar="NAME", help="Kubernetes: the namespace.")]
FilesClaim = Annotated[
    str | None,
    typer.Option("--files-claim", metavar="NAME", help="Kubernetes: a volume claim with this folder, no ConfigMap."),
]

Environment = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="NAME=VALUE", help="An environment variable of every rank; repeat it for more."),
]


def launch_settings(
    *,
    hosts: Path | None,
    switches: int | None,
    network_tier: int | None,
    topology_label: str | None,
    image: str | None,
    namespace: str | None,
    files_claim: str | None,
    env: list[str] | None = None,
) -> LaunchSettings:
    """The settings, checked.  Raises DocumentInvalid."""
    from planner.backends.launch.hosts import load_hosts
    from planner.backends.launch.settings import LaunchSettings

    return LaunchSettings(
        hosts=load_hosts(hosts) if hosts else (),
        switches=switches,
        network_tier=network_tier,
        topology_label=topology_label,
        image=image,
        namespace=namespace,
        files_claim=files_claim,
        env=tuple(env or ()),
    )
