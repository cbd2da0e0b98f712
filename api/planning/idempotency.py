"""The Idempotency-Key: a request that a client repeats gets the first answer again.

As the IETF draft (draft-ietf-httpapi-idempotency-key-header) and Stripe have it: the same key with the same content
replays the first answer, with other content it is refused (422), and while the first is running it is refused (409).
An answer that is the service's own fault (5xx) is not kept, so that the request can be repeated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from anyio import to_thread

from api.errors import KeyInFlight, KeyReused, RequestRefused
from api.planning.key_releases import KeyReleases
from planner.store.records import IdempotencyRecord
from planner.store.service import ServiceStore

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
_KEY = re.compile(r"[\x21-\x7e]{1,200}")


def checked_key(text: str | None) -> str | None:
    """The header's key, if there is one.  Raises RequestRefused for one that cannot be kept."""
    if text is None:
        return None
    if not _KEY.fullmatch(text):
        raise RequestRefused(
            "this key cannot be kept", where=HEADER, hint="1 to 200 printable ASCII characters without spaces"
        )
    return text


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request under a key of its owner."""

    store: ServiceStore
    releases: KeyReleases
    owner: str
    key: str
    request_sha: str

    async def claim(self, *, join: bool = False) -> IdempotencyRecord | None:
        """None = answer it; else the answered record to replay.

        ``join``: a twin still in flight is answered again instead of refused (the content is shared anyway).
        Raises KeyReused, KeyInFlight.
        """
        found = await to_thread.run_sync(self.store.claim_key, self.owner, self.key, self.request_sha)
        if found is None:
            self.releases.hold(self.owner, self.key)
            return None
        if found.request_sha != self.request_sha:
            raise KeyReused("this key belongs to another request", where=HEADER, hint="use a new key for a new request")
        if found.answered:
            return found
        if join:
            return None
        raise KeyInFlight(
            "the first request with this key is still running", where=HEADER, hint="repeat it later", retry_after_s=1
        )

    async def answered(
        self,
        *,
        plan_id: str | None = None,
        job_id: str | None = None,
        problem: str | None = None,
        sweep_id: str | None = None,
    ) -> None:
        """Keep the answer."""
        answer = {"plan_id": plan_id, "job_id": job_id, "problem": problem, "sweep_id": sweep_id}
        await to_thread.run_sync(lambda: self.store.answer_key(self.owner, self.key, **answer))
        self.releases.answered(self.owner, self.key)

    async def failed(self) -> None:
        """Forget the request: it may be repeated."""
        await self.releases.release(self.owner, self.key)
