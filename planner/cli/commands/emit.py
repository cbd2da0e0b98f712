"""``meshwright emit``: launch files of a plan, for its own back-end or from the best plan of another one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.backends.launch import LauncherName
from planner.cli import launch_flags as place
from planner.cli import options as flags
from planner.cli.backend_names import BEST, bare_name, complete_backends, parse_emitted
from planner.cli.emitting import (
    emission_data,
    emission_lines,
    keep_plan,
    planned_there,
    tell_difference,
    write_there,
)
from planner.cli.output import OutputFormat, write_answer
from planner.cli.planning import Afterwards
from planner.operations.service import PlanService, asked_service

if TYPE_CHECKING:
    from planner.backends.launch.settings import LaunchSettings
    from planner.plan.plan import Plan

Backend = Annotated[
    str,
    typer.Option(
        "--backend",
        metavar="B[==RELEASE],...",
        help="Back-ends to write for (default: the plan's own); for another one the question is planned there.",
        autocompletion=complete_backends,
        show_default=False,
    ),
]
Launcher = Annotated[LauncherName, typer.Option("--launcher", help="Who starts the processes.")]
Out = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Folder to write; only an untouched emission is replaced.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("emit")(emit)


def emit(  # noqa: PLR0913, PLR0917  # a flag is an argument
    plan: flags.PlanReference,
    out: Out,
    backend: Backend = BEST,
    launcher: Launcher = "torchrun",
    hosts: place.Hosts = None,
    switches: place.Switches = None,
    network_tier: place.NetworkTier = None,
    topology_label: place.TopologyLabel = None,
    image: place.Image = None,
    namespace: place.Namespace = None,
    files_claim: place.FilesClaim = None,
    database: flags.Database = None,
    server: flags.Server = None,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Write the files that run a plan on its back-end, or the best plan of the same question on another."""
    names = parse_emitted(backend, "--backend")
    settings = place.launch_settings(
        hosts=hosts,
        switches=switches,
        network_tier=network_tier,
        topology_label=topology_label,
        image=image,
        namespace=namespace,
        files_claim=files_claim,
    )
    from planner.backends.launch.settings import LaunchSettings
    from planner.operations.plan_reference import PlanRequest, is_plan_file, load_plan
    from planner.operations.plans import GET_PLAN

    folders = [(name, out if len(names) == 1 else out / bare_name(name)) for name in names]
    done = Afterwards()
    with asked_service(server, database) as service:
        # What is said about the place where the job runs, and files of this machine, are put together here.
        if service is not None and settings == LaunchSettings() and not is_plan_file(plan):
            done.emissions += [_from_service(service, plan, name, launcher, folder, quiet) for name, folder in folders]
        else:
            the_plan = load_plan(plan, database) if service is None else service.call(GET_PLAN, PlanRequest(plan=plan))
            _made_here(the_plan, folders, launcher, settings, database, done, quiet=quiet)
    data = done.emissions[0] if len(done.emissions) == 1 else {"emissions": done.emissions}
    lines = [line for each in done.emissions for line in emission_lines(each)]
    write_answer(data, output, lambda: lines)
    if done.failure is not None:
        raise done.failure


def _made_here(
    plan: Plan,
    folders: Sequence[tuple[str, Path]],
    launcher: LauncherName,
    settings: LaunchSettings,
    database: str | None,
    done: Afterwards,
    *,
    quiet: bool,
) -> None:
    """The files, and every new plan in the database: what files say that they are of can be looked up."""
    for name, folder in folders:
        there = planned_there(plan, name, None, quiet=quiet)
        done.emissions.append(write_there(there, launcher, folder, quiet=quiet, settings=settings))
        if there.difference is not None:
            done.attempt(lambda made=there.plan: keep_plan(made, database, quiet=quiet))  # type: ignore[misc]


def _from_service(
    service: PlanService, reference: str, name: str, launcher: LauncherName, folder: Path, quiet: bool
) -> dict[str, Any]:
    backend = None if name == BEST else name
    data = emission_data(service.write_emission(reference, backend, launcher, folder), folder)
    tell_difference(data, quiet=quiet)
    return data
