"""The columns of an observation: one Arrow schema a kind, from its dataclass; rows to tables and back.

| field of the dataclass | column |
|---|---|
| whole number, number, truth | int64, float64, bool; null = unknown |
| text, choice | string; the dataclass default (often empty) = unknown.  Dictionary-encoded in Parquet |
| ``timing`` | the fields of ``Timing`` (``time_s``, ``statistic``, ...); a null ``time_s`` = no timing |
| ``shape`` | one int64 column for each of ``SHAPE_NAMES`` |
| ``detail``, ``strategy`` | JSON text with sorted keys; empty = nothing |
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from operator import index
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pyarrow as pa

from profiles.errors import DocumentInvalid
from profiles.observations.records import (
    SHAPE_NAMES,
    CollectiveObservation,
    IterationObservation,
    LinkObservation,
    Observation,
    OperatorObservation,
)
from profiles.observations.timing import Timing

Kind = Literal["operators", "collectives", "links", "iterations"]
KINDS: tuple[Kind, ...] = ("operators", "collectives", "links", "iterations")
_CLASSES: dict[Kind, type[Observation]] = {
    "operators": OperatorObservation,
    "collectives": CollectiveObservation,
    "links": LinkObservation,
    "iterations": IterationObservation,
}
_ARROW: dict[type, Any] = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its Arrow type, what of the dataclass it holds, and the value of a row that does not say."""

    name: str
    type: Any
    holds: Literal["field", "timing", "shape", "json"]
    default: str | bool | None
    required: bool
    choices: tuple[str, ...] = ()

    @property
    def is_text(self) -> bool:
        """Whether the column holds text (JSON included)."""
        return bool(pa.types.is_string(self.type))


@cache
def columns_of(kind: Kind) -> tuple[Column, ...]:
    """Columns of one kind in storage order."""
    cls = _CLASSES[kind]
    hints = get_type_hints(cls)
    found: list[Column] = []
    for each in dataclasses.fields(cls):
        if each.name == "timing":
            found += _timing_columns()
        elif each.name == "shape":
            found += [Column(name, pa.int64(), "shape", None, False) for name in SHAPE_NAMES]
        elif get_origin(hints[each.name]) is dict:
            found.append(Column(each.name, pa.string(), "json", "", False))
        else:
            found.append(_plain_column(each.name, hints[each.name], each.default))
    return tuple(found)


@cache
def arrow_schema(kind: Kind) -> pa.Schema:
    """Arrow schema of one kind; a file may leave out columns in which no row has a value."""
    return pa.schema([(column.name, column.type) for column in columns_of(kind)])


def to_table(kind: Kind, observations: Sequence[Observation]) -> pa.Table:
    """Observations as a table without the columns in which no row has a value.

    Raises DocumentInvalid for a number that does not fit (a count beyond 64 bits, NaN in a detail).
    """
    arrays: dict[str, Any] = {}
    shapes = {name for each in observations if isinstance(each, OperatorObservation) for name in each.shape}
    for column in columns_of(kind):
        if column.holds == "shape" and column.name not in shapes:
            continue
        values = _values(column, observations)
        if not column.is_text and all(value is None for value in values):
            continue
        try:
            if pa.types.is_integer(column.type):
                # pyarrow would cut 1.5 to 1.
                values = [None if value is None else index(value) for value in values]
            arrays[column.name] = pa.array(values, type=column.type)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise DocumentInvalid(
                f"a value of '{column.name}' cannot be stored: {error}",
                hint="the file is damaged, or its numbers are of an unknown variant",
            ) from None
    return pa.table(arrays) if arrays else arrow_schema(kind).empty_table()


def from_table(kind: Kind, table: pa.Table) -> list[Observation]:
    """The observations of a table; absent columns and nulls are the dataclass defaults."""
    columns = [column for column in columns_of(kind) if column.name in table.column_names]
    cells = {column.name: table.column(column.name).to_pylist() for column in columns}
    cls = _CLASSES[kind]
    missing = dataclasses.MISSING
    absent = {
        each.name: None
        for each in dataclasses.fields(cls)
        if each.default is missing and each.default_factory is missing
    }
    rows: list[Observation] = []
    for number in range(table.num_rows):
        arguments: dict[str, Any] = dict(absent)
        timing: dict[str, Any] = {}
        for column in columns:
            value = cells[column.name][number]
            if value is None:
                continue
            if column.holds == "timing":
                timing[column.name] = value
            elif column.holds == "shape":
                arguments.setdefault("shape", {})[column.name] = value
            elif column.holds == "json":
                arguments[column.name] = json.loads(value) if value else {}
            else:
                arguments[column.name] = value
        if "time_s" in timing:
            arguments["timing"] = Timing(**timing)
        rows.append(cls(**arguments))
    return rows


def json_text(value: dict[str, Any]) -> str:
    """The text of a detail: empty for nothing.  Raises ValueError for NaN and infinity."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False) if value else ""


def _values(column: Column, observations: Sequence[Observation]) -> list[Any]:
    name = column.name
    if column.holds == "timing":
        timings = [None if isinstance(each, LinkObservation) else each.timing for each in observations]
        return [column.default if timing is None else getattr(timing, name) for timing in timings]
    if column.holds == "shape":
        return [each.shape.get(name) for each in observations if isinstance(each, OperatorObservation)]
    if column.holds == "field":
        return [getattr(each, name) for each in observations]
    try:
        return [json_text(getattr(each, name)) for each in observations]
    except (TypeError, ValueError, RecursionError) as error:
        raise DocumentInvalid(
            f"a value in '{name}' cannot be stored: {error}", hint="the file is damaged or of an unknown variant"
        ) from None


def _timing_columns() -> list[Column]:
    hints = get_type_hints(Timing)
    parts = dataclasses.fields(Timing)
    return [_plain_column(each.name, hints[each.name], each.default, "timing") for each in parts]


def _plain_column(name: str, hint: Any, default: Any, holds: Literal["field", "timing"] = "field") -> Column:
    nullable = NoneType in get_args(hint)
    plain = next(each for each in get_args(hint) if each is not NoneType) if nullable else hint
    choices: tuple[str, ...] = get_args(plain) if get_origin(plain) is Literal else ()
    absent = default is dataclasses.MISSING
    arrow = pa.string() if choices else _ARROW[plain]
    value = ("" if arrow == pa.string() else None) if absent else default
    return Column(name, arrow, holds, value, absent and not nullable and holds == "field", choices)
