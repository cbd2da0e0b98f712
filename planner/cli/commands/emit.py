"""``meshwright emit``: launch files of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.cli import launch_flags as place
from planner.cli import options as flags
from planner.cli.emitting import (
    TARGET_NAMES,
    LauncherChoice,
    bare_name,
    emission_data_of_manifest,
    emission_lines,
    parse_targets,
    tell_projections,
    write_target,
)
from planner.cli.output import OutputFormat, write_answer
from planner.cli.service import asked_service

Target = Annotated[
    str,
    typer.Option(
        "--target", "-t", metavar="T", help=f"{', '.join(TARGET_NAMES)}; with ==VERSION for an older release."
    ),
]
Launcher = Annotated[LauncherChoice, typer.Option("--launcher", help="Who starts the processes.")]
Out = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Folder to write; only an untouched emission is replaced.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("emit")(emit)


def emit(  # noqa: PLR0913, PLR0917  # a flag is an argument
    plan: flags.PlanReference,
    target: Target,
    out: Out,
    launcher: Launcher = LauncherChoice.TORCHRUN,
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
    """Write the files that run a plan on a back-end."""
    names = parse_targets(target, "--target")
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
    from planner.cli.plan_reference import is_plan_file, load_plan

    folders = [(name, out if len(names) == 1 else out / bare_name(name)) for name in names]
    with asked_service(server, database) as service:
        # What is said about the place where the job runs, and files of this machine, are put together here.
        if service is not None and settings == LaunchSettings() and not is_plan_file(plan):
            made = []
            for name, folder in folders:
                view = service.write_emission(plan, name, launcher.value, folder)
                made.append(emission_data_of_manifest(view, folder))
                tell_projections(name, made[-1], quiet=quiet)
        else:
            the_plan = load_plan(plan, database, service)
            made = [
                write_target(the_plan, name, launcher, folder, quiet=quiet, settings=settings)
                for name, folder in folders
            ]
    data = made[0] if len(made) == 1 else {"emissions": made}
    write_answer(data, output, lambda: [line for each in made for line in emission_lines(each)])
