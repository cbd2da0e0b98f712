"""``meshwright profile drop``: leave a batch out from now on; its files stay."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli.commands.profile.flags import Profiles
from planner.cli.options import Output
from planner.cli.output import OutputFormat, write_answer

Batch = Annotated[str, typer.Argument(metavar="BATCH", help="Batch id or a unique beginning of one.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept with the mark.")]
Undo = Annotated[bool, typer.Option("--undo", help="Use the batch again.")]


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("drop")(drop)


def drop(
    batch: Batch,
    reason: Reason = "",
    undo: Undo = False,
    profiles: Profiles = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Withdraw a batch: nothing is deleted, and nothing uses it any more."""
    from profiles.observation_store.store import ObservationStore

    store = ObservationStore.open(profiles)
    batch_id = store.resolve(batch).batch.batch_id
    changed = store.restore(batch_id, reason) if undo else store.withdraw(batch_id, reason)
    data = {"batch_id": batch_id, "withdrawn": not undo, "changed": changed}
    state = "used again" if undo else "withdrawn"
    words = f"Batch {batch_id[:12]} is {state}." if changed else f"Batch {batch_id[:12]} was {state} already."
    write_answer(data, output, lambda: [words])
