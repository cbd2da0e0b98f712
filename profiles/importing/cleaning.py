"""The free texts of an import, cleaned of names and secrets.

Cleaned: names, notes, details, facts, flags, error texts, reasons of bad rows.  Left alone: version numbers (they look
like addresses), dtypes, and words from fixed lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from profiles.importing.imported import BadRow, Batch, Imported
from profiles.importing.redaction import Redactor
from profiles.observations.environment import Environment
from profiles.observations.records import Observation

if TYPE_CHECKING:
    import pyarrow as pa

    from profiles.topology import Topology

_FREE = frozenset({"name", "error", "method", "model", "source", "target", "algorithm", "protocol", "reduction"})
_MAPPINGS = frozenset({"detail", "strategy"})
_DISTINCT_AT_ONCE = 1000

Row = TypeVar("Row", bound=Observation)


def clean_imported(imported: Imported) -> Counter[str]:
    """Remove names and secrets from an import, in place; returns how many of each kind."""
    cleaner = _Cleaner()
    for batch in imported.batches:
        _clean_batch(batch, cleaner)
    imported.facts = {key: cleaner.value(key, value) for key, value in imported.facts.items()}
    imported.flags = [flag.model_copy(update={"what": cleaner.text(flag.what)}) for flag in imported.flags]
    imported.bad_rows = [
        BadRow(cleaner.text(row.where), cleaner.text(row.what), cleaner.text(row.hint)) for row in imported.bad_rows
    ]
    imported.skipped = {cleaner.text(reason): count for reason, count in imported.skipped.items()}
    if imported.topology is not None:
        imported.topology = _clean_topology(imported.topology, cleaner)
    return cleaner.counts


class _Cleaner:
    """Remembers texts, because a million rows share a few; counts each appearance."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._known: dict[str, tuple[str, Counter[str]]] = {}

    def text(self, text: str) -> str:
        """The clean text."""
        if not text:
            return text
        known = self._known.get(text)
        if known is None:
            redactor = Redactor()
            known = self._known[text] = (redactor.clean(text), redactor.counts)
        self.counts.update(known[1])
        return known[0]

    def value(self, key: str, value: Any) -> Any:
        """The clean value of a fact: only texts change, and no version does."""
        return self.text(value) if isinstance(value, str) and "version" not in key else value


def _clean_batch(batch: Batch, cleaner: _Cleaner) -> None:
    batch.environment = _clean_environment(batch.environment, cleaner)
    batch.operators = _clean_rows(batch.operators, cleaner)
    batch.collectives = _clean_rows(batch.collectives, cleaner)
    batch.links = _clean_rows(batch.links, cleaner)
    batch.iterations = _clean_rows(batch.iterations, cleaner)
    if batch.operator_table is not None:
        batch.operator_table = _clean_table(batch.operator_table, cleaner)
    if batch.collective_table is not None:
        batch.collective_table = _clean_table(batch.collective_table, cleaner)


def _clean_environment(environment: Environment, cleaner: _Cleaner) -> Environment:
    left_alone = ("topology_fingerprint", "captured_at")
    texts = {
        name: cleaner.value(name, value)
        for name, value in environment
        if isinstance(value, str) and name not in left_alone
    }
    return environment.model_copy(update=texts)


def _clean_rows(rows: Sequence[Row], cleaner: _Cleaner) -> list[Row]:
    if not rows:
        return list(rows)
    names = {each.name for each in fields(rows[0])}
    free, mappings = sorted(names & _FREE), sorted(names & _MAPPINGS)
    return [_clean_row(row, free, mappings, cleaner) for row in rows]


def _clean_row(row: Row, free: Sequence[str], mappings: Sequence[str], cleaner: _Cleaner) -> Row:
    changed: dict[str, Any] = {}
    for name in free:
        text = getattr(row, name)
        if text and (clean := cleaner.text(text)) != text:
            changed[name] = clean
    for name in mappings:
        mapping = getattr(row, name)
        if mapping and (cleaned := {key: cleaner.value(key, value) for key, value in mapping.items()}) != mapping:
            changed[name] = cleaned
    return replace(row, **changed) if changed else row


def _clean_table(table: pa.Table, cleaner: _Cleaner) -> pa.Table:
    import pyarrow as pa

    for name in sorted((_FREE | _MAPPINGS) & set(table.column_names)):
        column = table.column(name)
        if pa.types.is_null(column.type):
            continue
        distinct = [text for text in column.unique().to_pylist() if text]
        changed = _changed(distinct, cleaner)
        if changed:
            values = [changed.get(text, text) for text in column.to_pylist()]
            place = table.column_names.index(name)
            table = table.set_column(place, name, pa.array(values, pa.string()))
    return table


def _changed(distinct: Sequence[str], cleaner: _Cleaner) -> dict[str, str]:
    """Texts that need cleaning.  Looked at in bundles first, because nearly always none does."""
    changed: dict[str, str] = {}
    for start in range(0, len(distinct), _DISTINCT_AT_ONCE):
        bundle = distinct[start : start + _DISTINCT_AT_ONCE]
        joined = "\n".join(bundle)
        if Redactor().clean(joined) != joined:
            changed |= {text: clean for text in bundle if (clean := cleaner.text(text)) != text}
    return changed


def _clean_topology(topology: Topology, cleaner: _Cleaner) -> Topology:
    return topology.model_copy(update={"irregular": tuple(cleaner.text(each) for each in topology.irregular)})
