"""``meshwright explain``: why this plan, and why not another."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, write_answer
from planner.strategy_text import parse_assignments, pinnable_keys

WhyNot = Annotated[
    list[str] | None,
    typer.Option("--why-not", metavar="K=V,...", help="Ask for another choice, for example tp=4,pp=8."),
]
Brief = Annotated[bool, typer.Option("--brief", help="Only what the plan says; no estimates of its neighbours.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain")(explain)


def explain(  # noqa: PLR0917  # a flag is an argument
    plan: flags.PlanReference,
    why_not: WhyNot = None,
    brief: Brief = False,
    time_limit: flags.TimeLimit = None,
    database: flags.Database = None,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Why this plan: what binds, what each choice costs, what the next faster plan lacks."""
    pins = parse_assignments(why_not or [], "--why-not", pinnable_keys())
    from planner.cli.plan_reference import load_plan

    the_plan = load_plan(plan, database)
    if why_not is not None:
        from planner.cli.planning import search_options
        from planner.cli.progress import search_progress
        from planner.cli.render.explanation import why_not_report
        from planner.explain.why_not import why_not as ask

        search = search_options(0, time_limit, 0)
        with search_progress(quiet=quiet) as progress:
            answer = ask(the_plan, pins, search, progress)
        data = answer.model_dump(mode="json")
        if answer.other is not None:
            from planner.cli.plan_answer import answer_data

            data["other"] = answer_data(answer.other)
        write_answer(data, output, lambda: why_not_report(the_plan, answer))
        return
    from planner.cli.render.explanation import explanation_report
    from planner.explain.why import explain as ask_why

    explanation = ask_why(the_plan, with_neighbours=not brief)
    write_answer(explanation.model_dump(mode="json"), output, lambda: explanation_report(the_plan, explanation))
