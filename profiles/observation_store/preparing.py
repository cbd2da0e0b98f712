"""An import becomes batches that can be stored: tables checked, ids computed; nothing is written yet."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from profiles.errors import DocumentInvalid
from profiles.importing.imported import Batch, Imported
from profiles.observation_store.batch import StoredBatch, batch_id_of
from profiles.observation_store.checking import check_table, complete, stored_names
from profiles.observation_store.schema import KINDS, Kind, to_table
from profiles.observations.environment import Environment
from profiles.observations.source import Source


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """A batch that was checked: what its files will hold.  Rows of a kind may come as several tables."""

    record: StoredBatch
    tables: Mapping[Kind, tuple[pa.Table, ...]]

    def rows(self, kind: Kind, limit: int) -> pa.Table:
        """The first ``limit`` rows of a kind, completed."""
        tables = self.tables.get(kind, ())
        names = {name for table in tables for name in stored_names(kind, table)}
        return self.columns(kind, sorted(names), limit)

    def columns(self, kind: Kind, names: Sequence[str], limit: int | None = None) -> pa.Table:
        """Some columns of a kind, completed; at most ``limit`` rows."""
        parts: list[Any] = []
        left = self.record.counts.get(kind, 0) if limit is None else limit
        for table in self.tables.get(kind, ()):
            parts.append(complete(kind, table.slice(0, left), list(names)))
            left -= parts[-1].num_rows
        return pa.concat_tables(parts) if parts else pa.table({})


def prepare(imported: Imported, source: Source, given: Mapping[str, str] | None = None) -> list[PreparedBatch]:
    """Batches of an import, each with its id.  Raises DocumentInvalid for values that cannot be stored.

    A source with a topology and no observations becomes one batch without rows.
    """
    batches = imported.batches or ([Batch(Environment())] if imported.topology is not None else [])
    tables = [_tables_of(batch) for batch in batches]
    if not source.file_sha256:
        source = source.model_copy(update={"file_sha256": _content_hash(imported, tables)})
    seen: Counter[str] = Counter()
    prepared = []
    for batch, its_tables in zip(batches, tables, strict=True):
        same = batch.environment.content_hash()
        record = _record(imported, batch, its_tables, source, dict(given or {}), seen[same])
        seen[same] += 1
        prepared.append(PreparedBatch(record, its_tables))
    return prepared


def _record(
    imported: Imported,
    batch: Batch,
    tables: Mapping[Kind, tuple[pa.Table, ...]],
    source: Source,
    given: dict[str, str],
    part: int,
) -> StoredBatch:
    environment = batch.environment
    if imported.topology is not None and not environment.topology_fingerprint:
        environment = environment.model_copy(update={"topology_fingerprint": imported.topology.fingerprint})
    try:
        return StoredBatch(
            batch_id=batch_id_of(source, environment, given, part),
            environment=environment,
            source=source,
            given=given,
            counts={kind: sum(each.num_rows for each in tables[kind]) for kind in KINDS if kind in tables},
            topology=imported.topology,
            facts=imported.facts,
            skipped=imported.skipped,
            num_bad_rows=len(imported.bad_rows),
            stored_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
    except (ValidationError, ValueError) as error:
        first = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise DocumentInvalid(
            f"what the file says about itself cannot be stored: {first}",
            where=source.file_name or None,
            hint="the file is damaged or of an unknown variant",
        ) from None


def _tables_of(batch: Batch) -> dict[Kind, tuple[pa.Table, ...]]:
    given: dict[Kind, list[pa.Table]] = {
        "operators": [to_table("operators", batch.operators)] if batch.operators else [],
        "collectives": [to_table("collectives", batch.collectives)] if batch.collectives else [],
        "links": [to_table("links", batch.links)] if batch.links else [],
        "iterations": [to_table("iterations", batch.iterations)] if batch.iterations else [],
    }
    for kind, table in (("operators", batch.operator_table), ("collectives", batch.collective_table)):
        if table is not None and table.num_rows:
            given[kind].append(table)  # type: ignore[index]
    for kind, tables in given.items():
        for table in tables:
            check_table(kind, table)
    return {kind: tuple(tables) for kind, tables in given.items() if tables}


def _content_hash(imported: Imported, tables: list[dict[Kind, tuple[pa.Table, ...]]]) -> str:
    """Identity of what has no file: the rows themselves (Arrow stream format) and the topology."""
    digest = hashlib.sha256()
    if imported.topology is not None:
        digest.update(imported.topology.canonical_json().encode())
    for batch in tables:
        for kind in KINDS:
            for table in batch.get(kind, ()):
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, table.schema) as writer:
                    writer.write_table(table)
                digest.update(kind.encode())
                digest.update(sink.getvalue())
    return digest.hexdigest()
