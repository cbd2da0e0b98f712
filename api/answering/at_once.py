"""Questions that are searched in a process of the pool and answered at once; nothing of them is a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anyio import to_thread
from fastapi import Request

from api.errors import ServiceBusy
from api.http.departures import while_connected
from api.planning.resolving import Resolver
from api.service import service_of
from api.solving.task_runner import TooLong
from planner.errors import DocumentInvalid
from planner.operations.operation import Operation
from profiles.cluster import Cluster
from profiles.document import Document

SPARE = 0.8
"""Part of the time for an answer that its search may take."""


async def searched(request: Request, operation: Operation[Any, Any], asked: Callable[[], Document], hint: str) -> bytes:
    """The answer's JSON.  ``asked`` resolves names and checks the question, in a thread.

    Raises what ``asked`` does, and ServiceBusy with the ``hint`` where the search takes too long.
    """
    service = service_of(request)
    limit_s = service.settings.synchronous_s
    question = await to_thread.run_sync(asked)
    try:
        work = service.searches.run(operation.task, question.model_dump(mode="json"), limit_s)
        return await while_connected(request, work)
    except TooLong:
        raise ServiceBusy(f"the search takes longer than {limit_s:g} s", hint=hint) from None


def cluster_within(resolver: Resolver, said: str | dict[str, Any], devices: int | None) -> Cluster:
    """The cluster of a question.  Raises NotFound, DocumentInvalid for one that is larger than the service plans."""
    cluster, most = resolver.cluster(said, devices), resolver.settings.most_devices
    if cluster.num_devices > most:
        raise DocumentInvalid(f"this service plans up to {most:,} devices", where="/devices", hint="ask for fewer")
    return cluster
