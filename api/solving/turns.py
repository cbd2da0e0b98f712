"""Turns at the computing processes, shared out fairly: many questions of one caller hold up nobody else's."""

from __future__ import annotations

import asyncio
from collections import Counter


class Turns:
    """``size`` turns at once, at most ``most_of_one`` of one caller.

    A free turn goes to the caller who has the fewest, of these to the one who has waited longest.
    """

    def __init__(self, size: int, most_of_one: int) -> None:
        self._free, self._most_of_one = size, most_of_one
        self._held: Counter[str] = Counter()
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []

    async def take(self, caller: str) -> None:
        """Wait for a turn; cancelled, it takes none."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((caller, turn))
        self._hand_out()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(caller)
            else:
                self._waiting.remove((caller, turn))
            raise

    def give_back(self, caller: str) -> None:
        """A turn of ``caller`` is over."""
        self._free += 1
        self._held -= Counter({caller: 1})
        self._hand_out()

    def _hand_out(self) -> None:
        while self._free > 0:
            able = [each for each in self._waiting if self._held[each[0]] < self._most_of_one]
            if not able:
                return
            caller, turn = chosen = min(able, key=lambda each: self._held[each[0]])
            self._waiting.remove(chosen)
            self._held[caller] += 1
            self._free -= 1
            turn.set_result(None)
