"""A measured profile is written, read back equal, and refused or reported when somebody edited it badly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.meshwright_measure import FORMAT
from profiles.importing.imported import Batch, Imported
from profiles.measure.measured_file import document_of, document_text, observation_data, observation_of
from profiles.observations.environment import Environment
from profiles.observations.records import CollectiveObservation, LinkObservation, OperatorObservation
from profiles.observations.timing import Timing
from tests.importing import read, read_anyway, written

TIMING = Timing(1.5e-3, "median", 20, 1.4e-3, 1.45e-3, 1.6e-3, 2e-3)
MATMUL = OperatorObservation(
    "matmul", "linear", TIMING, "dgrad", "bf16", {"m": 4, "n": 8, "k": 16}, detail={"layout": "NN", "copies": 4}
)
FAILED = OperatorObservation(
    "matmul", "linear", None, "forward", "fp8", {"m": 4, "n": 8, "k": 16}, ok=False, error="no fp8"
)
REDUCE = CollectiveObservation("all_reduce", 1 << 20, 4, TIMING, "bf16", 2, 2, 1, 1, True, launch="back_to_back")
COPY = LinkObservation("host_memory", "host:0", "host:0", "one_way", 64, 1e9, statistic="median", num_samples=3)


def measured() -> Imported:
    imported = Imported(tool="meshwright", tool_version="0.1.0")
    environment = Environment(device_reported="cpu: a model", framework="torch", num_devices=4, clock_hz=2.6e9)
    imported.batches.append(Batch(environment, [MATMUL, FAILED], [REDUCE], [COPY]))
    imported.facts |= {"backend": "cpu", "wall_s": 7.5, "num_failed": 1}
    imported.flag("clock-moved", "the clock moved")
    imported.skip("matmul: the time budget of 10 s was spent", 3)
    return imported


def test_a_profile_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    found = read(FORMAT, written(tmp_path, "profile.json", document_text(measured())))
    assert found.batches == measured().batches
    assert (found.facts, found.skipped, found.flags) == (measured().facts, measured().skipped, measured().flags)
    assert (found.tool, found.tool_version, found.bad_rows) == ("meshwright", "0.1.0", [])
    assert document_text(found) == document_text(measured())


def test_defaults_are_not_written() -> None:
    assert observation_data(FAILED) == {
        "operator": "matmul",
        "name": "linear",
        "timing": None,
        "phase": "forward",
        "dtype": "fp8",
        "shape": {"m": 4, "n": 8, "k": 16},
        "ok": False,
        "error": "no fp8",
    }
    assert observation_of("operators", observation_data(FAILED)) == FAILED


def test_the_device_can_be_named(tmp_path: Path) -> None:
    file = written(tmp_path, "profile.json", document_text(measured()))
    assert read(FORMAT, file, given={"device": "my-cpu"}).batches[0].environment.device == "my-cpu"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"timing": {"time_s": -1.0}}, "time_s"),
        ({"timing": {"time_s": 0}}, "zero"),
        ({"timing": {"time_s": "0.5"}}, "number"),
        ({"timing": None}, "has a time"),
        ({"shape": {"m": -4}}, "m is -4"),
        ({"shape": {"wide": 4}}, "wide"),
        ({"shape": {"m": 1.5}}, "shape.m"),
        ({"phase": "sideways"}, "phase"),
        ({"speed": 3}, "unknown field 'speed'"),
    ],
)
def test_an_edited_row_is_bad_and_the_others_stay(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    document = document_of(measured())
    document["batches"][0]["operators"][0] |= change
    found = read(FORMAT, written(tmp_path, "profile.json", json.dumps(document)))
    assert found.batches[0].operators == [FAILED]
    assert found.batches[0].collectives == [REDUCE]
    (bad,) = found.bad_rows
    assert bad.where == "/batches/0/operators/0"
    assert says in bad.what


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"format": "meshwright-measure"',
        '{"format": "meshwright-measure", "schema_version": 2, "batches": []}',
        '{"format": "meshwright-measure", "schema_version": 1, "batches": []}',
        '{"format": "meshwright-measure", "schema_version": 1, "batches": {}}',
        '{"format": "meshwright-measure", "schema_version": 1, "batches": [3]}',
        '{"format": "meshwright-measure", "schema_version": 1, "batches": [{"environment": {"host": "x"}}]}',
        '{"format": "meshwright-measure", "schema_version": 1, "facts": [], "batches": []}',
        '{"format": "meshwright-measure", "schema_version": 1, "batches": [{"environment": {}, "links": 1}]}',
        '{"format": "meshwright-measure", "schema_version": 1, "facts": {"x": NaN}, "batches": []}',
        "[" * 100_000,
    ],
)
def test_what_is_no_profile_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(DocumentInvalid) as refused:
        read_anyway(FORMAT, [written(tmp_path, "profile.json", content)])
    assert refused.value.where
    assert refused.value.hint


def test_every_cut_of_the_file_is_refused(tmp_path: Path) -> None:
    whole = document_text(measured())
    for length in range(0, len(whole) - 2, 97):
        with pytest.raises(DocumentInvalid):
            read_anyway(FORMAT, [written(tmp_path, "cut.json", whole[:length])])


@pytest.mark.parametrize(
    "text", ['{"format": "other"}', '{"results": [], "format": "meshwright-measure"}', "format: meshwright-measure"]
)
def test_only_its_own_documents_are_recognised(tmp_path: Path, text: str) -> None:
    assert not FORMAT.matches(written(tmp_path, "other.json", text).head())
