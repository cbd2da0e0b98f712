"""The same thing measured differently is shown with both values."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.observation_store.conflicts import find_conflicts
from profiles.observation_store.query import Selection
from profiles.observation_store.store import ObservationStore
from profiles.observations.environment import Environment
from tests.observation_factory import H100, all_reduce, imported, matmul, source


@pytest.fixture
def store(tmp_path: Path) -> ObservationStore:
    return ObservationStore(tmp_path / "profiles")


def test_both_values_are_shown(store: ObservationStore) -> None:
    slow = store.add(imported([matmul(1, 2e-3), matmul(2, 1e-3)]), source("a"))[0].batch.batch_id
    fast = store.add(imported([matmul(1, 1e-3), matmul(2, 1.05e-3)]), source("b"))[0].batch.batch_id
    (conflict,) = find_conflicts(store)
    assert conflict.kind == "operators"
    assert conflict.device == "h100-sxm5-80gb"
    assert conflict.ratio == pytest.approx(2.0)
    assert conflict.key == {
        **{"operator": "matmul", "phase": "forward", "dtype": "bf16", "statistic": "median"},
        **{"m": 1, "n": 4096, "k": 1024},
    }
    assert [(each.batch_id, each.fastest_s, each.slowest_s) for each in conflict.batches] == [
        (fast, 1e-3, 1e-3),
        (slow, 2e-3, 2e-3),
    ]


def test_the_threshold_counts(store: ObservationStore) -> None:
    store.add(imported([matmul(1, 1e-3)]), source("a"))
    store.add(imported([matmul(1, 1.05e-3)]), source("b"))
    assert find_conflicts(store, threshold=0.06) == []
    assert len(find_conflicts(store, threshold=0.04)) == 1


def test_collectives_conflict_by_size_and_group(store: ObservationStore) -> None:
    store.add(
        imported(collectives=[all_reduce(8, 1e-3), all_reduce(16, 1e-3), all_reduce(8, 1.0, group_size=4)]), source("a")
    )
    store.add(imported(collectives=[all_reduce(8, 3e-3), all_reduce(16, 1e-3)]), source("b"))
    (conflict,) = find_conflicts(store)
    assert (conflict.key["operation"], conflict.key["size_bytes"], conflict.key["group_size"]) == ("all_reduce", 8, 8)
    assert conflict.ratio == pytest.approx(3.0)


def test_spread_inside_a_batch_is_no_conflict(store: ObservationStore) -> None:
    store.add(imported([matmul(1, 1e-3), matmul(1, 3e-3)]), source("a"))
    store.add(imported([matmul(1, 2e-3)]), source("b"))
    assert find_conflicts(store) == []
    store.add(imported([matmul(1, 6e-3)]), source("c"))
    (conflict,) = find_conflicts(store)
    assert conflict.ratio == pytest.approx(3.0)
    assert len(conflict.batches) == 3


@pytest.mark.parametrize(
    "environment",
    [
        H100.model_copy(update={"device": "h200-sxm-141gb"}),
        H100.model_copy(update={"communication_library_version": "2.28"}),
        H100.model_copy(update={"runtime_version": "13.0"}),
    ],
)
def test_other_machines_and_libraries_are_not_compared(store: ObservationStore, environment: Environment) -> None:
    store.add(imported([matmul(1, 1e-3)]), source("a"))
    store.add(imported([matmul(1, 2e-3)], environment=environment), source("b"))
    assert find_conflicts(store) == []


def test_unknown_devices_are_not_compared(store: ObservationStore) -> None:
    store.add(imported([matmul(1, 1e-3)], environment=Environment()), source("a"))
    store.add(imported([matmul(1, 2e-3)], environment=Environment()), source("b"))
    assert find_conflicts(store) == []


def test_withdrawn_batches_and_other_selections_do_not_conflict(store: ObservationStore) -> None:
    store.add(imported([matmul(1, 1e-3)]), source("a"))
    batch_id = store.add(imported([matmul(1, 2e-3)]), source("b"))[0].batch.batch_id
    assert len(find_conflicts(store)) == 1
    assert find_conflicts(store, wanted=Selection(devices=("a100-sxm4-80gb",))) == []
    store.withdraw(batch_id)
    assert find_conflicts(store) == []


def test_the_largest_comes_first(store: ObservationStore) -> None:
    store.add(imported([matmul(m, 1e-3) for m in range(1, 6)]), source("a"))
    store.add(imported([matmul(m, m * 1e-3) for m in range(1, 6)]), source("b"))
    assert [round(each.ratio) for each in find_conflicts(store)] == [5, 4, 3, 2]
