"""Rows to tables and back; tables that an importer gives are checked."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pyarrow as pa
import pytest

from profiles.errors import DocumentInvalid
from profiles.observation_store.checking import check_table, complete, stored_names
from profiles.observation_store.schema import KINDS, Kind, arrow_schema, columns_of, from_table, to_table
from profiles.observations.records import (
    SHAPE_NAMES,
    CollectiveObservation,
    IterationObservation,
    OperatorObservation,
)
from profiles.observations.timing import Timing
from tests.observation_factory import all_reduce, matmul, one_of_each

GOOD: dict[str, list[Any]] = {"operator": ["matmul", "norm"], "name": ["mm", "rms"], "time_s": [1e-3, 2e-3]}


def operator_table(**columns: Any) -> pa.Table:
    return pa.table({**GOOD, **columns})


@pytest.mark.parametrize("kind", KINDS)
def test_rows_survive_the_way_to_a_table_and_back(kind: Kind) -> None:
    rows = getattr(one_of_each().batches[0], kind)
    table = to_table(kind, rows)
    assert from_table(kind, table) == rows
    completed = complete(kind, table, stored_names(kind, table))
    assert from_table(kind, completed) == rows
    assert from_table(kind, complete(kind, table, arrow_schema(kind).names)) == rows


def test_every_field_of_the_dataclasses_has_a_column() -> None:
    operators = {column.name for column in columns_of("operators")}
    expected = {each.name for each in dataclasses.fields(OperatorObservation)} - {"timing", "shape"}
    assert operators == expected | set(SHAPE_NAMES) | {each.name for each in dataclasses.fields(Timing)}
    expected = {each.name for each in dataclasses.fields(CollectiveObservation)} - {"timing"}
    assert {column.name for column in columns_of("collectives")} >= expected


def test_units_and_types_of_the_columns() -> None:
    schema = arrow_schema("collectives")
    assert schema.field("size_bytes").type == pa.int64()
    assert schema.field("time_s").type == pa.float64()
    assert schema.field("in_place").type == pa.bool_()
    assert schema.field("detail").type == pa.string()
    assert schema.field("statistic").type == pa.string()


def test_columns_without_a_value_are_left_out() -> None:
    table = to_table("operators", [matmul(1, 1e-3)])
    assert {"m", "n", "k"} <= set(table.column_names)
    assert {"window", "p90_s", "causal"} & set(table.column_names) == set()
    assert "window" not in stored_names("operators", operator_table(window=pa.nulls(2)))


@pytest.mark.parametrize(
    "row",
    [
        OperatorObservation("norm", "x", Timing(1.0), weights_bytes=2**70),
        OperatorObservation("norm", "x", Timing(1.0), detail={"x": math.nan}),
        OperatorObservation("norm", "x", Timing(1.0), row=1.5),  # type: ignore[arg-type]
        OperatorObservation("norm", "x", Timing(1.0), detail={"x": object()}),  # type: ignore[dict-item]
    ],
)
def test_values_that_do_not_fit_are_refused(row: OperatorObservation) -> None:
    with pytest.raises(DocumentInvalid, match="cannot be stored"):
        to_table("operators", [row])


def test_nan_in_a_plain_field_is_refused() -> None:
    row = IterationObservation(Timing(1.0), reported_flops_per_s_per_device=math.nan)
    with pytest.raises(DocumentInvalid, match="'reported_flops_per_s_per_device' of row 0 is not a finite number"):
        check_table("iterations", to_table("iterations", [row]))


def test_a_table_of_an_importer_is_completed() -> None:
    table = operator_table(
        m=pa.array([1, None], pa.int32()),
        dtype=pa.array(["bf16", None]).dictionary_encode(),
        num_samples=pa.array([3, 4], pa.uint8()),
    )
    check_table("operators", table)
    done = complete("operators", table, stored_names("operators", table))
    first, second = from_table("operators", done)
    assert first == OperatorObservation("matmul", "mm", Timing(1e-3, num_samples=3), dtype="bf16", shape={"m": 1})
    assert second == OperatorObservation("norm", "rms", Timing(2e-3, num_samples=4))
    assert done.schema.field("m").type == pa.int64()


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"time_s": [1e-3, math.nan]}, "'time_s' of row 1 is not a finite number"),
        ({"time_s": [math.inf, 1.0]}, "'time_s' of row 0 is not a finite number"),
        ({"time_s": [1e-3, 0.0]}, "'time_s' of row 1 is not a positive number"),
        ({"time_s": [-1e-3, 1.0]}, "'time_s' of row 0 is not a positive number: -0.001"),
        ({"time_s": [1e-3, None]}, "row 1 of the table of operators ran but has no time"),
        ({"time_s": ["1", "2"]}, "column 'time_s' is of type string"),
        ({"min_s": [-1.0, 1.0]}, "'min_s' of row 0 is not a positive number"),
        ({"m": [1, -1]}, "'m' of row 1 is too small: -1"),
        ({"m": [1.0, 2.0]}, "column 'm' is of type double"),
        ({"m": pa.array([2**63, 1], pa.uint64())}, "'m' of row 0 is beyond 2\\^62"),
        ({"num_samples": [0, 1]}, "'num_samples' of row 0 is too small"),
        ({"statistic": ["mode", "mean"]}, "column 'statistic' holds 'mode'"),
        ({"phase": ["forward", "sideways"]}, "column 'phase' holds 'sideways'"),
        ({"detail": ["{}", "[1]"]}, "'detail' of row 1 is not JSON text"),
        ({"colour": ["red", "green"]}, "unknown column 'colour'"),
        ({"operator": ["matmul", None]}, "'operator' of row 1 is empty"),
        ({"causal": [1, 0]}, "column 'causal' is of type int64"),
    ],
)
def test_a_table_with_bad_values_is_refused(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(DocumentInvalid, match=said):
        check_table("operators", operator_table(**columns))


def test_a_failure_without_a_time_is_data() -> None:
    check_table("operators", operator_table(time_s=[1e-3, None], ok=[True, False]))


def test_a_missing_column_is_named() -> None:
    with pytest.raises(DocumentInvalid, match="no column 'operator'"):
        check_table("operators", pa.table({"time_s": [1.0], "name": ["x"]}))
    with pytest.raises(DocumentInvalid, match="no column 'size_bytes'"):
        check_table("collectives", to_table("collectives", [all_reduce(1, 1.0)]).drop_columns(["size_bytes"]))
