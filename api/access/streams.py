"""Open event streams: so many in all, and of one caller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from api.errors import TooManyRequests

RETRY_AFTER_S = 5


class Streams:
    """Counts those that are open; used on the event loop only."""

    def __init__(self, most: int, most_of_caller: int) -> None:
        self._most, self._most_of_caller = most, most_of_caller
        self._open: Counter[str] = Counter()

    def check(self, caller: str) -> None:
        """Raises TooManyRequests where one more is too many."""
        if self._open[caller] >= self._most_of_caller:
            self._refuse(f"you watch {self._open[caller]} event streams already", "end one of them")
        if self._open.total() >= self._most:
            self._refuse(f"{self._open.total()} event streams are open already", "ask for the job itself now and then")

    @contextmanager
    def opened(self, caller: str) -> Iterator[None]:
        """One more is open in the block."""
        self._open[caller] += 1
        try:
            yield
        finally:
            self._open -= Counter({caller: 1})

    def _refuse(self, what: str, hint: str) -> None:
        raise TooManyRequests(what, hint=hint, retry_after_s=RETRY_AFTER_S)
