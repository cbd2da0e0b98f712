"""Equal questions that arrive together are computed once and share one answer."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Flights(Generic[T]):
    """Running computations by the content of their question.

    A computation belongs to nobody: it goes on when the client that started it leaves.
    """

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[T]] = {}

    async def share(self, key: str, start: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """The answer for ``key``, and whether it was somebody else's flight.  Raises what the computation raises."""
        task = self._running.get(key)
        joined = task is not None
        if task is None:
            task = asyncio.ensure_future(_call(start))
            self._running[key] = task
            task.add_done_callback(lambda done: self._landed(key, done))
        return await asyncio.shield(task), joined

    def _landed(self, key: str, task: asyncio.Task[T]) -> None:
        self._running.pop(key, None)
        if not task.cancelled():
            task.exception()  # seen, so that an answer nobody waited for raises no warning


async def _call(start: Callable[[], Awaitable[T]]) -> T:
    return await start()


class RecentAnswers(Generic[T]):
    """The answers used last, at most ``capacity`` of them.  Only for what never changes."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._answers: OrderedDict[str, T] = OrderedDict()

    def get(self, key: str) -> T | None:
        """The answer, or None."""
        found = self._answers.get(key)
        if found is not None:
            self._answers.move_to_end(key)
        return found

    def keep(self, key: str, answer: T) -> None:
        """Remember an answer; the one not used for longest goes."""
        if self._capacity == 0:
            return
        self._answers[key] = answer
        self._answers.move_to_end(key)
        while len(self._answers) > self._capacity:
            self._answers.popitem(last=False)
