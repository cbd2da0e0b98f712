"""``meshwright emit``: launch files of a plan, for its own back-end or from the best plan of another one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.backends.launch import LauncherName
from planner.cli import launch_flags as place
from planner.cli import options as flags
from planner.cli.backend_names import BEST, bare_name, complete_backends, parse_emitted
from planner.cli.emitting import emission_lines, emit_into
from planner.cli.output import OutputFormat, talk, write_answer
from planner.operations.service import opened_service

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
    env: place.Environment = None,
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
        env=env,
    )
    from planner.operations.emit import EmitRequest
    from planner.operations.plan_reference import is_plan_file

    emissions = []
    with opened_service(server, database) as service:
        for name in names:
            asked = EmitRequest(
                plan=plan, backend=None if name == BEST else name, launcher=launcher, settings=settings.to_dict()
            )
            folder = out if len(names) == 1 else out / bare_name(name)
            found = emit_into(folder, service, asked, quiet=quiet)
            emissions.append(found)
            new = found["difference"] is not None or is_plan_file(plan)
            if new and (kept := service.kept(found["plan_id"])):
                talk(kept, quiet=quiet)
        data = emissions[0] if len(emissions) == 1 else {"emissions": emissions}
        lines = [line for each in emissions for line in emission_lines(each)]
        write_answer(data, output, lambda: lines)
