"""Rows by device, operator, dtype, format and batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.observation_store.query import Selection, select
from profiles.observation_store.store import ObservationStore
from profiles.observations.environment import Environment
from profiles.observations.records import OperatorObservation
from tests.observation_factory import all_reduce, imported, matmul, one_of_each, source

A100 = Environment(device="a100-sxm4-80gb")
UNKNOWN = Environment(device_reported="Frobnicator 9")


@pytest.fixture
def store(tmp_path: Path) -> ObservationStore:
    made = ObservationStore(tmp_path / "profiles")
    norm = OperatorObservation("norm", "rms", matmul(1, 4e-3).timing, dtype="fp32", shape={"num_tokens": 5})
    made.add(imported([matmul(1, 1e-3), matmul(2, 2e-3, dtype="fp8"), norm], [all_reduce(8, 1e-3)]), source("a"))
    made.add(imported([matmul(3, 3e-3)], environment=A100), source("b", format_name="other"))
    made.add(imported([matmul(5, 5e-3)], environment=UNKNOWN), source("c"))
    return made


@pytest.mark.parametrize(
    ("wanted", "times_ms"),
    [
        (Selection(), [1, 2, 3, 4, 5]),
        (Selection(devices=("h100-sxm5-80gb",)), [1, 2, 4]),
        (Selection(devices=("NVIDIA H100 80GB HBM3",)), [1, 2, 4]),
        (Selection(devices=("Frobnicator 9", "a100-sxm4-80gb")), [3, 5]),
        (Selection(devices=("h200",)), []),
        (Selection(formats=("other",)), [3]),
        (Selection(operator=("matmul",)), [1, 2, 3, 5]),
        (Selection(operator=("matmul", "norm"), dtype=("fp8", "fp32")), [2, 4]),
        (Selection(operator=("matmul",), phase=("backward",)), []),
        (Selection(operation=("all_reduce",)), []),
        (Selection(successes_only=True), [1, 2, 3, 4, 5]),
    ],
)
def test_what_is_selected(store: ObservationStore, wanted: Selection, times_ms: list[int]) -> None:
    table = select(store, "operators", wanted)
    assert sorted(round(time_s * 1e3) for time_s in table.column("time_s").to_pylist()) == times_ms


def test_rows_name_their_batch(store: ObservationStore) -> None:
    table = select(store, "operators", Selection(operator=("matmul",)), ["m", "batch_id"])
    devices = {batch.batch_id: batch.device for batch in store.batches()}
    assert table.column_names == ["m", "batch_id"]
    assert {row["m"]: devices[row["batch_id"]] for row in table.to_pylist()} == {
        1: "h100-sxm5-80gb",
        2: "h100-sxm5-80gb",
        3: "a100-sxm4-80gb",
        5: "Frobnicator 9",
    }


def test_columns_that_a_file_leaves_out_are_null(store: ObservationStore) -> None:
    table = select(store, "operators", Selection(formats=("other",)))
    assert table.column("window").to_pylist() == [None]
    assert table.column("detail").to_pylist() == [""]


def test_collectives_by_operation_and_group(store: ObservationStore) -> None:
    wanted = Selection(operation=("all_reduce",), group_size=(8,))
    assert select(store, "collectives", wanted).column("size_bytes").to_pylist() == [8]
    assert select(store, "collectives", Selection(group_size=(4,))).num_rows == 0


def test_failures_are_left_out_on_request(tmp_path: Path) -> None:
    store = ObservationStore(tmp_path)
    store.add(one_of_each(), source("a"))
    assert select(store, "operators").num_rows == 3
    assert select(store, "operators", Selection(successes_only=True)).num_rows == 2


def test_a_withdrawn_batch_is_there_for_who_asks_by_id(store: ObservationStore) -> None:
    batch_id = next(batch.batch_id for batch in store.batches() if batch.source.format == "other")
    store.withdraw(batch_id)
    assert select(store, "operators").num_rows == 4
    assert select(store, "operators", Selection(batch_ids=(batch_id,))).num_rows == 1
