"""``meshwright replan``: devices were lost or gained: the new plan, and what must move."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, talk, write_answer
from planner.errors import DocumentInvalid
from planner.operations.service import opened_service

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.answers.replan.replan import Replan

LostNodes = Annotated[
    str | None,
    typer.Option("--lost-nodes", metavar="I,...", help="Nodes of the plan that are gone, counted from 0."),
]
TopK = Annotated[int, typer.Option("--top", metavar="K", help="Runners-up to report.")]
NoStore = Annotated[bool, typer.Option("--no-store", help="Do not keep the new plan in the database.")]
PlanOut = Annotated[Path | None, typer.Option("--plan-out", metavar="FILE", help="Write the new plan document.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replan")(replan)


def replan(  # noqa: PLR0917  # a flag is an argument
    plan: flags.PlanReference,
    devices: flags.Devices = None,
    lost_nodes: LostNodes = None,
    top: TopK = 0,
    plan_out: PlanOut = None,
    no_store: NoStore = False,
    database: flags.Database = None,
    server: flags.Server = None,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """The best plan on other devices of the same kind, which axes keep their layout, and what must move."""
    lost = parse_nodes(lost_nodes)
    if (devices is None) == (not lost):
        raise DocumentInvalid(
            "say either how many devices there are or which nodes are lost",
            where="--devices --lost-nodes",
            hint="give one of the two",
        )
    from planner.cli.planning import search_options, write_plan
    from planner.cli.progress import search_progress
    from planner.operations.replan import REPLAN, ReplanRequest

    asked = ReplanRequest(plan=plan, devices=devices, lost_nodes=lost, top_k=top)
    search, unknown = search_options(top, None, 0), {"--no-store": no_store}
    with (
        opened_service(server, database, only_here=unknown, instead="plan on this machine") as service,
        search_progress(quiet=quiet) as progress,
    ):
        made = service.call(REPLAN, asked, search=search, progress=progress, keep=not no_store)
    write_plan(made.plan, plan_out)
    if not no_store:
        talk(f"stored; next: meshwright plans show {made.new_plan_id[:12]}", quiet=quiet)
    write_answer(answer_data(made), output, lambda: _tables(made))


def parse_nodes(text: str | None) -> tuple[int, ...]:
    """``0,3,4`` as numbers.  Raises DocumentInvalid."""
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise DocumentInvalid(f"{text!r} is no list of nodes", where="--lost-nodes", hint="write it as 0,3,4")
    return tuple(int(part) for part in parts)


def answer_data(made: Replan) -> dict[str, Any]:
    """The answer as plain data; the new plan without its problem, as ``plan -o json`` prints it."""
    from planner.cli.plan_answer import answer_data as plan_data

    return {**made.model_dump(mode="json", exclude={"plan"}), "plan": plan_data(made.plan)}


def _tables(made: Replan) -> Iterator[RenderableType]:
    from planner.answers.views.words import gib, percent, seconds, short_id
    from planner.cli.render.plan import strategy_line
    from planner.cli.render.tables import facts, heading, table

    moved = made.resharding
    yield facts(
        [
            ("plan", f"{short_id(made.old_plan_id)} -> {short_id(made.new_plan_id)}"),
            ("devices", f"{made.devices_before:,} -> {made.devices_after:,} ({made.devices_kept:,} stay)"),
            ("step", f"{seconds(made.plan.step_time_s)} ({percent(made.slower_by, signed=True)})"),
            ("strategy", strategy_line(made.plan)),
            ("layout", "kept" if made.layout_kept else "changes"),
        ]
    )
    yield heading("Axes")
    rows = [(axis.axis, str(axis.before), str(axis.after), "kept" if axis.kept else "changes") for axis in made.axes]
    yield table("", ("axis", ">before", ">after", "layout"), rows)
    yield heading("What must move")
    yield facts(
        [
            ("needed", gib(moved.needed_bytes)),
            ("where it is", gib(moved.kept_bytes)),
            ("moved", gib(moved.moved_bytes)),
            ("only in a checkpoint", f"{gib(moved.lost_bytes)} of {gib(moved.state_bytes)}"),
            ("at the least", f"{seconds(moved.seconds)} over {moved.slowest_link}"),
        ]
    )
