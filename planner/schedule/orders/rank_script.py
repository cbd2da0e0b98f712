"""How is the order of one rank written down?

A ``RankScript`` numbers micro-batches by itself: each (kind, chunk) takes micro-batches 0, 1, 2, ... in turn, which is
what every schedule here does.
"""

from __future__ import annotations

from collections import deque

from planner.schedule.action import Action, Kind


class RankScript:
    """Actions of one rank, appended in the order in which the device runs them.

    An input gradient puts its weight gradient on a queue; ``weight_gradient`` takes the oldest one.
    """

    __slots__ = ("_actions", "_backwards", "_forwards", "_pending")

    def __init__(self) -> None:
        self._actions: list[Action] = []
        self._forwards: dict[int, int] = {}
        self._backwards: dict[int, int] = {}
        self._pending: deque[tuple[int, int]] = deque()

    def forward(self, chunk: int) -> None:
        """Next forward of ``chunk``."""
        microbatch = self._forwards.get(chunk, 0)
        self._forwards[chunk] = microbatch + 1
        self._actions.append(Action(Kind.FORWARD, chunk, microbatch))

    def backward(self, chunk: int) -> None:
        """Next full backward of ``chunk``."""
        self._actions.append(Action(Kind.BACKWARD, chunk, self._next_backward(chunk)))

    def input_gradient(self, chunk: int) -> None:
        """Next input gradient of ``chunk``; its weight gradient waits in the queue."""
        microbatch = self._next_backward(chunk)
        self._pending.append((chunk, microbatch))
        self._actions.append(Action(Kind.INPUT_GRADIENT, chunk, microbatch))

    def weight_gradient(self, count: int = 1) -> None:
        """The ``count`` oldest waiting weight gradients (fewer when fewer wait)."""
        for _ in range(min(count, len(self._pending))):
            self._actions.append(Action(Kind.WEIGHT_GRADIENT, *self._pending.popleft()))

    def weight_gradients_of(self, chunk: int, count: int | None = None) -> None:
        """The ``count`` oldest waiting weight gradients of ``chunk`` (all by default)."""
        mine = [entry for entry in self._pending if entry[0] == chunk][:count]
        for entry in mine:
            self._pending.remove(entry)
            self._actions.append(Action(Kind.WEIGHT_GRADIENT, *entry))

    def first_microbatches(self, num_microbatches: int) -> tuple[Action, ...]:
        """The script without the actions of micro-batches ``num_microbatches`` and later."""
        return tuple(action for action in self._actions if action.microbatch < num_microbatches)

    def actions(self) -> tuple[Action, ...]:
        """The whole script."""
        return tuple(self._actions)

    def _next_backward(self, chunk: int) -> int:
        microbatch = self._backwards.get(chunk, 0)
        self._backwards[chunk] = microbatch + 1
        return microbatch
