"""``meshwright explain``: why this plan, and why not another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, talk, write_answer
from planner.cli.script_flags import (
    ScriptArguments,
    ScriptFlags,
    Variables,
    VocabularySize,
    refuse_without,
    said_script,
    tell_without_effect,
)
from planner.errors import Conflict
from planner.operations.launch_files import is_job_file
from planner.operations.service import SERVICE_LIMITS, opened_service
from planner.strategy.fields import PINNABLE
from planner.strategy.text import parse_assignments

if TYPE_CHECKING:
    from planner.answers.explain.why import Explanation
    from planner.answers.explain.why_not import WhyNot as Counterfactual
    from planner.plan.plan import Plan

WhyNot = Annotated[
    list[str] | None,
    typer.Option(
        "--why-not",
        metavar="K=V,...|FILE",
        help="Ask for another choice, for example tp=4,pp=8, or for your own run: its script or job file.",
    ),
]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the plan as one HTML file too.")]
Ladder = Annotated[
    Path | None,
    typer.Option(
        "--ladder",
        metavar="FOLDER",
        help="Beyond 512 devices, and over several kinds: write the shortened models of the smaller runs that would"
        " settle the plan.",
    ),
]
Brief = Annotated[bool, typer.Option("--brief", help="Only what the plan says; no estimates of its neighbours.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain")(explain)


def explain(  # noqa: PLR0913, PLR0917  # a flag is an argument
    plan: flags.PlanReference,
    why_not: WhyNot = None,
    brief: Brief = False,
    html: Html = None,
    ladder: Ladder = None,
    variables: Variables = None,
    script_args: ScriptArguments = None,
    vocab_size: VocabularySize = None,
    time_limit: flags.TimeLimit = None,
    database: flags.Database = None,
    server: flags.Server = None,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Why this plan: what binds, what each choice costs, what the next faster plan lacks."""
    script = ScriptFlags(_script(why_not), variables, script_args, None, vocab_size)
    if script.path is not None:
        _answer_script(plan, script, (database, server), quiet, output)
        return
    refuse_without(script, "--why-not SCRIPT")
    parse_assignments(why_not or [], "--why-not", PINNABLE)
    from planner.answers.explain.why_not import WhyNot as Counterfactual
    from planner.cli.planning import search_options
    from planner.cli.progress import search_progress
    from planner.cli.render.explanation import explanation_report
    from planner.operations.explain import EXPLAIN, ExplainRequest
    from planner.operations.plan_reference import PlanRequest
    from planner.operations.plans import GET_PLAN

    asked = ExplainRequest(plan=plan, brief=brief, why_not=None if why_not is None else ",".join(why_not))
    search, limited = search_options(0, time_limit, 0), {"--time-limit": time_limit is not None}
    with opened_service(server, database, only_here=limited, instead=SERVICE_LIMITS) as service:
        with search_progress(quiet=quiet or why_not is None) as progress:
            answer = service.call(EXPLAIN, asked, search=search, progress=progress)
        the_plan = service.call(GET_PLAN, PlanRequest(plan=plan))
    if isinstance(answer, Counterfactual):
        _print_why_not(the_plan, answer, output)
        return
    if html is not None:
        from planner.answers.views.report.page import report_page
        from planner.operations.reading import write_file

        write_file(html, report_page(the_plan))
    if ladder is not None:
        _write_ladder(the_plan, answer, ladder)
    write_answer(answer.model_dump(mode="json"), output, lambda: explanation_report(the_plan, answer))


def _write_ladder(plan: Plan, explained: Explanation, folder: Path) -> None:
    """The model of each smaller run, as a document that ``--model`` reads."""
    from planner.answers.explain.trust_ladder import shortened_model
    from planner.operations.reading import write_file

    runs = [each.run for each in explained.ladder if each.run is not None]
    if not runs:
        raise Conflict(
            "this plan has no ladder of smaller runs",
            where="--ladder",
            hint="plans on more than 512 devices or on several kinds of them have one; leave --brief out",
        )
    folder.mkdir(parents=True, exist_ok=True)
    for run in runs:
        write_file(folder / run.model_file, shortened_model(plan.problem.model, run.layers).canonical_json())


def _script(texts: list[str] | None) -> str | None:
    """The launch script or job file that ``--why-not`` names, if it is one."""
    return texts[0] if texts is not None and len(texts) == 1 and is_job_file(texts[0]) else None


def _answer_script(
    reference: str, script: ScriptFlags, place: tuple[str | None, str | None], quiet: bool, output: OutputFormat
) -> None:
    """Why not the run of this script: it is predicted here, whole, on the plan's question."""
    from planner.cli.render.explanation import why_not_report
    from planner.cli.render.script import script_report
    from planner.operations.launch_files import script_facts
    from planner.operations.plan_reference import PlanRequest
    from planner.operations.plans import GET_PLAN
    from planner.operations.script_run import held_to, why_not_script

    database, server = place
    with opened_service(server, database) as service:
        plan = service.call(GET_PLAN, PlanRequest(plan=reference))
    found, job = why_not_script(plan, said_script(script))
    tell_without_effect(job, quiet)
    for line in held_to(plan, job):
        talk(f"held to: {line}", quiet=quiet)
    data, read = found.model_dump(mode="json"), script_facts(job)
    data["script"] = read
    if found.other is not None:
        from planner.cli.plan_answer import answer_data

        data["other"] = answer_data(found.other)
    write_answer(data, output, lambda: [*script_report(read, script.path or ""), *why_not_report(plan, found)])


def _print_why_not(plan: Plan, answer: Counterfactual, output: OutputFormat) -> None:
    from planner.cli.render.explanation import why_not_report

    data = answer.model_dump(mode="json")
    if answer.other is not None:
        from planner.cli.plan_answer import answer_data

        data["other"] = answer_data(answer.other)
    write_answer(data, output, lambda: why_not_report(plan, answer))
