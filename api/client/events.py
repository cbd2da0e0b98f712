"""The server-sent events of a job: read as they come, and resumed where a connection broke."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from api.client.errors import ProblemReported, ServiceError
from api.client.transport import Transport, is_passing, read_answer
from api.wire.jobs import ENDED, JobEvent, JobRecord


def parse_events(lines: Iterable[str]) -> Iterator[JobEvent]:
    """Events of a ``text/event-stream`` (WHATWG HTML, section 9.2); comments and unfinished events are left out."""
    data: list[str] = []
    for line in lines:
        name, _, value = line.partition(":")
        if not line and data:
            yield read_answer(JobEvent, "\n".join(data).encode())
        if not line:
            data = []
        elif name == "data":
            data.append(value.removeprefix(" "))


def watch(transport: Transport, job_id: str, after: int = 0) -> Iterator[JobEvent]:
    """Every event after number ``after``, none twice and none missed, until the job has ended.

    A broken connection, a restarted service and a busy one are waited for as the transport's patience says; an event
    that arrives makes it new again.  Raises ProblemReported, ServiceUnreachable.
    """
    path, attempt = f"/v1/jobs/{job_id}", 0
    while True:
        failure: ServiceError | None = None
        try:
            headers = {"Accept": "text/event-stream", **({"Last-Event-ID": str(after)} if after else {})}
            with transport.stream(f"{path}/events", headers) as response:
                for event in parse_events(response.iter_lines()):
                    if event.seq <= after:
                        continue
                    after, attempt = event.seq, 0
                    yield event
                    if event.status in ENDED:
                        return
        except ServiceError as error:
            if not is_passing(error):
                raise
            failure = error
        # The stream ended without an end: the service stopped, or everything had been said before.
        if failure is None and transport.ask(JobRecord, "GET", path).status in ENDED:
            return
        attempt += 1
        said_s = failure.retry_after_s if isinstance(failure, ProblemReported) else None
        wait_s = transport.patience.wait_s(attempt, said_s)
        if wait_s is None:
            raise failure or ServiceError(
                "the stream of events ends again and again", where=job_id, hint="ask for the job itself instead"
            )
        transport.patience.sleep(wait_s)
