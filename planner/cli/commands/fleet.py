"""``meshwright fleet``: share the nodes of pools between jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.backends.launch import LauncherName
from planner.cli import options as flags
from planner.cli.output import OutputFormat, talk, write_answer
from planner.operations.service import Service, opened_service

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.answers.fleet.answer import Fleet, JobAllocation

FleetFile = Annotated[Path, typer.Argument(metavar="FILE", help="Jobs and pools as YAML or JSON.")]
Former = Annotated[
    Path | None,
    typer.Option("--former", metavar="FILE", help="An earlier answer (-o json): what its jobs got is what they hold."),
]
LostNodes = Annotated[str | None, typer.Option("--lost-nodes", metavar="NAME,...", help="Nodes that are gone.")]
Objective = Annotated[
    str | None, typer.Option("--objective", metavar="O", help="throughput|deadlines|cost|fairness, instead of FILE's.")
]
MovesFlag = Annotated[
    str | None, typer.Option("--moves", metavar="M", help="when_it_pays|fewest: when a job may be moved.")
]
Budget = Annotated[
    float | None, typer.Option("--budget", metavar="SECONDS", help="The most for the speeds of all jobs together.")
]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", metavar="SECONDS", help="The most for the allocation.")
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Write the launch files of each job, one folder a job.")
]
Launcher = Annotated[LauncherName, typer.Option("--launcher", help="Who starts the processes.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("fleet")(fleet)


def fleet(  # noqa: PLR0913, PLR0917  # a flag is an argument
    file: FleetFile,
    former: Former = None,
    lost_nodes: LostNodes = None,
    objective: Objective = None,
    moves: MovesFlag = None,
    budget: Budget = None,
    time_limit: TimeLimit = None,
    out: Out = None,
    launcher: Launcher = "torchrun",
    no_store: flags.NoStore = False,
    database: flags.Database = None,
    server: flags.Server = None,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Share the nodes of pools between jobs: who gets how many and which, who waits and why."""
    from planner.answers.fleet.question import FleetQuestion
    from planner.operations.fleet import FLEET
    from planner.operations.reading import read_json, read_yaml
    from profiles.validation import read_document

    data = read_yaml(file)
    if isinstance(data, dict):
        said: dict[str, Any] = {"objective": objective, "moves": moves, "budget_s": budget, "time_limit_s": time_limit}
        said["former"] = None if former is None else read_json(former)
        said["lost_nodes"] = None if lost_nodes is None else [lost_nodes]
        data = {**data, **{name: value for name, value in said.items() if value is not None}}
    asked = read_document(FleetQuestion, data, str(file))
    with opened_service(server, database, only_here={"--no-store": no_store}, instead="ask this machine") as service:
        found = service.call(FLEET, asked, keep=not no_store)
        folders = {} if out is None else _emitted(found, service, out, launcher, quiet=quiet)
    if found.undecided:
        talk(f"{found.undecided} sizes not decided; a longer --budget decides more", quiet=quiet)
    answer = found.model_dump(mode="json")
    write_answer(answer, output, lambda: _tables(found, folders))


def _emitted(found: Fleet, service: Service, out: Path, launcher: LauncherName, *, quiet: bool) -> dict[str, str]:
    """Write the launch files of every job that starts or moves, with its nodes as hosts; job -> folder."""
    from planner.backends.launch.settings import LaunchSettings
    from planner.cli.emitting import emit_into
    from planner.operations.emit import EmitRequest

    folders = {}
    for job in found.jobs:
        if job.plan_id is not None:
            settings = LaunchSettings(hosts=job.nodes).to_dict()
            asked = EmitRequest(plan=job.plan_id, launcher=launcher, settings=settings)
            folders[job.name] = emit_into(out / job.name, service, asked, quiet=quiet)["directory"]
    return folders


def _tables(found: Fleet, folders: dict[str, str]) -> Iterator[RenderableType]:
    from planner.cli.render.tables import bullets, facts, heading, table

    head = (
        "job",
        "change",
        "pool",
        ">devices",
        "nodes",
        ">step",
        ">tokens/s",
        ">of its most",
        ">one node more",
        "plan",
    )
    yield table("", head, [_row(job) for job in found.jobs if job.pool is not None])
    waiting = [f"{job.name} {job.change}: {job.why}" for job in found.jobs if job.pool is None]
    if waiting:
        yield heading("Who waits")
        yield bullets(waiting)
    moved = [f"{job.name}: {job.why}, {job.lost_s:,.0f} s lost" for job in found.jobs if job.change == "moves"]
    if moved:
        yield heading("Who moves")
        yield bullets(moved)
    yield heading("How good it is")
    yield facts(
        [
            (
                each.name,
                f"{each.value:.6g}, at most {each.bound:.6g} ({'proved' if each.proved else f'{each.gap:.2%}'})",
            )
            for each in found.goals
        ]
        + [("blocks touched", f"{found.blocks_touched:,}, at least {found.blocks_bound:,}")]
    )
    pools = [
        (
            pool.name,
            f"{pool.nodes:,}",
            f"{pool.given:,}",
            f"{len(pool.free):,}",
            "not known"
            if pool.one_node_more is None
            else f"{pool.one_node_more.gain:.4g} of {pool.one_node_more.goal}"
            if pool.one_node_more.goal
            else "nothing",
        )
        for pool in found.pools
    ]
    yield table("", ("pool", ">nodes", ">given", ">left", "one node more is worth"), pools)
    if folders:
        yield heading("Launch files")
        yield bullets([f"{job}: {folder}" for job, folder in folders.items()])
    yield heading("Assumptions")
    yield bullets(found.assumptions)


def _row(job: JobAllocation) -> tuple[str, ...]:
    from planner.answers.views.words import count, percent, seconds, short_id

    larger = job.larger
    return (
        job.name,
        job.change,
        job.pool or "",
        f"{job.devices:,}",
        _short(job.nodes),
        seconds(job.step_time_s or 0.0),
        count(job.tokens_per_s),
        percent(job.relative_speed),
        "" if larger is None else f"+{count(larger.gain_tokens_per_s_per_node)} (of {larger.more_nodes:,})",
        short_id(job.plan_id or ""),
    )


def _short(nodes: tuple[str, ...]) -> str:
    """The first and the last, and how many."""
    return ", ".join(nodes) if len(nodes) <= 2 else f"{nodes[0]} ... {nodes[-1]} ({len(nodes):,})"
