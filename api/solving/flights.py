"""Equal questions that arrive together are computed once and share one answer."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class _Flight(Generic[T]):
    task: asyncio.Task[T]
    waiting: int = 0


class Flights(Generic[T]):
    """Running computations by the content of their question.

    A computation belongs to all who wait for it: it goes on while one of them is there.  ``goes_on``: without anybody
    too, for answers that are kept for whoever asks next.
    """

    def __init__(self, *, goes_on: bool = False) -> None:
        self._goes_on = goes_on
        self._running: dict[str, _Flight[T]] = {}

    async def share(self, key: str, start: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """The answer for ``key``, and whether it was somebody else's flight.  Raises what the computation raises."""
        flight = self._running.get(key)
        joined = flight is not None
        if flight is None:
            flight = _Flight(asyncio.ensure_future(_call(start)))
            self._running[key] = flight
            flight.task.add_done_callback(partial(self._landed, key, flight))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task), joined
        finally:
            flight.waiting -= 1
            if flight.waiting == 0 and not flight.task.done() and not self._goes_on:
                # Out of sight first: who asks the same now gets a computation of their own.
                self._forget(key, flight)
                flight.task.cancel()

    def _landed(self, key: str, flight: _Flight[T], task: asyncio.Task[T]) -> None:
        self._forget(key, flight)
        if not task.cancelled():
            task.exception()  # seen, so that an answer nobody waited for raises no warning

    def _forget(self, key: str, flight: _Flight[T]) -> None:
        if self._running.get(key) is flight:
            del self._running[key]


async def _call(start: Callable[[], Awaitable[T]]) -> T:
    return await start()


class RecentAnswers(Generic[T]):
    """The answers used last, at most ``capacity`` of them.  Only for what never changes, or is told when it goes."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._answers: OrderedDict[str, T] = OrderedDict()

    def get(self, key: str) -> T | None:
        """The answer, or None."""
        found = self._answers.get(key)
        if found is not None:
            self._answers.move_to_end(key)
        return found

    def forget(self, is_meant: Callable[[T], bool]) -> None:
        """Forget every answer that is meant."""
        self._answers = OrderedDict((key, each) for key, each in self._answers.items() if not is_meant(each))

    def keep(self, key: str, answer: T) -> None:
        """Remember an answer; the one not used for longest goes."""
        if self._capacity == 0:
            return
        self._answers[key] = answer
        self._answers.move_to_end(key)
        while len(self._answers) > self._capacity:
            self._answers.popitem(last=False)
