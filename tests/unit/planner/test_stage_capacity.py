"""What fits within a stage time fits within a longer one: to the last bit, as the search discards by one test."""

from __future__ import annotations

import numpy as np
import pytest

from planner.search.stage_capacity import Capacity, ReliefOffer, StageRoom

ROWS, STAGES = 200, 6


def _room(draw: np.random.Generator) -> StageRoom:
    return StageRoom(
        24.0,
        layer_s=draw.uniform(0.5, 2.0, ROWS),
        ends_s=draw.uniform(0.0, 3.0, (STAGES, ROWS)),
        kept_bytes=draw.uniform(1.0, 4.0, ROWS),
        state_bytes=draw.uniform(0.5, 2.0, ROWS),
        in_flight=draw.integers(1, 8, (STAGES, ROWS)).astype(float),
        free_bytes=draw.uniform(-0.2, 60.0, (STAGES, ROWS)),
    )


def _offers(room: StageRoom, draw: np.random.Generator) -> list[ReliefOffer]:
    whole = room.kept_bytes[0]
    nothing, some = room.relief(whole, np.zeros(ROWS)), room.relief(0.3 * whole, draw.uniform(0.1, 1.0, ROWS))
    return [nothing, some, room.relief(0.0 * whole, draw.uniform(0.1, 1.0, ROWS), 5.0), nothing.cheapest(some)]


@pytest.mark.parametrize("seed", range(5))
def test_more_time_never_holds_less(seed: int) -> None:
    draw = np.random.default_rng(seed)
    room = _room(draw)
    for offer in _offers(room, draw):
        capacity = Capacity(room, offer)
        before = np.zeros(ROWS, dtype=bool)
        for tau in np.linspace(0.0, 40.0, 400):
            # The next number that a float can hold is enough more.
            for seconds in (tau, np.nextafter(tau, np.inf)):
                holds = capacity.holds_all(np.full(ROWS, seconds))
                assert not (before & ~holds).any()
                before = holds
        # Where everything fits at all, it does so at the bottleneck at which time no longer limits anything.
        assert (capacity.holds_all(capacity.everything_s()) >= before).all()
        assert before.any()
        assert not before.all()


def test_rows_taken_and_joined_are_the_rows() -> None:
    draw = np.random.default_rng(9)
    room = _room(draw)
    nothing, some, *_ = _offers(room, draw)
    tau = draw.uniform(5.0, 25.0, ROWS)
    even, odd = np.arange(0, ROWS, 2), np.arange(1, ROWS, 2)
    joined = Capacity(
        room.take(np.concatenate([even, odd])), ReliefOffer.concatenate([nothing.take(even), some.take(odd)])
    )
    holds = joined.holds_all(tau[np.concatenate([even, odd])])
    assert np.array_equal(holds[: len(even)], Capacity(room, nothing).holds_all(tau)[even])
    assert np.array_equal(holds[len(even) :], Capacity(room, some).holds_all(tau)[odd])
    assert 0 < holds.sum() < ROWS
