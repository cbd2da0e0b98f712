"""The simulator runs an order as a pipeline would, and refuses what cannot run."""

from __future__ import annotations

import numpy as np
import pytest

from planner.errors import DocumentInvalid
from planner.predict.schedule.action import Action, Kind, Order
from planner.predict.schedule.dependencies import order_graph
from planner.predict.schedule.orders import build_order
from planner.predict.schedule.simulate import simulate

F, B, I, W = Kind.FORWARD, Kind.BACKWARD, Kind.INPUT_GRADIENT, Kind.WEIGHT_GRADIENT  # noqa: E741


def test_two_stages_by_hand() -> None:
    """F 1 | 2, B 2 | 3, hop 0.5, two micro-batches, 1F1B; every time worked out on paper."""
    ran = simulate(build_order("1f1b", 2, 1, 2), [1.0, 2.0], [2.0, 3.0], 0.0, send_s=0.5)
    first, second = ran.rank(0), ran.rank(1)
    assert first.start_s.tolist() == [0.0, 1.0, 7.0, 12.0]  # F0 F1 B0 B1
    assert second.start_s.tolist() == [1.5, 3.5, 6.5, 8.5]  # F0 B0 F1 B1
    assert ran.makespan_s == 14.0
    assert ran.busy_s.tolist() == [6.0, 10.0]
    assert ran.bubble_s.tolist() == [8.0, 4.0]
    assert ran.bubble_fraction == pytest.approx(12 / 28)
    path = [(event.rank, event.action.kind, event.action.microbatch) for event in ran.critical_path()]
    assert path == [(0, F, 0), (1, F, 0), (1, B, 0), (1, F, 1), (1, B, 1), (0, B, 1)]


def test_hop_of_each_link() -> None:
    order = build_order("gpipe", 3, 1, 1)
    ran = simulate(order, 1.0, 1.0, 0.0, send_s=[0.25, 0.5])
    assert ran.makespan_s == 6 + 2 * (0.25 + 0.5)


def test_a_v_has_no_hop_at_its_turn() -> None:
    ran = simulate(build_order("zbv", 2, 2, 1), 1.0, 2.0, 1.0, send_s=1.0)
    # 4 F down and up, 4 I back, W of the turn's upper chunk before its lower I, the last W; two crossings each way.
    assert ran.makespan_s == 4 + 4 + 1 + 1 + 4 * 1.0


def test_blocking_send_holds_the_sender() -> None:
    order = build_order("gpipe", 2, 1, 2)
    free = simulate(order, 1.0, 1.0, 0.0, send_s=0.5)
    held = simulate(order, 1.0, 1.0, 0.0, send_s=0.5, blocking_send=True)
    assert free.rank(0).start_s.tolist()[:2] == [0.0, 1.0]
    assert held.rank(0).start_s.tolist()[:2] == [0.0, 1.5]
    assert held.makespan_s > free.makespan_s


def test_start_offsets_and_end_extras() -> None:
    order = build_order("1f1b", 2, 1, 1)
    ran = simulate(order, 1.0, 1.0, 0.0, start_offset_s=[0.5, 0.0], end_extra_s=[0.25, 4.0])
    assert ran.rank(0).start_s[0] == 0.5
    assert ran.makespan_s == 0.5 + 3 + 4.0
    assert ran.critical_path()[-1].rank == 1


def test_in_flight_over_time() -> None:
    ran = simulate(build_order("1f1b", 2, 1, 3), 1.0, 2.0, 1.0)
    time_s, held = ran.in_flight(0)
    assert held.tolist() == [1, 2, 1, 2, 1, 0]
    assert time_s.tolist()[:3] == [0.0, 1.0, 6.0]
    assert ran.peak_in_flight.tolist() == [2, 1]


def test_split_backward_keeps_the_activation_until_w() -> None:
    order: Order = (
        (Action(F, 0, 0), Action(I, 0, 0), Action(F, 0, 1), Action(W, 0, 0), Action(I, 0, 1), Action(W, 0, 1)),
    )
    ran = simulate(order, 1.0, 3.0, 1.0)
    assert ran.peak_in_flight.tolist() == [2]
    assert ran.rank(0).end_s.tolist() == [1.0, 3.0, 4.0, 5.0, 7.0, 8.0]


def test_deadlock_names_the_stuck_actions() -> None:
    good = build_order("1f1b", 2, 1, 2)
    # Rank 1 takes the micro-batches the other way round, and rank 0 wants a backward before its second forward.
    first = tuple(Action(k, 0, i) for k, i in ((F, 0), (B, 0), (F, 1), (B, 1)))
    second = tuple(Action(k, 1, i) for k, i in ((F, 1), (B, 1), (F, 0), (B, 0)))
    assert simulate((first, good[1]), 1.0, 1.0, 0.0).makespan_s > 0
    with pytest.raises(DocumentInvalid) as caught:
        simulate((first, second), 1.0, 1.0, 0.0)
    text = str(caught.value)
    assert "deadlocks; stuck at 2 actions" in text
    assert "B of chunk 0 micro-batch 0 (waits for B of chunk 1 micro-batch 0)" in text
    assert "F of chunk 1 micro-batch 1 (waits for F of chunk 0 micro-batch 1)" in text


def test_backward_before_its_own_forward_is_a_deadlock() -> None:
    with pytest.raises(DocumentInvalid, match="stuck at 1 actions: B of chunk 0 micro-batch 0"):
        order_graph(((Action(B, 0, 0), Action(F, 0, 0)),))


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ((), "no actions"),
        (((Action(F, 0, 0),),), "input gradient does not run exactly once"),
        (((Action(F, 0, 0), Action(F, 0, 0), Action(B, 0, 0)),), "forward does not run exactly once"),
        (((Action(F, 0, 0), Action(I, 0, 0)),), "weight gradient does not run exactly once"),
        (((Action(F, 0, 0),), (Action(B, 0, 0),)), "more than one rank"),
        (((Action(F, -1, 0), Action(B, -1, 0)),), "negative chunk"),
    ],
)
def test_incomplete_orders_are_refused(order: Order, words: str) -> None:
    with pytest.raises(DocumentInvalid, match=words):
        order_graph(order)


@pytest.mark.parametrize(
    ("forward", "backward", "weight", "words"),
    [
        ([1.0, 2.0], 1.0, 0.0, "forward_s has shape"),
        (-1.0, 1.0, 0.0, "negative or not finite"),
        (1.0, float("nan"), 0.0, "negative or not finite"),
        (1.0, 1.0, 2.0, "weight_gradient_s is more than backward_s"),
    ],
)
def test_impossible_durations_are_refused(forward: object, backward: float, weight: float, words: str) -> None:
    with pytest.raises(DocumentInvalid, match=words):
        simulate(build_order("1f1b", 3, 1, 3), np.asarray(forward), backward, weight)
