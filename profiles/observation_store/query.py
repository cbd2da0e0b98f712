"""Rows by device, operator, dtype, format and batch: read from Parquet, filtered on the way.

Device, format and batch choose files (they are in the batch records); operator, dtype and the rest are pushed down to
the row groups, whose statistics let most of a large file be skipped.  Withdrawn and superseded batches are left out
unless they are asked for by id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from profiles.observation_store.batch import StoredBatch
from profiles.observation_store.errors import ProfileStoreDamaged
from profiles.observation_store.schema import Kind, arrow_schema, columns_of, from_table
from profiles.observation_store.store import ObservationStore
from profiles.observations.records import Observation

BATCH_COLUMN = "batch_id"


@dataclass(frozen=True, slots=True)
class Selection:
    """What is wanted; an empty tuple does not limit.  Fields after ``batch_ids`` are columns and limit rows.

    ``devices``: catalogue names, or names as reported where a device is not in the catalogue.  A kind without such a
    column has no such rows.
    """

    devices: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    batch_ids: tuple[str, ...] = ()
    operator: tuple[str, ...] = ()
    operation: tuple[str, ...] = ()
    dtype: tuple[str, ...] = ()
    phase: tuple[str, ...] = ()
    group_size: tuple[int, ...] = ()
    kind: tuple[str, ...] = ()
    successes_only: bool = False

    def takes(self, batch: StoredBatch) -> bool:
        """Whether rows of a batch can be wanted."""
        names = {batch.environment.device, batch.environment.device_reported}
        return (
            (not self.devices or bool(names & set(self.devices)))
            and (not self.formats or batch.source.format in self.formats)
            and (not self.batch_ids or batch.batch_id in self.batch_ids)
        )

    def limits(self) -> dict[str, tuple[Any, ...]]:
        """Wanted values by column."""
        chosen = {each.name: getattr(self, each.name) for each in fields(self)}
        files = ("devices", "formats", "batch_ids", "successes_only")
        return {name: values for name, values in chosen.items() if values and name not in files}


EVERYTHING = Selection()


def select(
    store: ObservationStore, kind: Kind, wanted: Selection = EVERYTHING, columns: Sequence[str] | None = None
) -> pa.Table:
    """Rows of one kind with their ``batch_id``; ``columns`` reads only these.  Raises ProfileStoreDamaged."""
    batches = selected_batches(store, kind, wanted)
    schema = arrow_schema(kind).append(pa.field(BATCH_COLUMN, pa.string()))
    names = list(columns) if columns is not None else schema.names
    known = {column.name for column in columns_of(kind)}
    limits = wanted.limits()
    if not batches or not set(limits) <= known:
        return pa.schema([schema.field(name) for name in names]).empty_table()
    conditions = [ds.field(name).isin(list(values)) for name, values in limits.items()]
    if wanted.successes_only:
        conditions.append(ds.field("ok"))
    condition = reduce(and_, conditions) if conditions else None
    try:
        return _dataset(store, kind, batches, schema).to_table(columns=names, filter=condition)
    except (OSError, pa.ArrowException) as error:
        raise ProfileStoreDamaged(
            f"stored rows cannot be read: {str(error).splitlines()[0]}",
            where=str(store.folder / kind),
            hint="is the disk all right? `meshwright profile drop BATCH` leaves a batch out",
        ) from None


def observations(
    store: ObservationStore, kind: Kind, wanted: Selection = EVERYTHING
) -> list[tuple[StoredBatch, list[Observation]]]:
    """The same as objects, by batch.  For thousands of rows; millions are better used as a table."""
    return [
        (batch, from_table(kind, select(store, kind, replace(wanted, batch_ids=(batch.batch_id,)))))
        for batch in selected_batches(store, kind, wanted)
    ]


def selected_batches(store: ObservationStore, kind: Kind, wanted: Selection) -> list[StoredBatch]:
    """Batches whose files are read for a selection."""
    states = store.states()
    usable = [state.batch for state in states if state.active or state.batch.batch_id in wanted.batch_ids]
    return [batch for batch in usable if batch.counts.get(kind) and wanted.takes(batch)]


def _dataset(store: ObservationStore, kind: Kind, batches: Sequence[StoredBatch], schema: pa.Schema) -> Any:
    """The files as one dataset; the id of a file's batch is a constant column, and absent columns are null."""
    layout, disk = ds.ParquetFileFormat(), fs.LocalFileSystem()
    files = [
        layout.make_fragment(
            str(store.rows_path(batch, kind)),
            disk,
            partition_expression=ds.field(BATCH_COLUMN) == batch.batch_id,
        )
        for batch in batches
    ]
    return ds.FileSystemDataset(files, schema, layout, disk)
