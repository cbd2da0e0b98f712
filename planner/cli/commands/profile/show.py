"""``meshwright profile show``: one batch with its provenance, or everything measured on a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.commands.profile.flags import Profiles
from planner.cli.options import Output
from planner.cli.output import OutputFormat, write_answer
from planner.cli.problem_inputs import whole_number
from planner.errors import NotFound

if TYPE_CHECKING:
    from rich.console import RenderableType

    from profiles.observation_store.store import BatchState, ObservationStore

Reference = Annotated[
    str, typer.Argument(metavar="BATCH_OR_DEVICE", help="Batch id or its beginning, or a device (see profile list).")
]
Rows = Annotated[int, typer.Option("--rows", metavar="N", help="JSON and YAML: at most so many rows a kind and batch.")]


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("show")(show)


def show(
    reference: Reference, rows: Rows = 100, profiles: Profiles = None, output: Output = OutputFormat.TABLE
) -> None:
    """One batch of measurements with its provenance, or all batches of a device."""
    whole_number(rows, "--rows")
    from profiles.observation_store.store import ObservationStore

    store = ObservationStore.open(profiles)
    states = _found(store, reference)
    write_answer([_data(store, state, rows) for state in states], output, lambda: _tables(store, states))


def _found(store: ObservationStore, reference: str) -> list[BatchState]:
    """The batches of a device, else the batch that the reference names.  Raises NotFound with the nearest device."""
    states = store.states()
    of_device = [state for state in states if reference and _is_device(state, reference) and state.active]
    if of_device:
        return of_device
    if any(state.batch.batch_id.startswith(reference) for state in states):
        return [store.resolve(reference)]
    from planner.strategy.spelling import did_you_mean

    devices = sorted({state.batch.device for state in states if state.batch.device})
    raise NotFound(
        f"there is no batch and no measured device '{reference}'",
        where="profile show",
        hint=did_you_mean(reference, devices, fallback="`meshwright profile list` shows batches and devices"),
    )


def _is_device(state: BatchState, name: str) -> bool:
    return name in (state.batch.environment.device, state.batch.environment.device_reported)


def _data(store: ObservationStore, state: BatchState, rows: int) -> dict[str, Any]:
    from planner.cli.commands.profile.list_ import status
    from planner.cli.commands.profile.row_data import row_data
    from profiles.observation_store.query import Selection, select
    from profiles.observation_store.schema import KINDS, from_table

    data = {**state.batch.model_dump(mode="json"), "status": status(state)}
    only = Selection(batch_ids=(state.batch.batch_id,))
    for kind in KINDS:
        if rows and state.batch.counts.get(kind):
            table = select(store, kind, only).slice(0, rows)
            data[kind] = [row_data(row) for row in from_table(kind, table)]
    return data


def _tables(store: ObservationStore, states: list[BatchState]) -> Iterator[RenderableType]:
    from planner.cli.commands.profile.rows_summary import COLUMNS, rows_of_kinds, wanted_columns
    from planner.cli.render.tables import bullets, facts, heading, table
    from profiles.observation_store.query import Selection, select

    for state in states:
        batch = state.batch
        yield heading(f"Batch {batch.batch_id[:12]}")
        yield facts([(name, text) for name, text in _facts(state) if text])
        lines = [
            rows.cells()
            for kind in batch.counts
            for rows in rows_of_kinds(
                batch.device,
                kind,
                select(store, kind, Selection(batch_ids=(batch.batch_id,)), wanted_columns(kind)),
            )
        ]
        if lines:
            yield table("", COLUMNS, lines)
        if batch.source.flags:
            yield bullets([f"{flag.what} [{flag.code}]" for flag in batch.source.flags])


def _facts(state: BatchState) -> Iterator[tuple[str, str]]:
    from planner.cli.commands.profile.list_ import status

    batch, environment, source = state.batch, state.batch.environment, state.batch.source
    yield (
        "device",
        f"{batch.device or 'unknown'}"
        + (f" ({environment.device_reported})" if environment.device and environment.device_reported else ""),
    )
    yield "devices", "" if environment.num_devices is None else str(environment.num_devices)
    yield "nodes", "" if environment.num_nodes is None else str(environment.num_nodes)
    yield "driver", environment.driver_version
    yield "runtime", environment.runtime_version
    yield "framework", f"{environment.framework} {environment.framework_version}".strip()
    library = f"{environment.communication_library} {environment.communication_library_version}"
    yield "communication", " over ".join(part for part in (library.strip(), environment.transport) if part)
    yield "source", f"{source.file_name or source.kind} ({source.format}, parser {source.parser_version})"
    yield "tool", f"{source.tool} {source.tool_version}".strip()
    yield "said by the user", ", ".join(f"{name}={value}" for name, value in batch.given.items())
    yield "left out", ", ".join(f"{count:,} {reason}" for reason, count in batch.skipped.items())
    yield "bad rows", f"{batch.num_bad_rows:,}" if batch.num_bad_rows else ""
    yield "stored", f"{batch.stored_at} ({status(state)})"
