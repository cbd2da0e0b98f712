"""Conflicts: what different batches measured differently; both values are shown, and nobody averages them.

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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from profiles.arrays import Ints, Mask
from profiles.observation_store.batch import StoredBatch
from profiles.observation_store.query import BATCH_COLUMN, Selection, select, selected_batches
from profiles.observation_store.schema import Kind
from profiles.observation_store.store import ObservationStore
from profiles.observations.records import SHAPE_NAMES

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_CODES = 2**62
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
    keys = _KEYS[kind]
    only = Selection(batch_ids=ids, successes_only=True)
    rows = select(store, kind, only, [*keys, "time_s", BATCH_COLUMN])
    if not rows.num_rows:
        return
    # Sorted by key and batch, so that every span of equal keys is one slice.
    key_of_row, batch_of_row = _codes(rows, keys), _codes(rows, [BATCH_COLUMN])
    order = np.lexsort((batch_of_row, key_of_row))
    key_of_row, batch_of_row = key_of_row[order], batch_of_row[order]
    time_s = rows.column("time_s").to_numpy()[order]
    first_of_batch = _starts((key_of_row[1:] != key_of_row[:-1]) | (batch_of_row[1:] != batch_of_row[:-1]))
    fastest_s = np.minimum.reduceat(time_s, first_of_batch)
    slowest_s = np.maximum.reduceat(time_s, first_of_batch)
    num_rows = np.diff(np.append(first_of_batch, len(time_s)))
    key_of_batch = key_of_row[first_of_batch]
    first_of_key = _starts(key_of_batch[1:] != key_of_batch[:-1])
    ratio = np.maximum.reduceat(fastest_s, first_of_key) / np.minimum.reduceat(slowest_s, first_of_key)
    apart = np.flatnonzero(ratio > 1 + threshold)
    ends = np.append(first_of_key[1:], len(first_of_batch))
    spans = [np.arange(first_of_key[place], ends[place]) for place in apart]
    if not spans:
        return
    # One take for all: each take joins the chunks of every text column.
    told = rows.take(order[first_of_batch[np.concatenate(spans)]]).to_pylist()
    start = 0
    for place, span in zip(apart, spans, strict=True):
        its = told[start : start + len(span)]
        start += len(span)
        measured = (
            MeasuredBy(row[BATCH_COLUMN], float(fastest_s[each]), float(slowest_s[each]), int(num_rows[each]))
            for each, row in zip(span, its, strict=True)
        )
        by_speed = tuple(sorted(measured, key=lambda each: each.fastest_s))
        yield MeasuredTwice(kind, device, _key(its[0], keys), float(ratio[place]), by_speed)


def _codes(rows: pa.Table, names: Sequence[str]) -> Ints:
    """One whole number a row, equal for rows that agree in all columns (null agrees with null)."""
    codes, num_codes = np.zeros(rows.num_rows, np.int64), 1
    for name in names:
        column = rows.column(name)
        if column.null_count == rows.num_rows:
            continue
        encoded = column.dictionary_encode().unify_dictionaries().combine_chunks()
        width = len(encoded.dictionary) + 1
        if num_codes * width >= _MOST_CODES:
            codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
            num_codes = int(codes.max()) + 1
        codes = codes * width + encoded.indices.fill_null(width - 1).to_numpy().astype(np.int64)
        num_codes *= width
    return codes


def _starts(changes: Mask) -> Ints:
    """Where spans begin, given whether each row after the first differs from the one before it."""
    return np.concatenate(([0], np.flatnonzero(changes) + 1))


def _key(row: dict[str, Any], names: Sequence[str]) -> dict[str, str | int | bool]:
    return {name: row[name] for name in names if row[name] is not None and row[name] != ""}
