"""What was measured differently by different batches?  Shown with both values; nobody averages them.

Rows speak of the same thing when they agree in

    operators     operator, phase, dtype, every shape, causal, detail, statistic
    collectives   operation, size, group, nodes, stride, siblings, in place, reduction, launch, algorithm, statistic
    environment   device, runtime, framework, communication library and transport, with their versions

Each batch covers the interval from its fastest to its slowest row of the key.  Two batches conflict when the slowest
row of the faster one and the fastest row of the slower one are more than ``threshold`` apart:
max over batches (fastest) / min over batches (slowest) > 1 + threshold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from profiles.observation_store.batch import StoredBatch
from profiles.observation_store.query import BATCH_COLUMN, Selection, select, selected_batches
from profiles.observation_store.schema import Kind
from profiles.observation_store.store import ObservationStore
from profiles.observations.records import SHAPE_NAMES

_KEYS: dict[Kind, tuple[str, ...]] = {
    "operators": ("operator", "phase", "dtype", *SHAPE_NAMES, "causal", "detail", "statistic"),
    "collectives": (
        *("operation", "size_bytes", "group_size", "dtype", "num_nodes", "devices_per_node", "stride"),
        *("concurrent_groups", "in_place", "reduction", "root", "launch", "algorithm", "protocol", "num_channels"),
        "statistic",
    ),
}
_ENVIRONMENT = (
    *("runtime_version", "framework", "framework_version", "communication_library"),
    *("communication_library_version", "transport"),
)


@dataclass(frozen=True, slots=True)
class MeasuredBy:
    """What one batch says about a key."""

    batch_id: str
    fastest_s: float
    slowest_s: float
    num_rows: int


@dataclass(frozen=True, slots=True)
class MeasuredTwice:
    """One key that batches measured differently; ``ratio`` is how far apart the fastest and slowest batch are."""

    kind: Kind
    device: str
    key: dict[str, str | int | bool]
    ratio: float
    batches: tuple[MeasuredBy, ...]


def find_conflicts(
    store: ObservationStore, *, threshold: float = 0.1, wanted: Selection | None = None
) -> list[MeasuredTwice]:
    """Conflicts above ``threshold`` (0.1 = 10 %), the largest first.  Batches of unknown devices are not compared."""
    found: list[MeasuredTwice] = []
    for kind in _KEYS:
        for device, ids in _comparable(selected_batches(store, kind, wanted or Selection())):
            found += _conflicts_among(store, kind, device, ids, threshold)
    return sorted(found, key=lambda conflict: -conflict.ratio)


def _comparable(batches: list[StoredBatch]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Device and ids of batches with the same device and libraries, where there are at least two."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for batch in batches:
        if batch.device:
            facts = tuple(str(getattr(batch.environment, name)) for name in _ENVIRONMENT)
            groups[(batch.device, *facts)].append(batch.batch_id)
    yield from ((key[0], tuple(ids)) for key, ids in groups.items() if len(ids) > 1)


def _conflicts_among(
    store: ObservationStore, kind: Kind, device: str, ids: tuple[str, ...], threshold: float
) -> Iterator[MeasuredTwice]:
    keys = list(_KEYS[kind])
    only = Selection(batch_ids=ids, successes_only=True)
    rows = select(store, kind, only, [*keys, "time_s", BATCH_COLUMN])
    # A column without any value says nothing about the key, and grouping by it costs time.
    keys = [name for name in keys if rows.column(name).null_count < rows.num_rows]
    by_batch = rows.group_by([*keys, BATCH_COLUMN], use_threads=False).aggregate(
        [("time_s", "min"), ("time_s", "max"), ("time_s", "count")]
    )
    del rows
    by_key = by_batch.append_column("index", pa.array(range(by_batch.num_rows), pa.int64())).group_by(
        keys, use_threads=False
    )
    spans = by_key.aggregate([("time_s_min", "max"), ("time_s_max", "min"), ("index", "list")])
    ratio = pc.divide(spans.column("time_s_min_max"), spans.column("time_s_max_min"))
    for row in spans.append_column("ratio", ratio).filter(pc.greater(ratio, 1 + threshold)).to_pylist():
        yield MeasuredTwice(kind, device, _key(row, keys), row["ratio"], _batches(by_batch.take(row["index_list"])))


def _key(row: dict[str, Any], keys: list[str]) -> dict[str, str | int | bool]:
    return {name: row[name] for name in keys if row[name] is not None and row[name] != ""}


def _batches(rows: pa.Table) -> tuple[MeasuredBy, ...]:
    said = [
        MeasuredBy(row[BATCH_COLUMN], row["time_s_min"], row["time_s_max"], row["time_s_count"])
        for row in rows.to_pylist()
    ]
    return tuple(sorted(said, key=lambda each: each.fastest_s))
