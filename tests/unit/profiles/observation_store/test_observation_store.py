"""Batches are added once, never changed, and withdrawn by one more file."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from profiles.errors import DocumentInvalid, NotFound
from profiles.importing.imported import Batch, Imported
from profiles.observation_store.address import profiles_folder
from profiles.observation_store.errors import ProfileStoreDamaged
from profiles.observation_store.preparing import prepare
from profiles.observation_store.query import observations, select
from profiles.observation_store.schema import KINDS
from profiles.observation_store.store import ObservationStore
from profiles.observations.environment import Environment
from profiles.observations.source import Source
from profiles.topology import Topology
from tests.observation_factory import H100, imported, matmul, one_of_each, source


@pytest.fixture
def store(tmp_path: Path) -> ObservationStore:
    return ObservationStore(tmp_path / "profiles")


def snapshot(store: ObservationStore) -> dict[str, tuple[bytes, int]]:
    """Content and time stamp of every file, without the lock."""
    return {
        str(path.relative_to(store.folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in store.folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_everything_comes_back(store: ObservationStore) -> None:
    (stored,) = store.add(one_of_each(), source("a"))
    assert stored.new
    assert stored.batch.counts == {"operators": 3, "collectives": 2, "links": 1, "iterations": 2}
    for kind in KINDS:
        ((batch, rows),) = observations(store, kind)
        assert batch == stored.batch
        assert rows == getattr(one_of_each().batches[0], kind)


def test_the_second_import_changes_nothing(store: ObservationStore) -> None:
    first = store.add(one_of_each(), source("a"))
    before = snapshot(store)
    second = store.add(one_of_each(), source("a"))
    assert [each.new for each in second] == [False]
    assert second[0].batch == first[0].batch
    assert snapshot(store) == before


def test_the_id_is_what_was_read_and_how(store: ObservationStore) -> None:
    rows = imported([matmul(1, 1e-3)])
    other = imported([matmul(1, 1e-3)], environment=H100.model_copy(update={"runtime_version": "12.9"}))
    ids = [
        prepare(content, read_from, given)[0].record.batch_id
        for content, read_from, given in [
            (rows, source("a"), {}),
            (rows, source("b"), {}),
            (rows, source("a", parser_version=2), {}),
            (rows, source("a"), {"dtype": "bf16"}),
            (other, source("a"), {}),
        ]
    ]
    assert len(set(ids)) == 5
    assert prepare(rows, source("a"), {})[0].record.batch_id == ids[0]


def test_equal_environments_in_one_file_stay_two_batches(store: ObservationStore) -> None:
    twice = Imported("test", batches=[Batch(H100, [matmul(1, 1e-3)]), Batch(H100, [matmul(2, 1e-3)])])
    stored = store.add(twice, source("a"))
    assert len({each.batch.batch_id for each in stored}) == 2
    assert select(store, "operators").num_rows == 2


def test_rows_are_the_identity_of_a_measurement_without_a_file(store: ObservationStore) -> None:
    measured = Source(kind="measured", format="meshwright-measure")
    assert store.add(imported([matmul(1, 1e-3)]), measured)[0].new
    assert not store.add(imported([matmul(1, 1e-3)]), measured)[0].new
    assert store.add(imported([matmul(1, 2e-3)]), measured)[0].new


def test_rows_and_a_table_share_a_file(store: ObservationStore) -> None:
    table = pa.table({"operator": ["norm"], "name": ["rms"], "time_s": [2e-3], "num_tokens": [5]})
    batch = Batch(H100, [matmul(1, 1e-3)], operator_table=table)
    assert store.add(Imported("test", batches=[batch]), source("a"))[0].batch.counts == {"operators": 2}
    ((_, (first, second)),) = observations(store, "operators")
    assert first == matmul(1, 1e-3)
    assert getattr(second, "shape") == {"num_tokens": 5}  # noqa: B009 - a link has none


def test_a_topology_alone_is_a_batch(store: ObservationStore) -> None:
    topology = Topology(num_nodes=2)
    (stored,) = store.add(Imported("test", topology=topology), source("a"))
    assert stored.batch.topology == topology
    assert stored.batch.environment.topology_fingerprint == topology.fingerprint
    assert stored.batch.num_observations == 0


def test_values_that_cannot_be_stored_leave_nothing(store: ObservationStore) -> None:
    table = pa.table({"operator": ["norm"], "name": ["rms"], "time_s": [float("nan")]})
    good, bad = Batch(H100, [matmul(1, 1e-3)]), Batch(Environment(), operator_table=table)
    with pytest.raises(DocumentInvalid, match="'time_s' of row 0"):
        store.add(Imported("test", batches=[good, bad]), source("a"))
    assert store.states() == []
    assert not store.folder.exists()


def test_facts_that_are_no_numbers_are_refused(store: ObservationStore) -> None:
    content = imported([matmul(1, 1e-3)])
    content.facts["overlap"] = float("nan")
    with pytest.raises(DocumentInvalid, match="about itself"):
        store.add(content, source("a"))


def test_looking_creates_nothing(store: ObservationStore) -> None:
    assert store.states() == []
    assert select(store, "links").num_rows == 0
    assert not store.folder.exists()


def test_withdrawing_adds_a_file_and_restoring_another(store: ObservationStore) -> None:
    (stored,) = store.add(imported([matmul(1, 1e-3)]), source("a"))
    batch_id = stored.batch.batch_id
    before = snapshot(store)
    assert store.withdraw(batch_id, "cold clocks")
    assert not store.withdraw(batch_id)
    after = snapshot(store)
    (added,) = after.keys() - before.keys()
    assert {name: after[name] for name in before} == before
    assert json.loads(after[added][0])["reason"] == "cold clocks"
    assert store.batches() == []
    assert select(store, "operators").num_rows == 0
    assert store.resolve(batch_id[:10]).withdrawn
    assert not store.add(imported([matmul(1, 1e-3)]), source("a"))[0].new
    assert store.batches() == []
    assert store.restore(batch_id)
    assert not store.restore(batch_id)
    assert [batch.batch_id for batch in store.batches()] == [batch_id]
    assert store.withdraw(batch_id)
    assert store.batches() == []


def test_a_newer_parser_supersedes_its_own_earlier_reading(store: ObservationStore) -> None:
    (old,) = store.add(imported([matmul(1, 1e-3)]), source("a"))
    (other,) = store.add(imported([matmul(2, 1e-3)]), source("b"))
    (new,) = store.add(imported([matmul(1, 2e-3)]), source("a", parser_version=2))
    states = {state.batch.batch_id: state for state in store.states()}
    assert states[old.batch.batch_id].superseded
    assert not states[old.batch.batch_id].active
    assert states[new.batch.batch_id].active
    assert states[other.batch.batch_id].active
    assert sorted(select(store, "operators").column("time_s").to_pylist()) == [1e-3, 2e-3]
    store.withdraw(new.batch.batch_id)
    assert {batch.batch_id for batch in store.batches()} == {old.batch.batch_id, other.batch.batch_id}


def test_a_batch_is_found_by_the_beginning_of_its_id(store: ObservationStore) -> None:
    ids = [store.add(imported([matmul(1, 1e-3)]), source(text))[0].batch.batch_id for text in "abcdefghijklmnopq"]
    assert store.resolve(ids[3]).batch.batch_id == ids[3]
    with pytest.raises(NotFound, match="no batch 'zz'"):
        store.resolve("zz")
    first = next(each[0] for each in ids if sum(other[0] == each[0] for other in ids) > 1)
    with pytest.raises(DocumentInvalid, match="batches begin with"):
        store.resolve(first)
    with pytest.raises(NotFound):
        store.resolve("")


@pytest.mark.parametrize("damage", ["", "{", '{"batch_id": "x"}', "\udcff"])
def test_a_damaged_record_is_named(store: ObservationStore, damage: str) -> None:
    (stored,) = store.add(imported([matmul(1, 1e-3)]), source("a"))
    path = store.folder / "batches" / f"{stored.batch.batch_id}.json"
    path.write_bytes(damage.encode("utf-8", "surrogateescape"))
    with pytest.raises(ProfileStoreDamaged) as caught:
        store.states()
    assert caught.value.where == str(path)


@pytest.mark.parametrize("content", [b"", b"PAR1 nonsense", None])
def test_damaged_rows_are_one_clear_error(store: ObservationStore, content: bytes | None) -> None:
    (stored,) = store.add(imported([matmul(1, 1e-3)]), source("a"))
    path = store.rows_path(stored.batch, "operators")
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    with pytest.raises(ProfileStoreDamaged, match="cannot be read"):
        select(store, "operators")


@pytest.mark.parametrize(
    ("given", "environment", "expected"),
    [
        ("/a/b", {"MESHWRIGHT_PROFILES": "/c"}, "/a/b"),
        ("file:///a/my%20b", {}, "/a/my b"),
        (None, {"MESHWRIGHT_PROFILES": "/c"}, "/c"),
        (None, {"XDG_DATA_HOME": "/data", "HOME": "/h"}, "/data/meshwright/profiles"),
        (None, {"XDG_DATA_HOME": "relative", "HOME": "/h"}, "/h/.local/share/meshwright/profiles"),
    ],
)
def test_which_folder(given: str | None, environment: dict[str, str], expected: str) -> None:
    assert profiles_folder(given, environment) == Path(expected)


@pytest.mark.parametrize("given", ["s3://bucket/x", "file://host/x", "postgresql://x/y", "a\0b"])
def test_other_addresses_are_refused(given: str) -> None:
    with pytest.raises(DocumentInvalid):
        profiles_folder(given, {})
