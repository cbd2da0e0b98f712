"""The ``ObservationStore``: an append-only folder of batches of observations.

Nothing overwrites and nothing is deleted: a batch is identified by what was read and how (``batch.batch_id_of``), a
second import of the same file changes nothing, and a batch that should no longer be used is *withdrawn* by one more
file.  Batches of the same file, format and given options by an older parser are *superseded* by the newest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from profiles.document import canonical_json
from profiles.errors import DocumentInvalid, NotFound
from profiles.importing.imported import Imported
from profiles.observation_store.address import BATCHES, profiles_folder
from profiles.observation_store.batch import StoredBatch
from profiles.observation_store.errors import ProfileStoreDamaged, of_os_error
from profiles.observation_store.files import (
    WITHDRAWN,
    create_new,
    publish,
    staging_folder,
    write_rows,
    write_text,
)
from profiles.observation_store.preparing import PreparedBatch, prepare
from profiles.observation_store.schema import KINDS, Kind
from profiles.observations.source import Source


@dataclass(frozen=True, slots=True)
class Stored:
    """One batch after ``add``: ``new`` is False when the store had it already."""

    batch: StoredBatch
    new: bool


@dataclass(frozen=True, slots=True)
class BatchState:
    """One batch in the list.  ``active`` ones are used; the others are kept and shown only."""

    batch: StoredBatch
    withdrawn: bool = False
    superseded: bool = False

    @property
    def active(self) -> bool:
        """Whether queries use it."""
        return not (self.withdrawn or self.superseded)


class ObservationStore:
    """One folder of measurements.  Opening reads and creates nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def open(cls, given: str | None = None, environment: Mapping[str, str] | None = None) -> ObservationStore:
        """The store that ``--profiles``, ``$MESHWRIGHT_PROFILES`` or the data folder names."""
        return cls(profiles_folder(given, environment))

    def add(self, imported: Imported, source: Source, given: Mapping[str, str] | None = None) -> list[Stored]:
        """Store the batches of one import or measurement, all or none; says which were there already.

        ``source.file_sha256`` may be empty (measurements): then the rows themselves are the identity.
        Raises DocumentInvalid (values that cannot be stored), ProfileStoreError.
        """
        return self.add_prepared(prepare(imported, source, given))

    def add_prepared(self, prepared: Sequence[PreparedBatch]) -> list[Stored]:
        """The same for batches of several imports at once."""
        wanted = [each for each in prepared if not self.has(each.record.batch_id)]
        present = {each.record.batch_id for each in prepared} - {each.record.batch_id for each in wanted}
        if wanted:
            with staging_folder(self.folder) as staging:
                for each in wanted:
                    _stage(each, staging)
                present |= set(publish(self.folder, staging))
        return [
            Stored(self._read(each.record.batch_id), each.record.batch_id not in present)
            for each in {each.record.batch_id: each for each in prepared}.values()
        ]

    def has(self, batch_id: str) -> bool:
        """Whether a batch is stored (withdrawn or not)."""
        return (self.folder / BATCHES / f"{batch_id}.json").exists()

    def states(self) -> list[BatchState]:
        """Every batch, oldest first.  Raises ProfileStoreDamaged."""
        try:
            names = [path.stem for path in (self.folder / BATCHES).glob("*.json")]
        except OSError as error:
            raise of_os_error(error, self.folder) from None
        batches = sorted((self._read(name) for name in names), key=lambda batch: (batch.stored_at, batch.batch_id))
        withdrawn = self._withdrawn()
        newest: dict[str, int] = {}
        for batch in batches:
            # A withdrawn reading does not hide the older one.
            if batch.batch_id not in withdrawn:
                newest[_reading(batch)] = max(newest.get(_reading(batch), 0), batch.source.parser_version)
        return [
            BatchState(
                batch,
                withdrawn=batch.batch_id in withdrawn,
                superseded=batch.source.parser_version < newest.get(_reading(batch), 0),
            )
            for batch in batches
        ]

    def batches(self) -> list[StoredBatch]:
        """Batches that queries use: neither withdrawn nor superseded."""
        return [state.batch for state in self.states() if state.active]

    def resolve(self, prefix: str) -> BatchState:
        """The batch with this id or unique beginning of one.  Raises NotFound, DocumentInvalid."""
        found = [state for state in self.states() if prefix and state.batch.batch_id.startswith(prefix)]
        if not found:
            hint = "`meshwright profile list` shows the batches"
            raise NotFound(f"there is no batch '{prefix}'", where=str(self.folder), hint=hint)
        if len(found) > 1:
            raise DocumentInvalid(
                f"{len(found)} batches begin with '{prefix}'", where=str(self.folder), hint="give more characters"
            )
        return found[0]

    def withdraw(self, batch_id: str, reason: str = "") -> bool:
        """Mark a batch as not to be used; False if it was already."""
        return self._mark(batch_id, "withdraw", reason)

    def restore(self, batch_id: str, reason: str = "") -> bool:
        """Take a withdrawal back; False if the batch was not withdrawn."""
        return self._mark(batch_id, "restore", reason)

    def rows_path(self, batch: StoredBatch, kind: Kind) -> Path:
        """The Parquet file of a batch; it exists where ``batch.counts`` has the kind."""
        return self.folder / kind / f"{batch.batch_id}.parquet"

    def _mark(self, batch_id: str, action: str, reason: str) -> bool:
        wanted = action == "withdraw"
        with staging_folder(self.folder) as staging:
            while True:
                marks = sorted(_numbers(self.folder / WITHDRAWN, batch_id))
                if (batch_id in self._withdrawn()) == wanted:
                    return False
                mark = {"action": action, "at": datetime.now(UTC).isoformat(timespec="seconds"), "reason": reason}
                path = self.folder / WITHDRAWN / f"{batch_id}.{(marks[-1] if marks else 0) + 1}.json"
                if create_new(path, canonical_json(mark), staging):
                    return True

    def _withdrawn(self) -> set[str]:
        """Ids whose last mark is a withdrawal."""
        last: dict[str, tuple[int, Path]] = {}
        for path in (self.folder / WITHDRAWN).glob("*.json"):
            batch_id, _, number = path.stem.partition(".")
            if number.isdigit() and int(number) > last.get(batch_id, (0, path))[0]:
                last[batch_id] = (int(number), path)
        return {batch_id for batch_id, (_, path) in last.items() if _action(path) == "withdraw"}

    def _read(self, batch_id: str) -> StoredBatch:
        path = self.folder / BATCHES / f"{batch_id}.json"
        try:
            batch = StoredBatch.model_validate_json(path.read_text(encoding="utf-8"))
        except (OSError, ValidationError, ValueError) as error:
            unclear = isinstance(error, ValidationError)
            raise _damaged(path, "does not say what a batch says" if unclear else f"cannot be read: {error}") from None
        if batch.batch_id != batch_id:
            raise _damaged(path, "holds another batch")
        return batch


