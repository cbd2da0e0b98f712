"""``meshwright shard``: which sharding does each operator take?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat

Instance = Annotated[
    Path,
    typer.Option("--instance", metavar="FILE", help="Instance of the ASPLOS 2025 contest: JSON or gzipped."),
]
Seconds = Annotated[
    float, typer.Option("--time-limit", metavar="SECONDS", min=0.1, help="Wall time, reading included.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("shard")(shard)


def shard(
    instance: Instance, time_limit: Seconds = 60.0, seed: flags.Seed = 0, output: flags.Output = OutputFormat.TABLE
) -> None:
    """Choose one strategy for every operator: least cost within the memory limit, with a proven bound."""
    from planner.cli.instance_sharding import shard_instance

    shard_instance(instance, time_limit, seed, output)
