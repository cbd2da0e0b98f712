"""Keys of requests that are being answered: claims are renewed while this process lives, and released when it fails.

A claim that nobody renews is abandoned: its server was killed, and the next request with the key takes it over.  A
request that failed because the database went away is released once the database is back; until then whoever repeats
it is sent away.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from anyio import to_thread

from planner.store.errors import StoreError
from planner.store.service import ABANDONED, ServiceStore

RETRY_S = 0.5
RENEWED_EVERY_S = ABANDONED.total_seconds() / 4
MOST_WAITING = 10_000
"""Keys beyond these wait for their claim to be abandoned."""


class KeyReleases:
    """The claims of one service.  ``run`` is the task that renews them, and releases later what could not be now."""

    def __init__(self, store: ServiceStore) -> None:
        self._store = store
        self._held: set[tuple[str, str]] = set()
        self._waiting: set[tuple[str, str]] = set()

    def hold(self, owner: str, key: str) -> None:
        """A request under this key is being answered here."""
        self._held.add((owner, key))

    def answered(self, owner: str, key: str) -> None:
        """It is answered."""
        self._held.discard((owner, key))

    async def release(self, owner: str, key: str) -> None:
        """Forget a request without an answer, as soon as that is possible."""
        self._held.discard((owner, key))
        try:
            await to_thread.run_sync(self._store.release_key, owner, key)
        except StoreError:
            if len(self._waiting) < MOST_WAITING:
                self._waiting.add((owner, key))

    async def run(self) -> None:
        """Renew what is held and try again what waits, until cancelled."""
        loop = asyncio.get_running_loop()
        renewed_s = loop.time()
        while True:
            await asyncio.sleep(RETRY_S)
            waiting, self._waiting = self._waiting, set()
            for owner, key in waiting:
                await self.release(owner, key)
            if self._held and loop.time() - renewed_s >= RENEWED_EVERY_S:
                renewed_s = loop.time()
                # The next renewal may find the database again, before the claims count as abandoned.
                with suppress(StoreError):
                    await to_thread.run_sync(self._store.renew_keys, tuple(self._held))
