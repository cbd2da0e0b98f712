"""``meshwright jobs``: the long searches of a service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from planner.cli.options import Output, Quiet, Server
from planner.cli.output import OutputFormat, talk, write_answer
from planner.errors import DocumentInvalid

if TYPE_CHECKING:
    from rich.console import RenderableType

    from api.client import Client
    from api.wire.jobs import JobEvent, JobRecord, JobStatus

Job = Annotated[str, typer.Argument(metavar="JOB", help="The id of a job, as the list shows it.")]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=1000, help="At most so many, newest first.")]
Mine = Annotated[bool, typer.Option("--mine", help="Only jobs of this key.")]
After = Annotated[int, typer.Option("--after", metavar="N", min=0, help="Only what happened after event N.")]


class StatusChoice(StrEnum):
    """What a job can be."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


Status = Annotated[StatusChoice | None, typer.Option("--status", help="Only jobs in this state.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    help_text = "Long searches of a service: list, show, watch, cancel."
    group = typer.Typer(help=help_text, no_args_is_help=True, rich_markup_mode=None)
    group.command("list")(list_jobs)
    group.command("show")(show)
    group.command("watch")(watch)
    group.command("cancel")(cancel)
    app.add_typer(group, name="jobs")


def list_jobs(
    status: Status = None,
    mine: Mine = False,
    limit: Limit = 50,
    server: Server = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Jobs, newest first."""
    with _client(server) as client:
        wanted = cast("JobStatus | None", status and status.value)
        jobs = list(islice(client.list_jobs(status=wanted, mine=mine, page=min(limit, 500)), limit))
    write_answer([each.model_dump(mode="json") for each in jobs], output, lambda: _list_table(jobs))


def show(job: Job, server: Server = None, output: Output = OutputFormat.TABLE) -> None:
    """One job as it stands: how far it is, its plan, or why there is none."""
    with _client(server) as client:
        found = client.get_job(job)
    write_answer(found.model_dump(mode="json"), output, lambda: _facts(found))


def watch(
    job: Job,
    after: After = 0,
    server: Server = None,
    quiet: Quiet = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Follow a job to its end, a line on stderr for each event; then show it.  Lost connections are taken up again."""
    with _client(server) as client:
        events = []
        for event in client.job_events(job, after):
            talk(_event_line(event), quiet=quiet)
            events.append(event.model_dump(mode="json"))
        found = client.get_job(job)
    write_answer({**found.model_dump(mode="json"), "events": events}, output, lambda: _facts(found))


def cancel(job: Job, server: Server = None, output: Output = OutputFormat.TABLE) -> None:
    """End a job; its best plan so far is kept.  Harmless for one that has ended."""
    with _client(server) as client:
        found = client.cancel_job(job)
    write_answer(found.model_dump(mode="json"), output, lambda: _facts(found))


@contextmanager
def _client(server: str | None) -> Iterator[Client]:
    """The client of the service that was named.  Raises DocumentInvalid where none was."""
    import os

    from api.client import Client, ProblemReported
    from api.client.command_line import command_error
    from planner.operations.service import SERVER_VARIABLE

    address = server if server is not None else os.environ.get(SERVER_VARIABLE)
    if not address:
        raise DocumentInvalid(
            "jobs are those of a service", where="--server", hint=f"give --server URL, or set {SERVER_VARIABLE}"
        )
    with Client(address) as client:
        try:
            yield client
        except ProblemReported as error:
            raise command_error(error) from None


def _event_line(event: JobEvent) -> str:
    state = event.progress
    words = [f"{event.seq}: {event.status}", state.phase]
    words.append(f"{state.evaluated:,} solved" if state.wanted is None else f"{state.done:,} of {state.wanted:,} sizes")
    if state.incumbent_s is not None:
        words.append(f"best {state.incumbent_s:.3f} s")
    if state.gap is not None:
        words.append(f"gap {state.gap:.2%}")
    return "  ".join(words)


def _list_table(jobs: list[JobRecord]) -> list[RenderableType]:
    from planner.answers.views.words import short_id
    from planner.cli.render.tables import table

    rows = [
        (
            job.id,
            _about(job),
            job.status,
            job.progress.phase,
            job.created_at.strftime("%Y-%m-%d %H:%M"),
            str(job.attempts),
            short_id(job.result_plan_id or job.result_fleet_id or ""),
        )
        for job in jobs
    ]
    titles = ("|job", "about", "status", "phase", "created (UTC)", ">attempts", "answer")
    return [table("", titles, rows)] if rows else ["No jobs."]


def _about(job: JobRecord) -> str:
    """Model, devices and cluster, or what is shared; nothing of a job whose row does not say."""
    subject, fleet = job.subject, job.fleet
    if fleet is not None:
        return f"{fleet.jobs:,} jobs share {fleet.num_devices:,} devices of {', '.join(fleet.pools)}"
    return f"{subject.model} on {subject.num_devices:,} devices of {subject.cluster}" if subject else ""


def _workload(job: JobRecord) -> str:
    subject = job.subject
    return f"{subject.global_batch_size:,} samples of {subject.sequence_length:,} tokens a step" if subject else ""


def _facts(job: JobRecord) -> list[RenderableType]:
    from planner.cli.render.tables import facts

    data: dict[str, Any] = {
        "job": job.id,
        "about": _about(job),
        "workload": _workload(job),
        "status": job.status,
        "phase": job.progress.phase,
        "solved": f"{job.progress.evaluated:,}" if job.fleet is None else "",
        "sizes": f"{job.progress.done:,} of {job.progress.wanted:,}" if job.progress.wanted else "",
        "attempts": str(job.attempts),
        "plan": job.result_plan_id or "",
        "fleet": job.result_fleet_id or "",
        "because": job.error.detail if job.error else "",
    }
    return [facts([(name, value) for name, value in data.items() if value])]
