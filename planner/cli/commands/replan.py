"""``meshwright replan``: devices were lost or gained: the layout kept, the fastest one, and what must move."""

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

    from planner.answers.replan.option import ReplanOption
    from planner.answers.replan.replan import Replan

LostNodes = Annotated[
    str | None,
    typer.Option(
        "--lost-nodes",
        metavar="I,...",
        help="Nodes of the plan that are gone: counted from 0, or names (--node-names).",
    ),
]
LostDevices = Annotated[
    str | None, typer.Option("--lost-devices", metavar="N:D,...", help="Single devices that are gone, NODE:DEVICE.")
]
LostCount = Annotated[
    int | None, typer.Option("--num-lost-nodes", min=1, metavar="N", help="So many nodes are gone, the last ones.")
]
NodeNames = Annotated[
    str | None,
    typer.Option("--node-names", metavar="LIST", help="The plan's nodes in the order of their ranks: gpu[01-08]."),
]
PreferLayout = Annotated[
    str,
    typer.Option(
        "--prefer-layout", metavar="horizon|keep|fastest", help="As --horizon says; or one, whatever it says."
    ),
]
Horizon = Annotated[
    float | None,
    typer.Option("--horizon", metavar="HOURS", help="Until the devices change again; else until the next failure."),
]
Reshardable = Annotated[
    bool,
    typer.Option("--reshardable-checkpoint", help="The last checkpoint was written to be loaded into any layout."),
]
TopK = Annotated[int, typer.Option("--top", metavar="K", help="Runners-up to report.")]
DATA_PARALLEL = {"dp_replicate", "dp_shard"}
NoStore = Annotated[bool, typer.Option("--no-store", help="Do not keep the new plan in the database.")]
PlanOut = Annotated[Path | None, typer.Option("--plan-out", metavar="FILE", help="Write the new plan document.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replan")(replan)


def replan(  # noqa: PLR0913, PLR0917  # a flag is an argument
    plan: flags.PlanReference,
    devices: flags.Devices = None,
    lost_nodes: LostNodes = None,
    lost_devices: LostDevices = None,
    num_lost_nodes: LostCount = None,
    node_names: NodeNames = None,
    prefer_layout: PreferLayout = "horizon",
    horizon: Horizon = None,
    failure_rate: flags.FailureRate = None,
    storage_bandwidth: Annotated[float | None, flags.STORAGE_BANDWIDTH] = None,
    reshardable_checkpoint: Reshardable = False,
    top: TopK = 0,
    plan_out: PlanOut = None,
    no_store: NoStore = False,
    database: flags.Database = None,
    server: flags.Server = None,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Go on with other devices of the same kind: keep the layout or take the fastest one, and what must move."""
    from planner.answers.replan.lost import check_said
    from planner.cli.planning import search_options, write_plan
    from planner.cli.progress import search_progress
    from planner.operations.replan import REPLAN, ReplanRequest
    from profiles.validation import read_document

    said = {
        "plan": plan,
        "devices": devices,
        "lost_nodes": _words(lost_nodes, "--lost-nodes"),
        "lost_devices": _words(lost_devices, "--lost-devices"),
        "num_lost_nodes": num_lost_nodes,
        "node_names": [node_names] if node_names else [],
        "prefer_layout": prefer_layout,
        "horizon_hours": horizon,
        "failures_per_device_hour": failure_rate,
        "storage_bandwidth_bytes_per_s": None if storage_bandwidth is None else storage_bandwidth * 1e9,
        "reshardable_checkpoint": reshardable_checkpoint,
        "top_k": top,
    }
    asked = read_document(ReplanRequest, said, "replan")
    check_said(asked.lost, where="--devices --lost-nodes")
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


def _words(text: str | None, where: str) -> list[str]:
    """``0,gpu[3-4]`` one by one.  Raises DocumentInvalid."""
    from profiles.importing.hostlist import expand_hostlist

    found = [] if text is None else expand_hostlist(text, where)
    if text is not None and not found:
        raise DocumentInvalid("the list is empty", where=where, hint="write it as 0,3,4")
    return found


def answer_data(made: Replan) -> dict[str, Any]:
    """The answer as plain data; the new plan without its problem, as ``plan -o json`` prints it."""
    from planner.cli.plan_answer import answer_data as plan_data

    return {**made.model_dump(mode="json", exclude={"plan"}), "plan": plan_data(made.plan)}


def _tables(made: Replan) -> Iterator[RenderableType]:
    from planner.answers.views.words import seconds, short_id
    from planner.cli.render.plan import strategy_line
    from planner.cli.render.tables import facts, heading, table
    from profiles.units import HOUR_S

    yield facts(
        [
            ("plan", f"{short_id(made.old_plan_id)} -> {short_id(made.new_plan_id)}"),
            ("devices", f"{made.devices_before:,} -> {made.devices_after:,} ({made.devices_kept:,} stay)"),
            ("recommended", f"{made.recommended}: {made.why}"),
            ("strategy", strategy_line(made.plan)),
            ("layout", _layout(made)),
        ]
    )
    yield heading("Ways to go on")
    yield _side_by_side(made.options)
    equal = made.break_even
    if equal is not None:
        at = "never" if equal.seconds is None else f"after {seconds(equal.seconds)} ({equal.steps:,} steps)"
        until = "no failure is expected" if equal.horizon_s is None else f"{equal.horizon_s / HOUR_S:,.4g} hours"
        yield facts([("the fastest repays its move", at), ("horizon", f"{until}: {equal.horizon_of}")])
    yield heading("Axes")
    rows = [(axis.axis, str(axis.before), str(axis.after), "kept" if axis.kept else "changes") for axis in made.axes]
    yield table("", ("axis", ">before", ">after", "layout"), rows)
    for each in made.options:
        yield heading(f"What must move: {each.name}")
        yield facts(list(_moves(each)))
        if each.loss_changes:
            told = [(", ".join(change.fields), change.keeps, change.why) for change in each.loss_changes]
            yield table("", ("change", "loss curve stays", "because"), told)


def _layout(made: Replan) -> str:
    changed = {axis.axis for axis in made.axes if not axis.kept}
    if made.layout_kept:
        return "kept"
    return "kept but for data parallelism" if changed and changed <= DATA_PARALLEL else "changes"


def _side_by_side(options: tuple[ReplanOption, ...]) -> RenderableType:
    from planner.answers.views.words import gib, percent, seconds
    from planner.cli.render.tables import table

    rows = [
        (
            each.name,
            f"{each.devices:,}" + (f" ({each.idle_devices:,} idle)" if each.idle_devices else ""),
            f"{each.global_batch_size:,}",
            seconds(each.step_time_s),
            "" if each.lower_bound_s is None else seconds(each.lower_bound_s),
            percent(each.slower_by, signed=True),
            gib(each.move.bytes),
            f"{seconds(each.move.seconds)} from {each.move.source}",
            each.checkpoint.loads,
            each.loss_curve,
        )
        for each in options
    ]
    heads = ("", ">devices", ">batch", ">step", ">bound", ">time a token", ">moves", ">at the least")
    return table("", (*heads, "checkpoint loads", "loss curve stays"), rows)


def _moves(each: ReplanOption) -> Iterator[tuple[str, str]]:
    from planner.answers.views.words import gib, seconds

    moved, use = each.resharding, each.checkpoint
    yield "needed", gib(moved.needed_bytes)
    yield "where it is", gib(moved.kept_bytes)
    yield "moved", gib(moved.moved_bytes)
    yield "only in a checkpoint", f"{gib(moved.lost_bytes)} of {gib(moved.state_bytes)}"
    yield "at the least", f"{seconds(each.move.seconds)}, bound by {each.move.slowest_link}"
    yield "checkpoint", f"{use.format or 'none'}: {use.loads} ({use.why})"
    if use.saved_with:
        yield "saved with", use.saved_with
    for step in use.steps:
        yield "before the restart", step
    for note in (*use.not_restored, *each.notes):
        yield "note", note
    if use.source:
        yield "source", use.source
