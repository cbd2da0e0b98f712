"""``meshwright plans``: what is stored, in the database of plans."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.options import Database, Output, PlanReference, Server
from planner.cli.output import OutputFormat, talk, to_json, write_answer, write_stdout
from planner.errors import DocumentInvalid
from planner.operations.service import opened_service

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.operations.labels import LabelSummary
    from planner.operations.plans import PlanSummary
    from planner.plan.plan import Plan

MOST_PLANS = 1000
PAGE = 500


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Stored plans: list, show, label, delete.", no_args_is_help=True, rich_markup_mode=None)
    group.command("list")(list_stored)
    group.command("show")(show)
    group.command("export")(export)
    group.command("label")(label)
    group.command("labels")(labels)
    group.command("unlabel")(unlabel)
    group.command("delete")(delete)
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
    from planner.operations.plans import LARGEST_PAGE, LIST_PLANS, PlansRequest

    if not 1 <= limit <= MOST_PLANS:
        raise DocumentInvalid(f"a page has 1 to {MOST_PLANS} plans, not {limit}", where="--limit")
    found: list[PlanSummary] = []
    with opened_service(server, database) as service:
        if after is not None:
            after = service.plan_id(after)
        while len(found) < limit:
            page = min(limit - len(found), LARGEST_PAGE)
            asked = PlansRequest(model=model, cluster=cluster, limit=page, after=after)
            answer = service.call(LIST_PLANS, asked)
            found += answer.plans
            if (after := answer.next) is None:
                break
    write_answer([_row(each) for each in found], output, lambda: _list_table(found))


def show(
    plan: PlanReference,
    full: Annotated[bool, typer.Option("--full", help="JSON and YAML: with the embedded problem.")] = False,
    fabric: Annotated[
        bool, typer.Option("--fabric", help="Its fabric instead: what each axis gets beside the others, losses.")
    ] = False,
    database: Database = None,
    server: Server = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """One plan, as ``plan`` printed it."""
    from planner.cli.plan_answer import answer_data, answer_tables

    the_plan = _plan(plan, database, server)
    if fabric:
        from planner.answers.views.fabric import plan_fabric_view
        from planner.cli.render.fabric import fabric_tables

        view = plan_fabric_view(the_plan)
        write_answer(view.model_dump(mode="json"), output, lambda: fabric_tables(view))
        return
    write_answer(answer_data(the_plan, full=full), output, lambda: answer_tables(the_plan))


def export(
    plan: PlanReference,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write here instead of stdout.")] = None,
    database: Database = None,
    server: Server = None,
    output: Output = OutputFormat.JSON,
) -> None:
    """The whole plan document with its problem: a file that every other command reads."""
    from planner.operations.plan_reference import full_document
    from planner.operations.reading import write_file

    document = full_document(_plan(plan, database, server))
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
    from planner.operations.labels import PUT_LABEL, LabelRequest
    from planner.operations.plan_reference import is_plan_file, load_plan

    # A file says which plan is meant: the label is of the stored one.
    meant = load_plan(plan).plan_id if is_plan_file(plan) else plan
    with opened_service(server, database) as service:
        found = service.call(PUT_LABEL, LabelRequest(name=name, plan=meant))
    data = {"label": name, "version": found.version, "plan_id": found.plan_id}
    write_answer(data, output, lambda: [f"{name} (version {found.version}) is plan {found.plan_id[:12]}."])


def labels(database: Database = None, server: Server = None, output: Output = OutputFormat.TABLE) -> None:
    """Labels, and the plan that each means now."""
    from planner.operations.labels import LIST_LABELS, LabelsRequest, LabelSummary

    found = list[LabelSummary]()
    with opened_service(server, database) as service:
        asked = LabelsRequest(limit=PAGE)
        while True:
            page = service.call(LIST_LABELS, asked)
            found += page.labels
            if page.next is None:
                break
            asked = LabelsRequest(limit=PAGE, after=page.next)
    data = {"labels": [each.model_dump(mode="json") for each in found]}
    write_answer(data, output, lambda: _label_table(found))


def unlabel(
    name: Annotated[str, typer.Argument(help="The label.")],
    database: Database = None,
    server: Server = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Remove a label with its history; its plans stay."""
    from planner.operations.labels import DELETE_LABEL, LabelName

    with opened_service(server, database) as service:
        found = service.call(DELETE_LABEL, LabelName(name=name))
    data = found.model_dump(mode="json")
    write_answer(data, output, lambda: [f"{name} is no label any more (versions: {found.versions})."])


def delete(
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="Id or unique prefix.")],
    database: Database = None,
    server: Server = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Remove a stored plan, and its question when no other plan answers it; not while a label means the plan."""
    from planner.operations.plan_reference import PlanRequest
    from planner.operations.plans import DELETE_PLAN

    with opened_service(server, database) as service:
        found = service.call(DELETE_PLAN, PlanRequest(plan=plan))
    words = [f"Plan {found.plan_id[:12]} is gone (records of its launch files: {found.emissions})."]
    write_answer(found.model_dump(mode="json"), output, lambda: words)


def _plan(reference: str, database: str | None, server: str | None) -> Plan:
    """A plan file of this machine, or a stored plan."""
    from planner.operations.plan_reference import PlanRequest
    from planner.operations.plans import GET_PLAN

    with opened_service(server, database) as service:
        return service.call(GET_PLAN, PlanRequest(plan=reference))


def _row(plan: PlanSummary) -> dict[str, Any]:
    return {**plan.model_dump(mode="json"), "created_at": plan.created_at.isoformat()}


def _list_table(plans: Iterable[PlanSummary]) -> list[RenderableType]:
    from planner.answers.views.words import percent, seconds, short_id
    from planner.cli.render.back_ends import software_name
    from planner.cli.render.tables import table

    rows = [
        (
            short_id(plan.plan_id),
            plan.model,
            plan.cluster,
            software_name(plan.backend, plan.release),
            f"{plan.num_devices:,}",
            seconds(plan.step_time_s),
            plan.outcome,
            "" if plan.gap is None else percent(plan.gap),
            plan.created_at.strftime("%Y-%m-%d %H:%M"),
            ", ".join(plan.labels),
        )
        for plan in plans
    ]
    if not rows:
        return ["No stored plan fits. `meshwright plan` stores one."]
    question = ("plan", "model", "cluster", "back-end", ">devices")
    columns = (*question, ">step", "outcome", ">gap", "created (UTC)", "labels")
    return [table("", columns, rows)]


def _label_table(found: Iterable[LabelSummary]) -> list[RenderableType]:
    from planner.answers.views.words import short_id
    from planner.cli.render.tables import table

    rows = [
        (each.name, short_id(each.plan_id), f"{each.version:,}", each.created_at.strftime("%Y-%m-%d %H:%M"))
        for each in found
    ]
    return [table("", ("label", "plan", ">version", "since (UTC)"), rows)] if rows else ["No label is set."]
