"""A key whose request failed because the database went away is released once the database is back.

Until then the database says that the first request with this key is still running, and whoever repeats it is sent
away: without this, for the two minutes after which a claim counts as abandoned.
"""

from __future__ import annotations

import asyncio

from anyio import to_thread

from planner.store.errors import StoreError
from planner.store.service import ServiceStore

RETRY_S = 0.5
MOST_WAITING = 10_000
"""Keys beyond these wait for their claim to be abandoned."""


class KeyReleases:
    """Releases keys, at once or later.  ``run`` is the task that does it later."""

    def __init__(self, store: ServiceStore) -> None:
        self._store = store
        self._waiting: set[tuple[str, str]] = set()

    async def release(self, owner: str, key: str) -> None:
        """Forget a request without an answer, as soon as that is possible."""
        try:
            await to_thread.run_sync(self._store.release_key, owner, key)
        except StoreError:
            if len(self._waiting) < MOST_WAITING:
                self._waiting.add((owner, key))

    async def run(self) -> None:
        """Try again what waits, until cancelled."""
        while True:
            await asyncio.sleep(RETRY_S)
            waiting, self._waiting = self._waiting, set()
            for owner, key in waiting:
                await self.release(owner, key)
