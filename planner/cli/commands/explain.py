"""``meshwright explain``: why this plan, and why not another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, write_answer
from planner.operations.service import PlanService, asked_service, refuse
from planner.strategy.fields import PINNABLE
from planner.strategy.text import parse_assignments

if TYPE_CHECKING:
    from planner.answers.explain.why_not import WhyNot as Counterfactual
    from planner.plan.plan import Plan

WhyNot = Annotated[
    list[str] | None,
    typer.Option("--why-not", metavar="K=V,...", help="Ask for another choice, for example tp=4,pp=8."),
]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the plan as one HTML file too.")]
Brief = Annotated[bool, typer.Option("--brief", help="Only what the plan says; no estimates of its neighbours.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain")(explain)


def explain(  # noqa: PLR0917  # a flag is an argument
    plan: flags.PlanReference,
    why_not: WhyNot = None,
    brief: Brief = False,
    html: Html = None,
    time_limit: flags.TimeLimit = None,
    database: flags.Database = None,
    server: flags.Server = None,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Why this plan: what binds, what each choice costs, what the next faster plan lacks."""
    pins = parse_assignments(why_not or [], "--why-not", PINNABLE)
    from planner.operations.plan_reference import load_plan, stored_reference

    with asked_service(server, database) as service:
        if service is not None:
            refuse(service, {"--time-limit": time_limit is not None}, "the service has limits of its own: drop it")
            stored_reference(plan, service)
        the_plan = load_plan(plan, database, service)
        if why_not is not None:
            _print_why_not(the_plan, _other(the_plan, why_not, pins, time_limit, service, quiet=quiet), output)
            return
        if html is not None:
            from planner.answers.views.report.page import report_page
            from planner.operations.reading import write_file

            write_file(html, report_page(the_plan))
        from planner.cli.render.explanation import explanation_report

        if service is not None:
            explanation = service.explanation(the_plan.plan_id, brief)
        else:
            from planner.answers.explain.why import explain as ask_why

            explanation = ask_why(the_plan, with_neighbours=not brief)
    write_answer(explanation.model_dump(mode="json"), output, lambda: explanation_report(the_plan, explanation))


def _other(
    plan: Plan,
    texts: list[str],
    pins: dict[str, int | str | bool],
    time_limit: float | None,
    service: PlanService | None,
    *,
    quiet: bool,
) -> Counterfactual:
    """The best plan with the wished fields, or what rules them out."""
    if service is not None:
        return service.why_not(plan.plan_id, ",".join(texts))
    from planner.answers.explain.why_not import why_not as ask
    from planner.cli.planning import search_options
    from planner.cli.progress import search_progress

    search = search_options(0, time_limit, 0)
    with search_progress(quiet=quiet) as progress:
        return ask(plan, pins, search, progress)


def _print_why_not(plan: Plan, answer: Counterfactual, output: OutputFormat) -> None:
    from planner.cli.render.explanation import why_not_report

    data = answer.model_dump(mode="json")
    if answer.other is not None:
        from planner.cli.plan_answer import answer_data

        data["other"] = answer_data(answer.other)
    write_answer(data, output, lambda: why_not_report(plan, answer))
