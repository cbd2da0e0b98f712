"""``meshwright profile list``: which batches of measurements are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.commands.profile.flags import Device, Profiles
from planner.cli.options import Output
from planner.cli.output import OutputFormat, write_answer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from profiles.observation_store.store import BatchState, ObservationStore

All = Annotated[bool, typer.Option("--all", help="With withdrawn and superseded batches.")]
FormatName = Annotated[str | None, typer.Option("--format", "-f", metavar="F", help="Only batches of this format.")]


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("list")(list_batches)


def list_batches(
    device: Device = None,
    format_name: FormatName = None,
    everything: All = False,
    profiles: Profiles = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Stored batches of measurements, oldest first."""
    from profiles.observation_store.query import Selection
    from profiles.observation_store.store import ObservationStore

    store = ObservationStore.open(profiles)
    wanted = Selection(devices=tuple(device or ()), formats=(format_name,) if format_name else ())
    states = [state for state in store.states() if wanted.takes(state.batch) and (everything or state.active)]
    write_answer([state_data(state) for state in states], output, lambda: _table(states, store))


def state_data(state: BatchState) -> dict[str, Any]:
    """What a person asks first about a batch."""
    batch = state.batch
    return {
        "batch_id": batch.batch_id,
        "device": batch.device,
        "format": batch.source.format,
        "kind": batch.source.kind,
        "file_name": batch.source.file_name,
        "tool": batch.source.tool,
        "tool_version": batch.source.tool_version,
        "counts": dict(batch.counts),
        "num_observations": batch.num_observations,
        "has_topology": batch.topology is not None,
        "stored_at": batch.stored_at,
        "status": status(state),
    }


def status(state: BatchState) -> str:
    """One of: used, withdrawn, superseded."""
    return "withdrawn" if state.withdrawn else "superseded" if state.superseded else "used"


def _table(states: list[BatchState], store: ObservationStore) -> list[RenderableType]:
    from planner.answers.views.words import short_id
    from planner.cli.render.tables import table

    if not states:
        return [f"No stored measurement fits in {store.folder}. `meshwright profile import FILE` stores some."]
    rows = [
        (
            short_id(state.batch.batch_id),
            state.batch.device or "unknown",
            state.batch.source.format,
            state.batch.source.file_name,
            _counts(state),
            state.batch.stored_at[:16].replace("T", " "),
            status(state),
        )
        for state in states
    ]
    return [table("", ("batch", "device", "format", "file", ">observations", "stored (UTC)", "status"), rows)]


def _counts(state: BatchState) -> str:
    said = [f"{count:,} {kind}" for kind, count in state.batch.counts.items()]
    return ", ".join([*said, *(["topology"] if state.batch.topology is not None else [])])
