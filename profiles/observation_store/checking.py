"""The check of a table that an importer gives: columns, types and values, column by column.

Refused: unknown or missing columns, NaN and infinity, times that are not positive, negative numbers, sizes from 2^62,
words that are not among the choices, a success without a time.  What a row does not say becomes the default.
"""

from __future__ import annotations

from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from profiles.errors import DocumentInvalid
from profiles.observation_store.schema import Column, Kind, columns_of

_AT_LEAST_ONE = frozenset({"num_samples", "group_size", "num_nodes", "devices_per_node", "num_devices"})
_LARGEST = 2**62
_HINT = "the file is damaged, or its numbers are of an unknown variant; please report it with the file"


def check_table(kind: Kind, table: pa.Table) -> None:
    """Raises DocumentInvalid with the column and the first row (from 0) that cannot be stored."""
    known = {column.name: column for column in columns_of(kind)}
    strange = [name for name in table.column_names if name not in known]
    missing = [name for name, column in known.items() if column.required and name not in table.column_names]
    if strange or missing or len(set(table.column_names)) != len(table.column_names):
        said = [f"unknown column '{name}'" for name in strange] + [f"no column '{name}'" for name in missing]
        raise DocumentInvalid(f"the table of {kind} has " + ", ".join(said or ["a column twice"]), hint=_HINT)
    for name in table.column_names:
        _check_column(known[name], table.column(name))
    if kind in ("operators", "collectives"):
        _check_success(kind, table)


def complete(kind: Kind, table: pa.Table, names: list[str]) -> pa.Table:
    """The columns called ``names`` in storage order and type, defaults filled in.  Raises DocumentInvalid."""
    known = {column.name: column for column in columns_of(kind)}
    arrays = {name: _complete_column(known[name], table) for name in names}
    return pa.table(arrays, schema=pa.schema([(name, known[name].type) for name in names]))


def stored_names(kind: Kind, table: pa.Table) -> list[str]:
    """Columns that a file of this table holds: those in which some row has a value, or an absent one means a word."""
    return [
        column.name
        for column in columns_of(kind)
        if column.default is not None
        or column.required
        or (column.name in table.column_names and table.column(column.name).null_count < table.num_rows)
    ]


def _check_column(column: Column, values: Any) -> None:
    if not _fits(column, values.type):
        raise DocumentInvalid(f"column '{column.name}' is of type {values.type}", hint=_HINT)
    if column.required and values.null_count:
        _refuse(column, values, pc.is_null(values), "is empty")
    if pa.types.is_floating(column.type):
        numbers = values if pa.types.is_floating(values.type) else values.cast(pa.float64())
        _refuse(column, values, pc.invert(pc.is_finite(numbers)), "is not a finite number")
        bound = pc.less_equal(numbers, 0) if column.name == "time_s" else pc.less(numbers, 0)
        _refuse(column, values, bound, "is not a positive number")
    elif pa.types.is_integer(column.type):
        _refuse_range(column, values)
    elif column.choices:
        _refuse_words(column, values)
    elif column.holds == "json":
        whole = pc.match_substring_regex(_plain_text(values), r"^(?s:\{.*\})?$")
        _refuse(column, values, pc.invert(whole), "is not JSON text of an object")


def _fits(column: Column, given: Any) -> bool:
    """Whether values of a type can become the column's without loss."""
    if pa.types.is_dictionary(given):
        given = given.value_type
    if pa.types.is_null(given):
        return True
    if column.is_text:
        return bool(pa.types.is_string(given) or pa.types.is_large_string(given))
    if pa.types.is_floating(column.type):
        return bool(pa.types.is_floating(given) or pa.types.is_integer(given))
    if pa.types.is_integer(column.type):
        return bool(pa.types.is_integer(given))
    return bool(pa.types.is_boolean(given))


def _check_success(kind: Kind, table: pa.Table) -> None:
    """A row that ran has a time."""
    times = table.column("time_s") if "time_s" in table.column_names else pa.nulls(table.num_rows, pa.float64())
    without = pc.is_null(times)
    if "ok" in table.column_names:
        without = pc.and_(without, pc.fill_null(table.column("ok"), True))
    index = _first(without)
    if index is not None:
        raise DocumentInvalid(f"row {index} of the table of {kind} ran but has no time", hint=_HINT)


def _refuse_range(column: Column, values: Any) -> None:
    # By extremes and not by comparison: pyarrow compares no uint64 with a signed number.
    ends = pc.min_max(values).as_py()
    least, most = ends["min"], ends["max"]
    if least is not None and least < (1 if column.name in _AT_LEAST_ONE else 0):
        _say(column, values, pc.index(values, pa.scalar(least, values.type)).as_py(), "is too small")
    if most is not None and most >= _LARGEST:
        _say(column, values, pc.index(values, pa.scalar(most, values.type)).as_py(), "is beyond 2^62")


def _refuse_words(column: Column, values: Any) -> None:
    for word in pc.unique(values).to_pylist():
        if word is not None and word not in column.choices:
            known = ", ".join(column.choices)
            raise DocumentInvalid(f"column '{column.name}' holds '{word}'; known are {known}", hint=_HINT)


def _refuse(column: Column, values: Any, bad: Any, what: str) -> None:
    index = _first(bad)
    if index is not None:
        _say(column, values, index, what)


def _say(column: Column, values: Any, index: int, what: str) -> NoReturn:
    text = str(values[index].as_py())[:60]
    raise DocumentInvalid(f"'{column.name}' of row {index} {what}: {text}", hint=_HINT)


def _first(bad: Any) -> int | None:
    """Index of the first true value; null is not true."""
    index: int = pc.index(pc.fill_null(bad, False), True).as_py()
    return index if index >= 0 else None


def _plain_text(values: Any) -> Any:
    return values.cast(pa.string()) if pa.types.is_dictionary(values.type) else values


def _complete_column(column: Column, table: pa.Table) -> Any:
    if column.name not in table.column_names:
        if column.default is None:
            return pa.nulls(table.num_rows, column.type)
        return pa.repeat(pa.scalar(column.default, column.type), table.num_rows)
    values = table.column(column.name)
    try:
        values = values if values.type == column.type else values.cast(column.type)
    except pa.ArrowException as error:
        raise DocumentInvalid(f"column '{column.name}' cannot be stored: {error}", hint=_HINT) from None
    return values if column.default is None else pc.fill_null(values, column.default)
