"""Names and secrets leave every free text of an import, and are counted."""

from __future__ import annotations

import pyarrow as pa

from profiles.importing.cleaning import clean_imported
from profiles.importing.imported import Batch, Imported
from profiles.observation_store.schema import from_table
from profiles.observations.environment import Environment
from profiles.observations.records import IterationObservation, OperatorObservation
from profiles.observations.source import Flag
from profiles.observations.timing import Timing
from profiles.topology import Topology

IP = "10.1.2.3"


def test_every_free_text_is_cleaned() -> None:
    operator = OperatorObservation("norm", f"n@{IP}", Timing(1.0), detail={"cmd": "--password=hunter22", "n": 3})
    step = IterationObservation(None, model="/home/alice/m", strategy={"host": IP}, ok=False, error=f"lost {IP}")
    environment = Environment(
        device="h200", note=f"on {IP}", driver_version="1.2.3.4", captured_at="2026-01-02T03:04:05"
    )
    content = Imported(
        "test",
        batches=[Batch(environment, operators=[operator], iterations=[step])],
        topology=Topology(irregular=(f"{IP} is alone",)),
        flags=[Flag(code="x", what=f"from {IP}", line=3)],
        skipped={f"rows of {IP}": 2},
        facts={"command": f"ssh {IP}", "driver_version": "1.2.3.4", "iterations": 20},
    )
    content.bad(4, f"{IP} is no number")
    counts = clean_imported(content)
    (batch,) = content.batches
    assert IP not in repr(content)
    assert "hunter22" not in repr(content)
    assert "alice" not in repr(content)
    assert batch.environment.driver_version == "1.2.3.4"
    assert batch.environment.captured_at == "2026-01-02T03:04:05"
    assert batch.operators[0].name == "n@<ip>"
    assert batch.operators[0].detail["n"] == 3
    assert batch.iterations[0].error == "lost <ip>"
    assert content.facts["driver_version"] == "1.2.3.4"
    assert content.facts["iterations"] == 20
    assert content.flags[0].line == 3
    assert content.skipped == {"rows of <ip>": 2}
    assert counts == {"ip": 9, "secret": 1, "user": 1}


def test_rows_without_names_stay_the_same_objects() -> None:
    row = OperatorObservation("matmul", "aten::mm", Timing(1.0), detail={"kernel": "void f<int, 3>(a::b)"})
    content = Imported("test", batches=[Batch(Environment(), operators=[row])])
    assert not clean_imported(content)
    assert content.batches[0].operators[0] is row


def test_each_appearance_is_counted() -> None:
    rows = [OperatorObservation("norm", f"n {IP}", Timing(1.0)) for _ in range(5)]
    assert clean_imported(Imported("test", batches=[Batch(Environment(), operators=rows)])) == {"ip": 5}


def test_tables_are_cleaned_too() -> None:
    names = [f"kernel {number}" for number in range(3000)]
    names[2500] = f"kernel on {IP}"
    table = pa.table(
        {
            "operator": ["kernel"] * 3000,
            "name": pa.array(names).dictionary_encode(),
            "time_s": [1.0] * 3000,
            "detail": ['{"user": "a@b.example"}'] * 3000,
        }
    )
    content = Imported("test", batches=[Batch(Environment(), operator_table=table)])
    counts = clean_imported(content)
    cleaned = content.batches[0].operator_table
    assert cleaned is not None
    rows = from_table("operators", cleaned)
    assert getattr(rows[2500], "name") == "kernel on <ip>"  # noqa: B009 - a link has none
    assert getattr(rows[2499], "name") == "kernel 2499"  # noqa: B009 - a link has none
    assert all(row.detail == {"user": "<email>"} for row in rows)
    assert counts["ip"] == 1
