"""Claims are renewed while their requests are being answered, and only those."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from api.planning import key_releases
from api.planning.key_releases import KeyReleases
from planner.store.service import ServiceStore


class Keys:
    """The part of the store that keys need: what was asked of it, in order."""

    def __init__(self) -> None:
        self.renewed: list[tuple[tuple[str, str], ...]] = []
        self.released: list[tuple[str, str]] = []

    def renew_keys(self, keys: tuple[tuple[str, str], ...]) -> None:
        self.renewed.append(keys)

    def release_key(self, owner: str, key: str) -> None:
        self.released.append((owner, key))


def test_what_is_answered_is_no_longer_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_releases, "RETRY_S", 0.001)
    monkeypatch.setattr(key_releases, "RENEWED_EVERY_S", 0.002)
    keys = Keys()

    async def scene() -> None:
        releases = KeyReleases(cast("ServiceStore", keys))
        running = asyncio.ensure_future(releases.run())
        for key in ("a", "b"):
            releases.hold("ann", key)
        releases.answered("ann", "a")
        while len(keys.renewed) < 2:
            await asyncio.sleep(0.001)
        await releases.release("ann", "b")
        count = len(keys.renewed)
        await asyncio.sleep(0.01)
        assert len(keys.renewed) <= count + 1, "one may have been under way"
        running.cancel()

    asyncio.run(asyncio.wait_for(scene(), 60))
    assert set(keys.renewed) == {(("ann", "b"),)}
    assert keys.released == [("ann", "b")]
