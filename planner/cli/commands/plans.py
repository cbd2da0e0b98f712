"""``meshwright plans``: what is stored, in the database of plans."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.options import Database, Output, PlanReference, Server
from planner.cli.output import OutputFormat, talk, to_json, write_answer, write_stdout
from planner.operations.service import asked_service

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.store.records import PlanRecord


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Stored plans: list, show, export, label.", no_args_is_help=True, rich_markup_mode=None)
    group.command("list")(list_stored)
    group.command("show")(show)
    group.command("export")(export)
    group.command("label")(label)
    app.add_typer(group, name="plans")


def list_stored(  # noqa: PLR0917  # a flag is an argument
    model: Annotated[str | None, typer.Option("--model", "-m", help="Only plans of this model.")] = None,
    cluster: Annotated[str | None, typer.Option("--cluster", "-c", help="Only plans for this cluster.")] = None,
    limit: Annotated[int, typer.Option("--limit", help="At most so many, newest first (1 to 1000).")] = 50,
    after: Annotated[str | None, typer.Option("--after", metavar="PLAN", help="Continue after this plan.")] = None,
    database: Database = None,
    server: Server = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Stored plans, newest first."""
    with asked_service(server, database) as service:
        if service is not None:
            records = service.list_plans(model, cluster, limit, after)
        else:
            from planner.store import open_store

            with open_store(database) as store:
                records = store.list_plans(model, cluster, limit=limit, after=after)
    write_answer([_row(record) for record in records], output, lambda: _list_table(records))


def show(
    plan: PlanReference,
    full: Annotated[bool, typer.Option("--full", help="JSON and YAML: with the embedded problem.")] = False,
    database: Database = None,
    server: Server = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """One plan, as ``plan`` printed it."""
    from planner.cli.plan_answer import answer_data, answer_tables
    from planner.operations.plan_reference import load_plan

    with asked_service(server, database) as service:
        the_plan = load_plan(plan, database, service)
    write_answer(answer_data(the_plan, full=full), output, lambda: answer_tables(the_plan))


def export(
    plan: PlanReference,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write here instead of stdout.")] = None,
    database: Database = None,
    server: Server = None,
    output: Output = OutputFormat.JSON,
) -> None:
    """The whole plan document with its problem: a file that every other command reads."""
    from planner.operations.plan_reference import full_document, load_plan
    from planner.operations.reading import write_file

    with asked_service(server, database) as service:
        document = full_document(load_plan(plan, database, service))
    if out is not None:
        write_file(out, to_json(document))
        talk(f"wrote {out}")
    elif output is OutputFormat.YAML:
        write_answer(document, output, list)
    else:
        write_stdout(to_json(document))


def label(
    plan: PlanReference,
    name: Annotated[str, typer.Argument(help="The label, for example production.")],
    database: Database = None,
    server: Server = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Give a stored plan a name; the name can move to another plan later, its history stays."""
    with asked_service(server, database) as service:
        if service is not None:
            version, plan_id = service.label(name, plan)
        else:
            from planner.store import open_store

            with open_store(database) as store:
                plan_id = store.resolve(plan)
                version = store.label_plan(name, plan_id)
    data = {"label": name, "version": version, "plan_id": plan_id}
    write_answer(data, output, lambda: [f"{name} (version {version}) is plan {plan_id[:12]}."])


def _row(record: PlanRecord) -> dict[str, Any]:
    return {
        "plan_id": record.plan_id,
        "problem_id": record.problem_id,
        "status": record.status,
        "outcome": record.outcome,
        "step_time_s": record.step_time_s,
        "gap": record.gap,
        "num_devices": record.num_devices,
        "model": record.model_name,
        "cluster": record.cluster_name,
        "backend": record.backend,
        "release": record.release,
        "created_at": record.created_at.isoformat(),
        "labels": list(record.labels),
    }


def _list_table(records: Iterable[PlanRecord]) -> list[RenderableType]:
    from planner.answers.views.words import percent, seconds, short_id
    from planner.cli.render.back_ends import software_name
    from planner.cli.render.tables import table

    rows = [
        (
            short_id(record.plan_id),
            record.model_name,
            record.cluster_name,
            software_name(record.backend, record.release),
            f"{record.num_devices:,}",
            seconds(record.step_time_s),
            record.outcome,
            "" if record.gap is None else percent(record.gap),
            record.created_at.strftime("%Y-%m-%d %H:%M"),
            ", ".join(record.labels),
        )
        for record in records
    ]
    if not rows:
        return ["No stored plan fits. `meshwright plan` stores one."]
    question = ("plan", "model", "cluster", "back-end", ">devices")
    columns = (*question, ">step", "outcome", ">gap", "created (UTC)", "labels")
    return [table("", columns, rows)]