def _stage(prepared: PreparedBatch, staging: Path) -> None:
    for name in (*KINDS, BATCHES):
        (staging / name).mkdir(exist_ok=True)
    for kind, tables in prepared.tables.items():
        write_rows(kind, tables, staging / kind / f"{prepared.record.batch_id}.parquet")
    text = prepared.record.model_dump_json(indent=1)
    write_text(staging / BATCHES / f"{prepared.record.batch_id}.json", text + "\n")


def _reading(batch: StoredBatch) -> str:
    """What makes two batches readings of the same thing by different releases of a parser."""
    return canonical_json([batch.source.file_sha256, batch.source.format, batch.given])


def _numbers(folder: Path, batch_id: str) -> list[int]:
    parts = [path.stem.partition(".")[2] for path in folder.glob(f"{batch_id}.*.json")]
    return [int(part) for part in parts if part.isdigit()]


def _action(path: Path) -> str:
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["action"])
    except (OSError, ValueError, KeyError, TypeError):
        raise _damaged(path, "does not say what happened to the batch") from None


def _damaged(path: Path, what: str) -> ProfileStoreDamaged:
    return ProfileStoreDamaged(
        f"a stored file {what}",
        where=str(path),
        hint="was it edited, or written by a newer release? move it away and import its source again",
    )
