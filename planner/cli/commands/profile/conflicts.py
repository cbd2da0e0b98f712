"""``meshwright profile conflicts``: the same thing measured differently, with both values."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.commands.profile.flags import Device, Profiles
from planner.cli.options import Output
from planner.cli.output import OutputFormat, write_answer
from planner.errors import DocumentInvalid

if TYPE_CHECKING:
    from rich.console import RenderableType

    from profiles.observation_store.conflicts import MeasuredTwice

ROWS_SHOWN = 50

Threshold = Annotated[
    float, typer.Option("--threshold", metavar="F", help="Show differences above this part (0.1 = 10 %).")
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("conflicts")(conflicts)


def conflicts(
    threshold: Threshold = 0.1,
    device: Device = None,
    profiles: Profiles = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """What batches of one device and one set of libraries measured differently; nothing averages them."""
    if not (math.isfinite(threshold) and threshold >= 0):
        raise DocumentInvalid(f"{threshold} is no part", where="--threshold", hint="give a number from 0, such as 0.1")
    from profiles.observation_store.conflicts import find_conflicts
    from profiles.observation_store.query import Selection
    from profiles.observation_store.store import ObservationStore

    store = ObservationStore.open(profiles)
    found = find_conflicts(store, threshold=threshold, wanted=Selection(devices=tuple(device or ())))
    write_answer([asdict(each) for each in found], output, lambda: _tables(found, threshold))


def _tables(found: list[MeasuredTwice], threshold: float) -> list[RenderableType]:
    from planner.answers.views.words import percent, seconds
    from planner.cli.render.tables import table

    if not found:
        return [f"No two batches differ by more than {percent(threshold)}."]
    rows = [
        (
            each.device,
            " ".join(f"{name}={value}" for name, value in each.key.items()),
            f"{each.ratio:.2f}x",
            ", ".join(f"{seconds(by.fastest_s)} ({by.batch_id[:8]})" for by in each.batches),
        )
        for each in found[:ROWS_SHOWN]
    ]
    shown: list[RenderableType] = [table("", ("device", "what", ">apart", "measured (batch)"), rows)]
    if len(found) > ROWS_SHOWN:
        shown.append(f"{len(found) - ROWS_SHOWN:,} more (-o json shows them).")
    return [*shown, "`meshwright profile drop BATCH` leaves one of them out."]
