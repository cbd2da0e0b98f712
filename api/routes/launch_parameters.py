"""Query parameters about the place where the job runs, as ``meshwright emit`` has flags."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import StringConstraints

from api.wire.questions import LONGEST_TEXT, MOST_HOST_LINES, MOST_VARIABLES, EmissionQuestion, Variable
from planner.backends.launch.hosts import read_hosts
from planner.backends.launch.settings import LaunchSettings

Hosts = Annotated[
    list[Annotated[str, StringConstraints(max_length=LONGEST_TEXT)]] | None,
    Query(max_length=MOST_HOST_LINES, description="in the fabric's order; names or host lists such as n[000-031]"),
]
Positive = Annotated[int | None, Query(ge=1, le=1_000_000)]
Text = Annotated[str | None, Query(max_length=LONGEST_TEXT)]


async def launch_settings(  # noqa: PLR0917  # a query parameter is an argument
    hosts: Hosts = None,
    switches: Annotated[Positive, Query(description="Slurm: leaf switches that the job may span")] = None,
    network_tier: Annotated[Positive, Query(description="Volcano: highest tier of HyperNodes of the job")] = None,
    topology_label: Annotated[Text, Query(description="Kubernetes: node label of the domain to stay inside")] = None,
    image: Annotated[Text, Query(description="Kubernetes: the container image")] = None,
    namespace: Annotated[Text, Query(description="Kubernetes: the namespace")] = None,
    files_claim: Annotated[
        Text, Query(description="Kubernetes: a volume claim with the files, instead of a ConfigMap")
    ] = None,
    env: Annotated[
        list[Variable] | None,
        Query(max_length=MOST_VARIABLES, description="NAME=VALUE, a variable of every rank beside the plan's own"),
    ] = None,
) -> LaunchSettings:
    """The settings, checked.  Raises DocumentInvalid."""
    return LaunchSettings(
        hosts=read_hosts("\n".join(hosts or ())),
        switches=switches,
        network_tier=network_tier,
        topology_label=topology_label,
        image=image,
        namespace=namespace,
        files_claim=files_claim,
        env=tuple(env or ()),
    )


def settings_of(question: EmissionQuestion) -> LaunchSettings:
    """The same of a body.  Raises DocumentInvalid."""
    place = {name: getattr(question, name) for name in LaunchSettings.__slots__ if name != "hosts"}
    return LaunchSettings(hosts=read_hosts("\n".join(question.hosts)), **place)
