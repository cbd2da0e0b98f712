"""The timeline that a simulation returns: what ran when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.predict.schedule.action import BACKWARD, WEIGHT_GRADIENT, Action
from planner.predict.schedule.dependencies import OrderGraph
from solver.arrays import Array, Ints


@dataclass(frozen=True, slots=True)
class Event:
    """One action that ran."""

    rank: int
    action: Action
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, eq=False)
class RankTimeline:
    """What one rank ran, in order.  ``kind`` holds codes into ``dependencies.KINDS``."""

    start_s: Array
    end_s: Array
    kind: Ints
    chunk: Ints
    microbatch: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """A simulated step.  Flat arrays run rank after rank; ``graph`` says which action is which."""

    graph: OrderGraph
    start_s: Array
    end_s: Array
    hop_s: Array
    """Time between the end of the action waited for and its result's arrival; 0 where no hop lies between."""
    end_extra_s: Array
    """Work of each rank after its last action."""
    makespan_s: float
    busy_s: Array
    """Compute seconds of each rank."""
    bubble_s: Array
    """Seconds of the makespan in which each rank computes nothing (waiting, blocked in a send, before and after)."""
    peak_in_flight: Ints
    """Most chunk activations each rank holds at once; forward start to the end of B, or of W where split."""
    peak_in_flight_by_chunk: Ints

    @property
    def num_ranks(self) -> int:
        """Pipeline ranks."""
        return self.graph.num_ranks

    @property
    def bubble_fraction(self) -> float:
        """Idle part of all device time."""
        # Rounding leaves less than nothing where no device is ever idle.
        return max(0.0, float(self.bubble_s.sum() / (self.num_ranks * self.makespan_s))) if self.makespan_s else 0.0

    def rank(self, rank: int) -> RankTimeline:
        """What ``rank`` ran."""
        part = slice(self.graph.offsets[rank], self.graph.offsets[rank + 1])
        graph = self.graph
        return RankTimeline(
            self.start_s[part], self.end_s[part], graph.kind[part], graph.chunk[part], graph.microbatch[part]
        )

    def event(self, index: int) -> Event:
        """Action ``index`` of the flat arrays."""
        start_s, end_s = float(self.start_s[index]), float(self.end_s[index])
        return Event(self.graph.rank_of(index), self.graph.action(index), start_s, end_s)

    def in_flight(self, rank: int) -> tuple[Array, Ints]:
        """(time_s, chunk activations held from then on) of ``rank``, at every change; starts with a birth."""
        mine = self.rank(rank)
        dies = (mine.kind == BACKWARD) | (mine.kind == WEIGHT_GRADIENT)
        change = self.graph.in_flight_change()[self.graph.offsets[rank] : self.graph.offsets[rank + 1]]
        time_s = np.where(dies, mine.end_s, mine.start_s)
        moves = change != 0
        return time_s[moves], np.cumsum(change[moves])

    def critical_path(self) -> tuple[Event, ...]:
        """The chain of actions, first to last, that makes the step as long as it is.

        Each starts at the moment at which the one before it ends (or its result arrives).
        """
        return tuple(self.event(place) for place in self.critical_places())

    def critical_places(self) -> tuple[int, ...]:
        """The critical path as places in the flat arrays."""
        firsts = set(self.graph.offsets[:-1])
        lasts = np.array(self.graph.offsets[1:]) - 1
        index = int(lasts[np.argmax(self.end_s[lasts] + self.end_extra_s)])
        path = [index]
        while True:
            cause = int(self.graph.depends_on[index])
            if cause >= 0 and self.start_s[index] == self.end_s[cause] + self.hop_s[index]:
                index = cause
            elif index in firsts:
                break
            else:
                index -= 1
            path.append(index)
        return tuple(reversed(path))
