"""The outcome for each source of an import: would be stored, is stored already, or was refused.

Shared by the doors that import files: the command line and the service.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from profiles.errors import MeshwrightError
from profiles.importing.read_sources import ReadResult, guarded
from profiles.observation_store.preparing import PreparedBatch, prepare
from profiles.observation_store.store import ObservationStore

if TYPE_CHECKING:
    from profiles.topology import Topology

Status = Literal["would store", "stored", "already stored", "refused", "not recognised"]


@dataclass(slots=True)
class Outcome:
    """One source: what was read, the batches that it makes, and whether they are new."""

    result: ReadResult
    prepared: list[PreparedBatch] = field(default_factory=list)
    error: MeshwrightError | None = None
    stored_ids: frozenset[str] = frozenset()
    is_done: bool = False

    @property
    def usable(self) -> bool:
        """Whether there is something to store, stored already or not."""
        return self.error is None and bool(self.prepared)

    @property
    def status(self) -> Status:
        """``not recognised`` is a file inside a folder that no importer takes: no failure."""
        if self.result.passed_over:
            return "not recognised"
        if not self.usable:
            return "refused"
        if all(batch.record.batch_id in self.stored_ids for batch in self.prepared):
            return "already stored"
        return "stored" if self.is_done else "would store"

    @property
    def num_observations(self) -> int:
        """Rows of all batches that can be stored."""
        return sum(batch.record.num_observations for batch in self.prepared) if self.usable else 0

    @property
    def topology(self) -> Topology | None:
        """The wiring that a usable source shows."""
        return self.result.imported.topology if self.usable and self.result.imported is not None else None


def outcome_of(result: ReadResult) -> Outcome:
    """The batches of a source, or why there are none."""
    imported, source = result.imported, result.source
    if result.error is not None or imported is None or source is None:
        return Outcome(result, error=result.error)
    try:
        return Outcome(result, guarded(result.files, lambda: prepare(imported, source, result.given)))
    except MeshwrightError as error:
        return Outcome(result, error=error)


def mark_stored(outcomes: Iterable[Outcome], store: ObservationStore) -> None:
    """Note which batches the store has."""
    for outcome in outcomes:
        ids = (batch.record.batch_id for batch in outcome.prepared)
        outcome.stored_ids = frozenset(each for each in ids if store.has(each))


def store_usable(outcomes: Sequence[Outcome], store: ObservationStore) -> None:
    """Store everything that can be stored, at once: a failed write leaves nothing."""
    store.add_prepared([batch for outcome in outcomes if outcome.usable for batch in outcome.prepared])
    for outcome in outcomes:
        outcome.is_done = outcome.usable


def topologies_of(outcomes: Iterable[Outcome]) -> list[Topology]:
    """The wirings that usable sources show, in the order given."""
    return [outcome.topology for outcome in outcomes if outcome.topology is not None]
