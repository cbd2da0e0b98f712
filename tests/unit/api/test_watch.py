"""The watch over heartbeats finds the dead workers: tested with a clock that the test sets."""

from __future__ import annotations

from api.worker.presence import Beat
from api.worker.reaper import Watch

LEASE_S = 20.0


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def watched() -> tuple[Watch, Clock]:
    clock = Clock()
    return Watch(LEASE_S, clock), clock


def beat(row: str, count: int, lease_s: float = LEASE_S) -> Beat:
    return Beat(row, count, lease_s)


def test_a_worker_that_moves_lives() -> None:
    watch, clock = watched()
    for count in range(10):
        assert watch.dead({"a"}, {"a": beat("row", count)}) == set()
        clock.now += LEASE_S - 1


def test_a_worker_that_stands_still_is_dead_after_a_lease_and_not_before() -> None:
    watch, clock = watched()
    assert watch.dead({"a"}, {"a": beat("row", 7)}) == set()
    clock.now += LEASE_S - 0.1
    assert watch.dead({"a"}, {"a": beat("row", 7)}) == set()
    clock.now += 0.1
    assert watch.dead({"a"}, {"a": beat("row", 7)}) == {"a"}


def test_a_worker_without_a_row_is_dead_after_a_lease() -> None:
    watch, clock = watched()
    assert watch.dead({"a"}, {}) == set()
    clock.now += LEASE_S
    assert watch.dead({"a"}, {}) == {"a"}


def test_a_worker_that_shows_itself_again_lives() -> None:
    watch, clock = watched()
    watch.dead({"a"}, {"a": beat("row-1", 7)})
    clock.now += LEASE_S
    assert watch.dead({"a"}, {"a": beat("row-2", 7)}) == set()


def test_an_idle_worker_that_died_is_found_too() -> None:
    watch, clock = watched()
    watch.dead(set(), {"a": beat("row", 1), "b": beat("row", 1)})
    clock.now += LEASE_S
    assert watch.dead(set(), {"a": beat("row", 1), "b": beat("row", 2)}) == {"a"}


def test_nobody_is_dead_right_after_the_database_was_away() -> None:
    watch, clock = watched()
    watch.dead({"a"}, {"a": beat("row", 1)})
    clock.now += 10 * LEASE_S
    watch.forget()
    assert watch.dead({"a"}, {"a": beat("row", 1)}) == set()
    clock.now += LEASE_S
    assert watch.dead({"a"}, {"a": beat("row", 1)}) == {"a"}


def test_every_worker_has_its_own_lease() -> None:
    watch, clock = watched()
    moving = {"slow": beat("row", 1, 5 * LEASE_S), "quick": beat("row", 1, LEASE_S / 5)}
    watch.dead(set(), moving)
    clock.now += LEASE_S / 5
    assert watch.dead(set(), moving) == {"quick"}
    clock.now += 5 * LEASE_S
    assert watch.dead(set(), moving) == {"slow", "quick"}
